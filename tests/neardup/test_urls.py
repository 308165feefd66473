import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup import urls
from neardup.errors import BadPage
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
        "http://a/\ud800",
        "http://\ud800/",
        "http://a/" + "x" * 2040,
        "http://a/" + "ä" * 400,
    ],
)
def test_what_is_no_url_is_a_bad_page(url: str) -> None:
    with pytest.raises(BadPage):
        normalise_url(url)


def test_length_cap_counts_the_normal_form() -> None:
    url = "http://a/" + "x" * 2039
    assert normalise_url(url) == url
    assert normalise_url("http://a/" + "x" * 2039 + "#" + "y" * 5000) == url
    with pytest.raises(BadPage, match="16 bytes"):
        normalise_url("http://a/ääää", 16)


def test_every_percent_encoding() -> None:
    for code in range(256):
        char = chr(code)
        kept = not (char.isascii() and (char.isalnum() or char in "-._~"))
        for form in (f"%{code:02X}", f"%{code:02x}"):
            assert normalise_url(f"http://a/b{form}") == "http://a/b" + (f"%{code:02X}" if kept else char)


_pieces = st.sampled_from(
    ("%", "%2", "%2e", "%7e", "%41", "..", ".", "/", "//", "?", "#", "[", "]", "@", ":", ":80", "a", "A", "1", "-")
) | st.sampled_from(("ß", "ü", "。", "\u200d", "\u0130", "\u2100", "~", "|", " ", "\\", "xn--"))


@given(
    st.sampled_from(["http://", "https://", "HTTP://", "ftp://", "file://", "x+y://"]),
    st.lists(_pieces | st.text(max_size=3), max_size=12).map("".join),
)
@example("http://", "a/%%32%65")
@example("http://", "a/%2e/%2e%2e/..")
def test_normal_form_is_ascii_and_its_own_normal_form(scheme: str, rest: str) -> None:
    try:
        normal = normalise_url(scheme + rest)
    except BadPage:
        return
    assert normal.isascii()
    assert normalise_url(normal) == normal
    assert re.fullmatch(r"[a-z0-9._-]*|\[[0-9a-f:]+\]", host_of(normal))


@given(st.lists(_pieces, max_size=12).map("".join))
def test_fast_path_is_the_slow_path(rest: str) -> None:
    url = "http://a.b/" + rest
    fast = bool(urls._NORMAL.match(url))
    try:
        # A fragment takes the slow path and leaves no trace.
        normal = normalise_url(url.partition("#")[0] + "#")
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
