import re
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup import urls
from neardup.errors import BadPage
from neardup.url_bytes import without_surrogates
from neardup.urls import hen_site, host_of, normalise_url, site_of


@pytest.mark.parametrize(
    ("url", "normal"),
    [
        # RFC 3986, section 6.2.2: its own example
        ("eXAMPLE://a/./b/../b/%63/%7bfoo%7d", "example://a/b/c/%7Bfoo%7D"),
        ("HTTP://www.EXAMPLE.com/", "http://www.example.com/"),
        # section 6.2.3: one resource, four spellings
        ("http://example.com", "http://example.com/"),
        ("http://example.com:/", "http://example.com/"),
        ("http://example.com:80/", "http://example.com/"),
        ("https://example.com:0443/", "https://example.com/"),
        ("https://example.com:80/", "https://example.com:80/"),
        ("ftp://example.com:21/a", "ftp://example.com/a"),
        # section 5.4: dot segments
        ("http://a/b/c/../../g", "http://a/g"),
        ("http://a/b/c/../../../g", "http://a/g"),
        ("http://a/b/c/.", "http://a/b/c/"),
        ("http://a/b/c/..", "http://a/b/"),
        ("http://a/b/c/./../g", "http://a/b/g"),
        ("http://a/b/g.", "http://a/b/g."),
        ("http://a/b/..g", "http://a/b/..g"),
        ("http://a/b//../c", "http://a/b/c"),
        ("http://a/%2e%2E/b", "http://a/b"),
        ("http://a/..", "http://a/"),
        ("http://a/b?x=/../y", "http://a/b?x=/../y"),
        # percent-encodings
        ("http://a/%7Euser/%41%5a%30", "http://a/~user/AZ0"),
        ("http://a/%2f%3f", "http://a/%2F%3F"),
        ("http://a/?q=%c3%a4", "http://a/?q=%C3%A4"),
        ("http://a/100%", "http://a/100%25"),
        ("http://a/%%34%31", "http://a/%2541"),
        ("http://a/x y/ä", "http://a/x%20y/%C3%A4"),
        ("http://a/?a[]=1&b={|}", "http://a/?a[]=1&b=%7B%7C%7D"),
        # fragment, surroundings, user
        ("http://a/b#c?d/..", "http://a/b"),
        (" http://a/b\r\n", "http://a/b"),
        ("http://a?", "http://a/?"),
        ("http://u:p@a:8080/", "http://u:p@a:8080/"),
        ("http://@a/", "http://a/"),
        # fragments that are routes; anchors, directives and the start of an application are none
        ("http://a/#/orders", "http://a/#/orders"),
        ("http://a#/orders/", "http://a/#/orders/"),
        ("http://a/shop?x=1#!/red", "http://a/shop?x=1#!/red"),
        ("http://a/#!state=2&b", "http://a/#!state=2&b"),
        ("http://a/#/list?sort=price", "http://a/#/list?sort=price"),
        ("http://a/#/%7ean n/%c3%a4/ö", "http://a/#/~an%20n/%C3%A4/%C3%B6"),
        ("http://a/#/../b", "http://a/#/../b"),
        ("http://a/#%21/red", "http://a/#!/red"),
        ("http://a/#%2Fred", "http://a/#/red"),
        ("http://a/#/guide#install", "http://a/#/guide"),
        ("http://a/#/room/#name#x", "http://a/#/room/%23name"),
        ("http://a/#/guide:~:text=some", "http://a/#/guide"),
        ("http://a/#/guide:%7e:text=some", "http://a/#/guide"),
        ("http://a/#/x\n", "http://a/#/x"),
        ("http://a/#/x\ny", "http://a/#/x%0Ay"),
        ("http://a/#/", "http://a/"),
        ("http://a/#!", "http://a/"),
        ("http://a/#!/", "http://a/"),
        ("http://a/#!#x", "http://a/"),
        ("http://a/#/:~:text=some", "http://a/"),
        ("http://a/#/#:~:text=some", "http://a/"),
        ("http://a/#/room/#:%7E:text=some", "http://a/#/room/"),
        ("http://a/#/room/#", "http://a/#/room/"),
        ("http://a/#/#x", "http://a/#/%23x"),
        ("http://a/#%2F#x", "http://a/#/%23x"),
        ("http://a/#%2f#", "http://a/"),
        ("http://a/#/##x", "http://a/"),
        ("http://a/#/a%2F#x", "http://a/#/a%2F"),
        ("http://a/#", "http://a/"),
        ("http://a/#L10", "http://a/"),
        ("http://a/#a/b", "http://a/"),
        ("http://a/#:~:text=/some", "http://a/"),
        # bytes that are not UTF-8, and surrogates that are no bytes
        ("http://a/caf\udce9", "http://a/caf%E9"),
        ("http://a/\udcc3\udca9?\udcff=é#/\udce8", "http://a/%C3%A9?%FF=%C3%A9#/%E8"),
        ("http://a/\ud800", "http://a/%ED%A0%80"),
        # hosts
        ("http://MÜNCHEN.example/", "http://xn--mnchen-3ya.example/"),
        ("http://m%C3%BCnchen.example/", "http://xn--mnchen-3ya.example/"),
        ("http://faß.example/", "http://xn--fa-hia.example/"),
        ("http://例え。テスト/", "http://xn--r8jz45g.xn--zckzah/"),
        ("http://ＥＸＡＭＰＬＥ.com/", "http://example.com/"),
        ("http://[2001:DB8:0:0:1:0:0:1]:80/", "http://[2001:db8::1:0:0:1]/"),
        ("http://[::ffff:1.2.3.4]/", "http://[::ffff:102:304]/"),
        ("http://[0:0:0:0:0:0:0:0]/", "http://[::]/"),
        ("http://[1:2:3:4:5:6:0:8]:81/x", "http://[1:2:3:4:5:6:0:8]:81/x"),
        ("file:///a/../b.html", "file:///b.html"),
        ("file://localhost/b.html", "file:///b.html"),
    ],
)
def test_normal_form(url: str, normal: str) -> None:
    assert normalise_url(url) == normal
    assert normalise_url(normal) == normal


@pytest.mark.parametrize(
    "url",
    [
        "",
        "not a URL",
        "example.com/",
        "//example.com/",
        "/path",
        "http:/example.com/",
        "http:///path",
        "http://",
        "http://:80/",
        "http://user@/",
        "mailto:someone@example.com",
        "javascript://%0aalert(1)",
        "data:text/html,x",
        "1http://a/",
        "http://a\\b/",
        "http://a b/",
        "http://a..b/",
        "http://.a/",
        "http://a%2Fb/",
        "http://\u2100.com/",  # maps to a/c
        "http://%ff.com/",
        "http://a:99999/",
        "http://a:8 0/",
        "http://a:٣/",
        "http://[::1/",
        "http://[::1]x/",
        "http://[::g]/",
        "http://[fe80::1%25eth0]/",
        "http://a/\x00",
        "http://a/b\nc",
        "http://a/\x7f",
        "http://\udce9/",
        "http://a/" + "x" * 2040,
        "http://a/" + "ä" * 400,
    ],
)
def test_bad_url_is_a_bad_page(url: str) -> None:
    with pytest.raises(BadPage):
        normalise_url(url)


def test_length_cap_counts_the_normal_form() -> None:
    url = "http://a/" + "x" * 2039
    assert normalise_url(url) == url
    assert normalise_url("http://a/" + "x" * 2039 + "#" + "y" * 5000) == url
    with pytest.raises(BadPage, match="2048 bytes"):
        normalise_url(f"{url}y#/y")
    with pytest.raises(BadPage, match="16 bytes"):
        normalise_url("http://a/ääää", 16)


def test_every_percent_encoding() -> None:
    for code in range(256):
        char = chr(code)
        kept = not (char.isascii() and (char.isalnum() or char in "-._~"))
        for form in (f"%{code:02X}", f"%{code:02x}"):
            assert normalise_url(f"http://a/b{form}") == "http://a/b" + (f"%{code:02X}" if kept else char)


_pieces = st.sampled_from(
    (
        *("%", "%2", "%2e", "%7e", "%41", "..", ".", "/", "//", "?", "#", "#/", "#!", "%21", "[", "]", "@", ":", ":80"),
        *("a", "A", "1", "-", ":~:", "\udce9", "\udcc3", "\ud800"),
    )
) | st.sampled_from(("ß", "ü", "。", "\u200d", "\u0130", "\u2100", "~", "|", " ", "\\", "xn--"))


@given(
    st.sampled_from(["http://", "https://", "HTTP://", "ftp://", "file://", "x+y://"]),
    st.lists(_pieces | st.text(max_size=3), max_size=12).map("".join),
)
@example("http://", "a/%%32%65")
@example("http://", "a/%2e/%2e%2e/..")
@example("http://", "a/#/:%7e:")
@example("http://", "a/#/##")
def test_normal_form_is_ascii_and_its_own_normal_form(scheme: str, rest: str) -> None:
    try:
        normal = normalise_url(scheme + rest)
    except BadPage:
        return
    assert normal.isascii()
    assert normalise_url(normal) == normal
    assert re.fullmatch(r"[a-z0-9._-]*|\[[0-9a-f:]+\]", host_of(normal))


@given(st.lists(_pieces, max_size=8).map("".join))
@example("#/a")
def test_a_route_is_kept_or_removed_whole(fragment: str) -> None:
    normal = normalise_url("http://a.b/c#" + fragment)
    kept = normal.removeprefix("http://a.b/c")
    assert kept == "" or (kept[:2] in ("#/", "#!") and "#" not in kept[1:] and ":~:" not in kept and kept.strip("#!/"))
    assert normalise_url(normal) == normal


@pytest.mark.parametrize(
    ("fragment", "kept"),
    [
        ("/" + "r" * 5000, "#/" + "r" * 86),
        ("/" + "r" * 80 + "é" * 9, "#/" + "r" * 80 + "%C3%A9"),
        ("/" + "r" * 85 + "é", "#/" + "r" * 85),
        ("/" + "r" * 86 + "#" + "x" * 5000, "#/" + "r" * 86),
        ("x" * 5000, ""),
    ],
    ids=["long", "between two bytes", "within an encoded byte", "long anchor", "no route"],
)
def test_a_route_that_does_not_fit_is_cut_off(fragment: str, kept: str) -> None:
    url = "http://a.b/c"
    normal = normalise_url(f"{url}#{fragment}", 100)
    assert normal == url + kept
    assert normalise_url(normal, 100) == normal
    with pytest.raises(BadPage, match="more than 100 bytes"):
        normalise_url(f"http://a.b/{'c' * 90}", 100)


@pytest.mark.parametrize(("room", "kept"), [(0, ""), (1, ""), (2, ""), (3, "#/r"), (5, "#/red")])
def test_a_route_without_room_is_removed(room: int, kept: str) -> None:
    url = "http://a.b/" + "c" * (89 - room)
    assert normalise_url(f"{url}#/red", 100) == url + kept


@given(st.binary(max_size=20), st.booleans())
def test_bytes_of_urls_are_percent_encoded_one_by_one(data: bytes, in_route: bool) -> None:
    data = bytes(byte for byte in data if byte > 0x20 and byte not in b"#?/.\x7f%")
    url = "http://a/" + "#/x" * in_route + data.decode("utf-8", "surrogateescape")
    assert unquote_to_bytes(normalise_url(url)).removeprefix(b"http://a/" + b"#/x" * in_route) == data
    assert normalise_url(without_surrogates(url)) == normalise_url(url)
    without_surrogates(url).encode()


@given(st.lists(_pieces, max_size=12).map("".join))
def test_fast_path_is_the_slow_path(rest: str) -> None:
    url = "http://a.b/" + rest
    fast = bool(urls._NORMAL.match(url))
    try:
        # A URL with a fragment takes the slow path, which removes this one.
        normal = normalise_url(url + "#" if "#" not in url else url)
    except BadPage:
        assert not fast
        return
    if fast:
        assert normal == url


def test_messages_about_hostile_urls_are_short() -> None:
    for url in ("http://a/" + "/.." * 9000, "http://" + "a-" * 1000 + "\x80/", "x" * 2000, "\x00" * 2000):
        with pytest.raises(BadPage) as error:
            normalise_url(url)
        assert len(str(error.value)) < 1000


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://a.example/b", "a.example"),
        ("http://u:p@a.example:8080/@x:y", "a.example"),
        ("http://[::1]:8080/", "[::1]"),
        ("file:///a/b", ""),
    ],
)
def test_host(url: str, host: str) -> None:
    assert host_of(url) == host


@pytest.mark.parametrize(
    ("host", "hen", "site"),
    [
        ("www.cs.berkeley.edu", "cs.berkeley.edu", "berkeley.edu"),  # the paper's example
        ("berkeley.edu", "berkeley.edu", "berkeley.edu"),
        ("localhost", "localhost", "localhost"),
        ("www.bbc.co.uk", "bbc.co.uk", "bbc.co.uk"),
        ("bbc.co.uk.", "co.uk", "bbc.co.uk"),  # the paper's rule is that crude
        ("someone.github.io", "github.io", "someone.github.io"),
        ("github.io", "github.io", "github.io"),
        ("www.xn--85x722f.xn--55qx5d.cn", "xn--85x722f.xn--55qx5d.cn", "xn--85x722f.xn--55qx5d.cn"),
        ("192.168.10.1", "192.168.10.1", "192.168.10.1"),
        ("[2001:db8::1]", "[2001:db8::1]", "[2001:db8::1]"),
        ("1.2.3.256", "2.3.256", "3.256"),  # no address
        ("", "", ""),
    ],
)
def test_sites(host: str, hen: str, site: str) -> None:
    assert hen_site(host) == hen
    assert site_of(host) == site


def test_sites_are_cached_within_a_bound() -> None:
    assert site_of.cache_info().maxsize == 1 << 16
