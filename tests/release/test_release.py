"""A release: versions, wheel, sdist, metadata; installed, and used as a user would."""

import email
import os
import platform
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Sequence
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

from tests import whole
from tests.release.building import LISTED, REPOSITORY, build, copy, unpack
from tests.streams.shell import site

PYTHONS = ("3.11", "3.12", "3.13")


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    return found


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Wheel and sdist; and the wheel once more, built of the sdist."""
    folder = tmp_path_factory.mktemp("release")
    for name in ("dist", "again"):
        (folder / name).mkdir()
    made = build(copy(folder / "source"), folder / "dist", "wheel", "sdist")
    again = build(unpack(made["sdist"], folder / "unpacked"), folder / "again", "wheel")
    return {**made, "again": again["wheel"], "source": folder / "unpacked"}


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(archive.read(name))


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_changelog_begins_with_this_version(project: dict[str, Any]) -> None:
    first = re.search(
        r"^## (\S+)(?: \((unreleased|\d{4}-\d{2}-\d{2})\))?$", (REPOSITORY / "CHANGELOG.md").read_text(), re.M
    )
    assert first is not None
    assert first[1] == project["version"]


def test_metadata_of_the_wheel(built: dict[str, Path], project: dict[str, Any]) -> None:
    values = metadata(built["wheel"])
    assert (values["Name"], values["Version"]) == ("neardup", project["version"])
    assert values["License-Expression"] == "Apache-2.0"
    assert values["License-File"] == "LICENSE"
    assert sorted(values["Requires-Python"].split(",")) == ["<3.14", ">=3.11"]
    assert set(values.get_all("Provides-Extra") or ()) == set(project["optional-dependencies"])
    assert values["Description-Content-Type"] == "text/markdown"
    assert "## Scan a crawl" in values.get_payload()
    named = {each for each in values.get_all("Classifier") or () if re.search(r":: 3\.\d+$", each)}
    assert named == {f"Programming Language :: Python :: {version}" for version in PYTHONS}
    assert values.get_all("Project-URL") is None, "no place is named that does not exist"


def test_the_wheel_holds_all_that_a_program_reads_and_nothing_else(built: dict[str, Path]) -> None:
    found = contents(built["wheel"])
    tops = {name.split("/")[0] for name in found}
    assert tops == {"neardup", "streams", next(top for top in tops if top.endswith(".dist-info"))}
    for package in ("neardup", "streams"):
        assert f"{package}/py.typed" in found
        listed = subprocess.run(
            [*LISTED, package],
            cwd=REPOSITORY,
            capture_output=True,
            check=True,
            text=True,
        ).stdout.split()
        assert set(listed) == {name for name in found if name.startswith(f"{package}/")}
    (scripts,) = (data for name, data in found.items() if name.endswith("entry_points.txt"))
    assert scripts.split() == [b"[console_scripts]", b"neardup", b"=", b"streams.commands:main"]


def test_the_sdist_makes_the_same_wheel_and_brings_its_tests(built: dict[str, Path]) -> None:
    assert contents(built["again"]) == contents(built["wheel"])
    (source,) = built["source"].iterdir()
    for name in (
        "Makefile",
        "requirements.lock",
        "LICENSE",
        "CHANGELOG.md",
        "tests/conftest.py",
        "helm/neardup/Chart.yaml",
    ):
        assert (source / name).is_file(), name
    for name in (".git", ".venv", "build", "demo", "neardup/compiled"):
        assert not (source / name).exists(), name


def test_a_wheel_with_compiled_kernels_fits_one_python(tmp_path: Path) -> None:
    source = copy(tmp_path / "source")
    compiled = source / "neardup" / "compiled" / "x86-64-v3" / "kernels-0" / "walk.nbc"
    compiled.parent.mkdir(parents=True)
    compiled.write_bytes(b"code")
    made = build(source, tmp_path, "wheel", "sdist")
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}-none-manylinux_2_17_{platform.machine()}"
    assert made["wheel"].name.endswith(f"-{tag}.whl")
    assert contents(made["wheel"])[compiled.relative_to(source).as_posix()] == b"code"
    assert not (unpack(made["sdist"], tmp_path / "sdist") / "neardup" / "compiled").exists()


def test_builds_are_reproducible(built: dict[str, Path], tmp_path: Path) -> None:
    (source,) = built["source"].iterdir()
    assert build(source, tmp_path, "wheel")["wheel"].read_bytes() == built["again"].read_bytes()


def installed(wheel: Path, folder: Path) -> Path:
    """The wheel alone in a folder, its dependencies those of this environment."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", folder, wheel]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def test_installed_wheel_runs(built: dict[str, Path], project: dict[str, Any], tmp_path: Path) -> None:
    place = installed(built["wheel"], tmp_path / "place")
    environment = {**os.environ, "PYTHONPATH": str(place)}
    script = [sys.executable, place / "bin" / "neardup"]
    result = subprocess.run([*script, "--version"], env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert result.stdout == f"neardup {project['version']}\n", result.stderr
    where = "import neardup, streams.commands; print(neardup.__file__, streams.commands.__file__)"
    result = subprocess.run(
        [sys.executable, "-c", where], env=environment, cwd=tmp_path, capture_output=True, text=True
    )
    assert result.stdout.count(str(place)) == 2, "the source tree is tested instead"
    schema = subprocess.run(
        [*script, "config", "schema"], env=environment, cwd=tmp_path, capture_output=True, text=True
    )
    assert '"$schema"' in schema.stdout, "a file of the package is read"


def test_workflow_runs_check_and_test_on_each_python_and_test_all_each_night() -> None:
    yaml = pytest.importorskip("yaml")
    (path,) = (REPOSITORY / ".github" / "workflows").glob("*.yaml")
    jobs = yaml.safe_load(path.read_text())["jobs"]
    commands = [step.get("run", "") for job in jobs.values() for step in job["steps"]]
    assert commands.count("make check") == 1
    assert commands.count("make test") == 1
    assert commands.count("make test-all") == 1
    assert "schedule" in jobs["test-all"]["if"]
    for name, job in jobs.items():
        if name not in ("newest-numba", "test-all"):
            assert tuple(job["strategy"]["matrix"]["python"]) == PYTHONS
        assert job["timeout-minutes"]
        for step in job["steps"]:
            if "uses" in step:
                assert re.fullmatch(r"actions/[a-z-]+@v\d+", step["uses"]), "by the forge itself alone"
    assert yaml.safe_load(path.read_text())["permissions"] == {"contents": "read"}


# The long form.


def pythons() -> Sequence[str]:
    """Interpreters of the versions that are named, where they are here and run; the short form needs none."""
    if not whole.chosen():
        return [sys.executable]
    found = []
    for version in PYTHONS:
        candidates = [
            shutil.which(f"python{version}"),
            *map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin/python")),
        ]
        for each in filter(None, candidates):
            result = subprocess.run([each, "-V"], capture_output=True, text=True)
            if result.stdout.startswith(f"Python {version}."):
                found.append(each)
                break
    return found or [sys.executable]


#: Modules that their extras bring; each is imported, and with it all that it imports in turn.
MODULES = """
import importlib, pkgutil, neardup, streams
count = 0
for package in (neardup, streams):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if module.name != "streams.partition.spark":
            importlib.import_module(module.name)
            count += 1
print(count)
"""
TYPED = """
from neardup import Page, Verdict, open_index

def kinds(page: Page) -> list[str]:
    with open_index() as index:
        verdicts: list[Verdict] = list(index.add([page]))
        return [verdict.verdict for verdict in verdicts]

reveal_type(kinds(Page("https://a.example/", b"")))
kinds("no page")
"""


@pytest.mark.whole
@pytest.mark.parametrize("python", pythons())
@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_release_is_installed_and_used(
    built: dict[str, Path], project: dict[str, Any], tmp_path: Path, python: str, kind: str
) -> None:
    """With every extra but Spark's engine of 480 MB in fresh environments, from the package index."""
    place = tmp_path / "env"
    subprocess.run([python, "-m", "venv", place], check=True)
    extras = ",".join(name for name in project["optional-dependencies"] if name != "spark")
    lock = REPOSITORY / "requirements.lock"
    command = [place / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", "mypy"]
    # The lock's versions, without its hashes: what a user gets may be newer, but then a test would be of others' news.
    pins = "\n".join(re.findall(r"^([a-z0-9-]+==[^\\\n]+?) *\\?$", lock.read_text(), re.MULTILINE))
    (tmp_path / "pins.txt").write_text(pins + "\n")
    result = subprocess.run(
        [*command, "--constraint", tmp_path / "pins.txt", f"{built[kind]}[{extras}]"], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    assert subprocess.run([place / "bin" / "pip", "check"], capture_output=True).returncode == 0

    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "NEARDUP"))}
    run: dict[str, Any] = {"cwd": tmp_path, "env": environment, "capture_output": True, "text": True}
    result = subprocess.run([place / "bin" / "neardup", "--version"], **run)
    assert result.stdout == f"neardup {project['version']}\n", result.stderr
    result = subprocess.run([place / "bin" / "python", "-c", MODULES], **run)
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) > 150

    site(tmp_path / "site")
    result = subprocess.run([place / "bin" / "neardup", "scan", "site", "--memory", "--out", "-"], **run)
    assert [re.findall(r'"verdict":"(\w+)"', line)[0] for line in result.stdout.splitlines()] == [
        *("unique", "near_duplicate", "unique"),
    ], result.stderr

    (tmp_path / "user.py").write_text(TYPED)
    result = subprocess.run([place / "bin" / "mypy", "--strict", "user.py"], **run)
    assert "Revealed type is" in result.stdout, result.stdout
    assert "list[" in result.stdout
    assert 'has incompatible type "str"; expected "Page"' in result.stdout, "types are not seen from outside"
    assert result.stdout.count("error:") == 1, result.stdout
