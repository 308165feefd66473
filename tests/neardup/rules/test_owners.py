"""Owners of URLs: kernels, the index and the oracle find the same ones as `owner_of`, however odd a URL is."""

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from neardup.errors import BadPage
from neardup.index import naming_rows
from neardup.kernels import urls
from neardup.kernels.urls import same_owner
from neardup.page import Page
from neardup.scheme import Scheme
from neardup.sketch.header import Header
from neardup.sketch.layout import RecordSection
from neardup.sketch.make_sketches import sketch_pages
from neardup.urls import USER_FOLDERS, VIEWS, normalise_url, owner_of
from tests.oracle.sketches import owner

_SCHEMES = st.sampled_from(("http", "https", "ftp", "file", "x+y", "HTTP"))
_USERS = st.sampled_from(("", "", "u@", "u:p@", "@", "a@b@", "%40@", "~@", "/@"))
_PORTS = ("a.example:8080", "1.2.3.4:80", "[::1]:8080")
_HOSTS = st.sampled_from(
    (
        "a.example",
        "www.a.example",
        "m.a.example",
        "mobile.a.example",
        "amp.a.example",
        "print.a.example",
        "print",
        "m.",
        "mobiles.a.example",
        "www.m.a.example",
        "www.www.a",
        "www.",
        "www",
        "wwww.a",
        "1.2.3.4",
        "[::1]",
        "[2001:db8::1]",
        "",
        *_PORTS,
    )
)
_PATHS = st.lists(
    st.sampled_from(
        (
            *("/", "/", "@", "~", "@ann", "~bob", "users/", "u/", "user", "?", "#", "#!", "#/"),
            *("%40", "%7E", "%2F", "..", ".", ":", "a", "[", "ü"),
        )
    ),
    max_size=6,
).map("".join)


@st.composite
def _urls(draw):
    url = f"{draw(_SCHEMES)}://{draw(_USERS)}{draw(_HOSTS)}/{draw(_PATHS)}"
    try:
        return normalise_url(url)
    except BadPage:
        assume(False)


def _one_owner(a, b):
    """What the kernel says."""
    one, other = a.encode(), b.encode()
    text = np.frombuffer(one + other, np.uint8)
    return bool(same_owner(text, 0, len(one), len(one), len(text)))


def test_views_of_a_site_are_of_one_owner():
    assert {owner_of(f"https://{view}.a.example/x") for view in VIEWS} == {owner_of("https://a.example/x")}
    assert bytes(urls._VIEWS).decode() == "".join(f"{view}." for view in VIEWS)
    assert owner_of("https://ann.a.example/") != owner_of("https://a.example/")


def test_kernels_know_the_folders_of_users():
    assert bytes(urls._USER_FOLDERS).decode() == "".join(f"{folder}/" for folder in USER_FOLDERS)
    for folder in USER_FOLDERS:
        one, other, home = (f"https://a.example/{folder}/{rest}" for rest in ("ann/wool", "bob/wool", "ann/"))
        assert (_one_owner(one, other), _one_owner(one, home)) == (False, True)


@given(_urls(), _urls())
@example("http://www./", "file:///")
@example("http://u:p@www.a:8080/~ann?x", "https://a/~ann/")
@example("http://[::1]:80/@ann", "http://[::1]/@ann?/")
@example("http://a/users/ann/?x", "http://a/users/ann?/")
@example("http://a/u/ann/x", "http://a/u/ann")
@example("http://a/@ann#!/x", "http://a/@ann/y")
@example("http://a/u/ann#/x", "http://a/u/ann")
def test_all_agree_on_owners(a, b):
    expected = owner_of(a) == owner_of(b)
    assert _one_owner(a, b) == expected
    assert (naming_rows.owner(5, a.encode()) == naming_rows.owner(5, b.encode())) == expected
    both = [a.encode(), b.encode()]
    for _ in range(2):  # of unknown hosts, and of known ones
        assert naming_rows.owners([5, 6], both) == [naming_rows.owner(5, both[0]), naming_rows.owner(6, both[1])]
        naming_rows._OWNERS.clear()
    assert (owner(a) == owner(b)) == expected
    assert _one_owner(a, a)


@pytest.mark.parametrize("url", [b"", b"http:/a/b/c", b"http://a.test", b"http://\xff.test/"])
def test_a_record_without_a_url_owner_is_damaged(url):
    """It is refused where the log is read: `owner` would end the matcher without naming the record."""
    (record,) = sketch_pages([Page("http://a.test/long-enough", b"<p>some words")], Scheme(seed=1))
    header = Header(record)
    start, end = header.starts[RecordSection.URL], header.starts[RecordSection.SITE]
    assert header.problem() == ""
    damaged = record[:start] + url.ljust(end - start, b"-") + record[end:]
    assert "its URL is not in normal form" in Header(damaged).problem()
