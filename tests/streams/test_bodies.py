"""Bodies beside Kafka: only what lies under an allowed prefix is read, from any file system, never too much of it."""

from pathlib import Path

import fsspec
import pytest

from neardup.errors import BadPage
from streams.formats.bodies import Bodies


@pytest.fixture
def stored() -> str:
    prefix = "memory://bodies/"
    with fsspec.open(prefix + "a/b.html", "wb") as file:
        file.write(b"<p>wool " * 100)
    return prefix


def test_a_body_elsewhere_is_read_up_to_its_bound(stored: str) -> None:
    assert Bodies([stored], 10_000).read(stored + "a/b.html") == b"<p>wool " * 100
    assert len(Bodies([stored], 10).read(stored + "a/b.html")) == 11  # one more tells that it was cut


@pytest.mark.parametrize(
    "url",
    [
        "memory://bodies/a/none.html",
        "memory://other/a/b.html",
        "memory://bodies/../bodies/a/b.html",
        "memory://bodies/%2e%2e/bodies/a/b.html",
        "simplecache::memory://bodies/a/b.html",
        "memory://bodies/a/b.html?versionId=1",
    ],
)
def test_what_may_not_or_cannot_be_read_is_told(stored: str, url: str) -> None:
    with pytest.raises(BadPage, match="body-ref"):
        Bodies([stored], 10_000).read(url)


def test_a_scheme_that_nothing_reads_is_told() -> None:
    with pytest.raises(BadPage, match="body-ref"):
        Bodies(["nothing://bodies/"], 10_000).read("nothing://bodies/a")


def test_a_link_does_not_lead_out_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "bodies").mkdir()
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "bodies" / "link").symlink_to(tmp_path / "secret")
    prefix = (tmp_path / "bodies").as_uri() + "/"
    with pytest.raises(BadPage, match="out of its prefix"):
        Bodies([prefix], 100).read(prefix + "link")
