"""What sketches depend on besides this program is named by the scheme, and another one is refused."""

import re
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest

from neardup import installed
from neardup.errors import BadInput
from neardup.page import Page
from neardup.scheme import VERSION, Scheme
from neardup.sketch.make_sketches import sketch_pages

SCHEME = Scheme(seed=1)
PAGE = Page("http://a.example/", b"words", "text/plain")


def test_pinned_versions() -> None:
    """A change of these is a change of the default scheme: on purpose, with a line in the changelog, or by accident."""
    assert (SCHEME.public_suffixes, SCHEME.charsets) == ("ce848d8e11ad8014", "cd824456f9b9e8fa")
    assert SCHEME.charset_detection == "charset-normalizer 3.5.2"


@pytest.mark.parametrize("name", ["publicsuffixlist", "charset-normalizer", "webencodings"])
def test_project_requires_the_installed_versions(name: str) -> None:
    project = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert re.search(rf'"{name}==(\S+?)"', project)[1] == version(name)  # type: ignore[index]


@pytest.mark.parametrize("name", installed.NAMES)
def test_a_scheme_of_other_tables_is_another_one_and_sketches_nothing(name: str) -> None:
    other = replace(SCHEME, **{name: "0123456789abcdef"})
    assert other.digest != SCHEME.digest
    assert Scheme.from_json(other.to_json()) == other
    with pytest.raises(BadInput, match=f"{name} is '0123456789abcdef', installed is '.*begin anew"):
        sketch_pages([PAGE], other)


def test_a_scheme_of_another_version_sketches_nothing() -> None:
    for other in (1, VERSION + 1):
        with pytest.raises(BadInput, match=f"version is {other}, .* by version {VERSION}: .*begin anew"):
            sketch_pages([PAGE], replace(SCHEME, version=other))


def test_another_suffix_is_another_list_and_a_comment_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Spec:
        origin = str(tmp_path / "__init__.py")

    def output(text: str) -> str:
        (tmp_path / "public_suffix_list.dat").write_text(text)
        installed.public_suffixes.cache_clear()
        return installed.public_suffixes()

    monkeypatch.setattr(installed, "find_spec", lambda name: Spec)
    try:
        assert output("// of today\ncom\nco.uk // since ever\n") == output("co.uk\n\ncom\n// of tomorrow\n")
        assert output("com\n") != output("com\nco.uk\n")
    finally:
        installed.public_suffixes.cache_clear()


def test_one_character_of_one_charset_makes_others(monkeypatch: pytest.MonkeyPatch) -> None:
    codec_of = installed.codec_of
    for charset in ("koi8-r", "euc-jp", "gb18030", "iso-2022-jp"):
        real = codec_of(charset)

        class Other:
            @staticmethod
            def decode(data: bytes, errors: str, real: object = real) -> tuple[str, int]:
                text, size = real.decode(data, errors)  # type: ignore[attr-defined]
                return text[:-1] + text[-1:].replace("\ufffd", "?").swapcase(), size

        monkeypatch.setattr(
            installed, "codec_of", lambda name, charset=charset: Other if name == charset else codec_of(name)
        )
        installed.charsets.cache_clear()
        try:
            assert installed.charsets() != SCHEME.charsets, charset
        finally:
            installed.charsets.cache_clear()
