"""The image: linted, built, inspected; each role run in it as an unprivileged user with a read-only root."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import composed
import images
import pytest
from broker import PATIENCE_SECONDS, eventually, kafka
from images import REPOSITORY, Container
from tools import Tool

from neardup.kernels.kernel_cache import LEVELS
from streams.commands.app import EXTRAS

LOCKED = REPOSITORY / "deploy" / "image" / "locked.py"
VERSION = "9.9.9"
COMPILED = "/opt/neardup/lib/python3.11/site-packages/neardup/compiled"


@pytest.mark.whole
def test_the_dockerfile_is_clean(tool: Tool) -> None:
    result = subprocess.run([tool("hadolint"), REPOSITORY / "deploy" / "Dockerfile"], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout


def locked(*extras: str) -> set[str]:
    command = [sys.executable, LOCKED, REPOSITORY / "pyproject.toml", REPOSITORY / "requirements.lock", *extras]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert len(re.findall(r"--hash=", result.stdout)) >= len(re.findall(r"^\S+==", result.stdout, re.MULTILINE))
    return set(re.findall(r"^([a-z0-9-]+)==", result.stdout, re.MULTILINE))


def test_lock_of_the_image_holds_the_extras_and_no_more() -> None:
    runtime = locked("kafka")
    assert {"numba", "llvmlite", "confluent-kafka", "rocksdict", "rich", "cyclopts", "markupsafe"} <= runtime
    assert not {"pytest", "ruff", "mypy", "scrapy", "aiohttp", "playwright", "hatchling"} & runtime
    assert locked("scrapy") == locked("kafka", "scrapy") >= runtime | {"scrapy", "twisted"}
    assert {"hatchling", "pathspec"} <= locked("--build")


#: Imports what the roles of the image import, where the modules named in the arguments are missing.
WITHOUT = """
import importlib, pkgutil, sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in sys.argv[1:]:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
for name in ("ask", "commands", "roles", "views"):
    package = importlib.import_module(f"streams.{name}")
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)
"""


@pytest.mark.whole
def test_image_has_the_packages_of_its_roles() -> None:
    extras = re.findall(r"fill\.sh /opt/neardup (.*)", (REPOSITORY / "deploy" / "Dockerfile").read_text())[0].split()
    packages = locked(*extras)
    missing = [module for module, extra in EXTRAS.items() if extra not in extras and module not in packages]
    assert {"rapidfuzz", "duckdb"} <= set(missing)
    result = subprocess.run([sys.executable, "-c", WITHOUT, *missing], cwd=REPOSITORY, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


@pytest.fixture(scope="module")
def image(tool: Tool) -> Iterator[Container]:
    for program in ("buildah", "debootstrap"):
        tool(program)
    tag = "localhost/neardup:test"
    images.build("neardup", tag, VERSION=VERSION, REVISION="f00")
    with Container(tag) as container:
        yield container


def run(image: Container, *arguments: str, **how: Any) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(image.command(arguments, **how), capture_output=True, text=True, timeout=PATIENCE_SECONDS)


def volume(path: Path) -> Path:
    """A folder as a volume is: its owner is the image's user."""
    path.mkdir(parents=True, exist_ok=True)
    for each in (path, *path.rglob("*")):
        os.chown(each, 10001, 10001)
    return path


@pytest.mark.whole
def test_image_config_has_version_licence_user_and_entrypoint(image: Container) -> None:
    config = image.config
    labels = config["Labels"]
    assert labels["org.opencontainers.image.version"] == VERSION
    assert labels["org.opencontainers.image.revision"] == "f00"
    assert labels["org.opencontainers.image.base.name"] == images.STANDIN
    assert labels["org.opencontainers.image.licenses"] == "Apache-2.0"
    assert config["User"] == "10001:10001"
    assert config["Entrypoint"] == ["neardup"]
    assert config["Healthcheck"]["Test"][0] == "CMD"
    result = run(image, "--version")
    assert re.fullmatch(r"neardup \d+\.\d+\.\d+\S*\n", result.stdout), result.stderr


@pytest.mark.whole
def test_image_compiles_nothing_and_is_read_only(image: Container) -> None:
    for compiler in ("gcc", "cc", "g++", "clang", "ld", "as", "make"):
        assert not list(image.root.glob(f"usr/**/bin/{compiler}")), compiler
    assert not list((image.root / "opt/neardup").rglob("pip"))
    own = image.root / "opt/neardup"
    for path in (own, *own.rglob("*")):
        status = path.lstat()
        assert status.st_uid == 0, path
        assert path.is_symlink() or not status.st_mode & 0o022, path
    for place in ("/opt/neardup/x", "/etc/x", "/var/lib/neardup/x", "/run/neardup/x"):
        result = run(image, "-c", f"open({place!r}, 'w')", entrypoint=["python3"])
        assert "Read-only file system" in result.stderr, place


@pytest.mark.whole
def test_volumes_of_the_compose_file_get_an_owner_that_may_write(image: Container, tool: Tool) -> None:
    """An empty volume takes over the directory that it is mounted on."""
    tool("docker-compose")
    for name, service in composed.config("demo", "dev", "views", "tools")["services"].items():
        for mount in service.get("volumes", []):
            if "build" in service and mount["type"] == "volume":
                found = (image.root / mount["target"].lstrip("/")).stat()
                assert (found.st_uid, found.st_gid) == (10001, 10001), f"{name}: {mount['target']}"


def crawl(folder: Path) -> Path:
    site = folder / "site"
    site.mkdir(parents=True)
    text = "".join(f"<p>{word} of the wool, as it is told in the book of {word}s" for word in map(str, range(40)))
    for name, more in (("a", ""), ("b", " at 9:41"), ("c", "")):
        (site / f"{name}.html").write_text(f"<title>Wool</title>{text}{more}")
    return volume(folder)


SCAN = ("scan", "/var/lib/neardup/site", "--base-url", "https://a.example/", "--memory", "--out", "-")


def scanned(image: Container, folder: Path, *, empty: Sequence[str] = ("/tmp",)) -> tuple[list[dict[str, Any]], str]:
    result = run(image, *SCAN, volumes={"/var/lib/neardup": folder}, empty=empty, environment={"NEARDUP_SEED": "7"})
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()], result.stderr


@pytest.mark.whole
def test_a_scan_compiles_nothing_on_any_level_and_says_the_same(image: Container, tmp_path: Path) -> None:
    folder = crawl(tmp_path / "state")
    here, values = scanned(image, folder)
    assert [row["verdict"] for row in here] == ["unique", "near_duplicate", "exact_duplicate"]
    assert "compiling" not in values
    levels = [name for name, level in LEVELS.items() if (image.root / f"{COMPILED}/{name}".lstrip("/")).is_dir()]
    assert levels == ["x86-64-v4", "x86-64-v3"] or levels == ["arm64"]
    hidden: list[str] = []
    for best in levels[:-1]:  # as on a processor that does not have it
        hidden.append(f"{COMPILED}/{best}")
        lower, values = scanned(image, folder, empty=("/tmp", *hidden))
        assert lower == here
        assert "compiling" not in values
    assert not (folder / ".cache").exists(), "something was compiled after all"


@pytest.mark.whole
def test_a_processor_of_no_level_compiles_and_says_so(image: Container, tmp_path: Path) -> None:
    folder = crawl(tmp_path / "state")
    rows, values = scanned(image, folder, empty=("/tmp", COMPILED))
    assert "compiling the kernels, once on this machine" in values
    assert [row["verdict"] for row in rows] == ["unique", "near_duplicate", "exact_duplicate"]
    assert (folder / ".cache" / "neardup").exists(), "kept in the volume"


@pytest.mark.whole
def test_roles_run_in_the_image(image: Container, tmp_path: Path) -> None:
    """Against a real broker; the health check that the image names is asked, too."""
    with kafka.Cluster(tmp_path / "kafka") as cluster:
        bootstrap = {"NEARDUP_BOOTSTRAP": cluster.bootstrap}
        assert run(image, "topics", "create", environment=bootstrap).returncode == 0
        volumes = {role: {"/var/lib/neardup": volume(tmp_path / role)} for role in ("match", "views")}
        ports = dict(zip(("sketch", "match", "views"), kafka.free_ports(3), strict=True))
        check = image.config["Healthcheck"]["Test"][1:]

        def healthy(role: str) -> bool:
            port = {"NEARDUP_METRICS_PORT": str(ports[role])}
            return run(image, *check[1:], entrypoint=check[:1], environment=port).returncode == 0

        assert not healthy("match")
        running: Mapping[str, subprocess.Popen[str]] = {
            role: subprocess.Popen(
                image.command(
                    [role, *(("--port", "0") if role == "views" else ())],
                    environment={**bootstrap, "NEARDUP_SEED": "7", "NEARDUP_METRICS_PORT": str(port)},
                    volumes=volumes.get(role, {}),
                ),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for role, port in ports.items()
        }
        try:
            pong = run(image, "topics", "check", "--page", "--json", "--timeout", "120", environment=bootstrap)
            assert pong.returncode == 0, pong.stderr
            assert json.loads(pong.stdout)["verdict"] == "unique"
            for role in ports:
                eventually(lambda role=role: healthy(role), f"{role} is healthy")
        finally:
            for process in running.values():
                process.terminate()
            output = {role: process.communicate(timeout=60)[0] for role, process in running.items()}
        for role, process in running.items():
            assert process.returncode == 0, output[role]
            assert "compiling" not in output[role]
            assert '"stopped"' in output[role]
        state = tmp_path / "match" / "state"
        assert sorted(path.name for path in state.iterdir() if path.name != "lock") >= ["decider.json"]
        assert (state / "index").stat().st_uid == 10001
        assert list((tmp_path / "views" / "views").rglob("*.sst")) or list(
            (tmp_path / "views" / "views").rglob("CURRENT")
        )


@pytest.mark.whole
def test_ask_answers_beside_a_state_with_nothing_to_write_to(image: Container, tmp_path: Path) -> None:
    folder, token, (port,) = crawl(tmp_path / "state"), "of-the-askers-alone", kafka.free_ports(1)
    state = {"/var/lib/neardup": folder}
    scan = ("scan", "/var/lib/neardup/site", "--base-url", "https://a.example/", "--state", "/var/lib/neardup/state")
    result = run(image, *scan, volumes=state, environment={"NEARDUP_SEED": "7"})
    assert result.returncode == 0, result.stderr
    serving = subprocess.Popen(
        image.command(
            ["ask", "/var/lib/neardup/state", "--host", "0.0.0.0", "--port", str(port)],
            environment={"NEARDUP_ASK_TOKEN": token},
            volumes=state,
        ),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    page = {"url": "https://b.example/", "body": (folder / "site" / "b.html").read_text(), "content_type": "text/html"}

    def answer(path: str, given: str = "", body: bytes | None = None) -> tuple[int, bytes]:
        asked = Request(f"http://127.0.0.1:{port}{path}", body, {"Authorization": f"Bearer {given}"})
        try:
            with urlopen(asked, timeout=30) as response:
                return response.status, response.read()
        except HTTPError as error:
            return error.code, b""
        except URLError:
            return 0, b""

    try:
        eventually(lambda: answer("/ready")[0] == 200, "it serves")
        assert answer("/ask", "of-somebody-else", json.dumps(page).encode())[0] == 401
        status, found = answer("/ask", token, json.dumps(page).encode())
        assert status == 200
        assert json.loads(found)["verdict"]["verdict"] == "exact_duplicate"
    finally:
        serving.terminate()
        said = serving.communicate(timeout=60)[0]
    assert serving.returncode == 0, said
    assert "compiling" not in said


@pytest.mark.whole
def test_the_crawler_is_an_image_too(image: Container) -> None:
    tag = "localhost/neardup-crawler:test"
    images.build("crawler", tag, VERSION=VERSION, REVISION="f00")
    with Container(tag) as crawler:
        result = run(crawler, "/opt/demo/crawl.py", "--help")
        assert result.returncode == 2
        assert "NEARDUP_BOOTSTRAP" in result.stdout, result.stderr
        result = run(crawler, "-c", "import scrapy, streams.scrapy, neardup.kernels.kernel_cache as k; print(k.KEPT)")
        assert result.stdout == "False\n", result.stderr
