"""What single sites want otherwise, from a file: TOML or JSON, for a scan and for the stream."""

from pathlib import Path

import pytest

from neardup.decider import SiteOverride
from neardup.errors import BadInput
from streams.config.load import load
from streams.config.sites import FILE_BYTES_MAX, sites_of
from streams.state.scan_directory import ScanDirectory
from tests.streams.shell import Shell, site

TOML = '["A.example"]\nnever_merge = true\n\n["shop.example"]\ntape_min = 0.9\n'
WANTED = {"a.example": SiteOverride(never_merge=True), "shop.example": SiteOverride(tape_min=0.9)}


def written(folder: Path, text: str) -> Path:
    path = folder / "sites"
    path.write_text(text)
    return path


def test_toml_json_and_tables_say_the_same(tmp_path: Path) -> None:
    assert sites_of(written(tmp_path, TOML)) == WANTED
    text = '{"a.example": {"never_merge": true}, "shop.example": {"tape_min": 0.9}}'
    assert sites_of(written(tmp_path, f"\n {text}")) == WANTED
    assert sites_of(text) == WANTED
    assert sites_of({"a.example": {"never_merge": True}, "shop.example": {"tape_min": 0.9}}) == WANTED
    assert sites_of(written(tmp_path, "")) == {}


def test_the_stream_takes_the_file_where_it_takes_json(tmp_path: Path) -> None:
    path = written(tmp_path, TOML)
    assert load({"NEARDUP_DECIDER__SITES": str(path)}).decider_values["sites"] == WANTED
    with pytest.raises(BadInput, match=r"NEARDUP_DECIDER__SITES\): .*missing: No such file"):
        load({"NEARDUP_DECIDER__SITES": str(tmp_path / "missing")})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.example = 1", "site a: example is no known field; there is never_merge, tape_min, and TOML needs quotes"),
        ('{"a.example": 1}', "site a.example: the value is an integer, and an object is required"),
        ('["a.example"]\ntape_mim = 1', "site a.example: tape_mim is no known field; there is never_merge, tape_min"),
        ('["a.example"]\nnever_merge = 1', "never_merge is an integer, and true or false is required"),
        ('["a.example"]\ntape_min = 1.1', "tape_min is out of range: a number of at most 1 is required"),
        ('["a.example"]\ntape_min = true', "tape_min is true or false, and a number is required"),
        ('["a.example"]\ntape_min = nan', "tape_min is out of range: a number of at least 0 is required"),
        ('["www.a.example"]\n', "'www.a.example' is no registrable domain"),
        ('["a.example"', "neither JSON nor TOML"),
        ('{"a.example": ', "neither JSON nor TOML"),
        pytest.param("#" * (FILE_BYTES_MAX + 1), "more than 10,000,000 bytes", id="too large"),
    ],
)
def test_bad_site_files_are_wrong_usage(text: str, expected: str, shell: Shell) -> None:
    path = written(shell.folder, text)
    site(shell.folder / "site")
    ended = shell("scan", "site", "--base-url", "https://a.example/", "--sites", str(path))
    assert ended.code == 2
    assert expected in ended.err
    assert len(ended.err) < 300
    assert not (shell.folder / "neardup-state").exists()


def test_a_scan_takes_the_file_of_sites(shell: Shell) -> None:
    site(shell.folder / "site")
    path = written(shell.folder, TOML)
    plain = shell("scan", "site", "--base-url", "https://a.example/", "--memory", "--out", "-")
    assert plain.out.count('"verdict":"near_duplicate"') == 1
    heeding = shell("scan", "site", "--base-url", "https://a.example/", "--sites", str(path), "--out", "-")
    assert heeding.code == 0
    assert heeding.out.count('"verdict":"unique"') == 3
    with ScanDirectory.open(shell.folder / "neardup-state") as state:
        assert state.decider.sites == WANTED
    elsewhere = shell(
        "scan", "site", "--base-url", "https://b.example/", "--sites", str(path), "--memory", "--out", "-"
    )
    assert elsewhere.out.count('"verdict":"near_duplicate"') == 1
