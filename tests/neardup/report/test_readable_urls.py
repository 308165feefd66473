"""URLs of other scripts, as people read them."""

import unicodedata
from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.report.readable_urls import readable, readable_host


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://ru.example/%D0%BA%D0%BD%D0%B8%D0%B3%D0%B0?%D0%B0=1", "https://ru.example/книга?а=1"),
        ("https://ja.example/wiki/%E6%9D%B1%E4%BA%AC", "https://ja.example/wiki/東京"),
        ("https://de.example/stra%C3%9Fe%20eins%2Fzwei", "https://de.example/straße%20eins%2Fzwei"),
        ("https://xn--80abjdoczp.xn--p1ai/", "https://биомедиа.рф/"),
        ("https://xn--fsqu00a.example:8080/a", "https://例子.example:8080/a"),
        ("https://xn--bcher-kva.example/", "https://bücher.example/"),
        ("https://a.example/%41%2e", "https://a.example/%41%2e"),
        ("neardup:doc%2017", "neardup:doc%2017"),
    ],
)
def test_other_scripts_are_decoded(url: str, shown: str) -> None:
    assert readable(url) == shown


@pytest.mark.parametrize(
    "url",
    [
        "https://a.example/%E2%80%AEgpj.exe",  # turns the direction of what follows
        "https://a.example/%C2%A0%E2%80%8B%EF%BB%BF",  # spaces that are not seen
        "https://a.example/%00%0A%7F%C2%85",
        "https://a.example/%E2%88%95%E2%81%84b",  # slashes that are none
        "https://a.example/%D0%%FF%C3%28%ED%A0%80",  # no UTF-8
        "https://a.example/a" + "%CC%81" * 50,  # marks that pile up over other lines
        "https://xn--80ak6aa92e.example/",  # looks like a word of Latin letters
        "https://xn--pypal-4ve.example/",  # of two scripts
        "https://xn--gogle-lkg.example/",  # of Latin and Armenian letters
        "https://xn--google-.example/",  # ASCII, of another host
        "https://a.example/%D0%B0" + "%CC%81" * 3,
        "https://xn--a.example/",
        "https://xn--.example/",
        "https://[::1/",
        "",
    ],
)
def test_characters_that_would_mislead_stay_encoded(url: str) -> None:
    assert readable(url) == url


def test_the_name_of_a_site_is_decoded() -> None:
    assert readable_host("xn--80abjdoczp.xn--p1ai") == "биомедиа.рф"
    assert readable_host("xn--80ak6aa92e.example") == "xn--80ak6aa92e.example"
    assert readable_host("") == ""


@pytest.mark.parametrize("word", ["ꓖꓳꓳꓖꓡꓰ", "ᎪᏢᏢᏞᎬ", "ｇｏｏｇｌｅ", "𝐠𝐨𝐨𝐠𝐥𝐞", "օոս", "gօogle", "wıkɪ"])
def test_hosts_that_look_latin_stay_encoded(word: str) -> None:
    host = f"xn--{word.encode('punycode').decode()}.example"
    assert readable_host(host) == host


@pytest.mark.parametrize("word", ["հայաստան", "日本ー々", "한국", "ไทย", "भारत", "العربية", "ישראל"])
def test_hosts_of_scripts_in_use_are_decoded(word: str) -> None:
    assert readable_host(f"xn--{word.encode('punycode').decode()}.example") == f"{word}.example"


@given(st.text(max_size=80))
def test_a_readable_url_encodes_to_the_url(text: str) -> None:
    url = "https://a.example/" + quote(text)
    shown = readable(url)
    assert unquote(shown) == unquote(url)
    assert all(char.isascii() or unicodedata.category(char)[0] in "LMN" for char in shown)


def test_a_hostile_url_takes_linear_time() -> None:
    assert len(readable("https://a.example/" + "%D0" * 700_000)) < 3_000_000
    assert len(readable("https://" + "xn--80abjdoczp." * 20_000 + "/")) < 1_000_000
