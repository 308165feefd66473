"""The demo of the stream ends by itself, on Ctrl-C and when it is killed, and leaves no process behind."""

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from broker import PATIENCE_SECONDS, eventually

from tests import processes, whole
from tests.streams import archives
from tests.streams.conftest import shell
from tests.streams.shell import Shell

__all__ = ["shell"]

pytestmark = [pytest.mark.broker, pytest.mark.whole]

SCRIPT = Path(__file__).resolve().parents[2] / "deploy" / "demo" / "demo_kafka.py"
CRAWL = archives.crawl(12)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Its crawl is packed already, so that nothing is downloaded."""
    archives.write_warc(tmp_path / "crawl.warc.gz", CRAWL)
    return tmp_path


def start(folder: Path, *arguments: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-u", str(SCRIPT), str(folder), *arguments]
    environment = {**os.environ, "COLUMNS": "200"}
    return processes.start(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment)


def lines_to(demo: "subprocess.Popen[str]", wanted: str) -> list[str]:
    assert demo.stdout is not None
    lines: list[str] = []
    for line in demo.stdout:
        lines.append(line.rstrip())
        if wanted in line:
            return lines
    raise AssertionError("\n".join(lines))


def left(text: list[str], folder: Path) -> list[str]:
    """Command lines of processes that belong to the demo: they name its folder or its broker."""
    address = re.findall(r"Kafka runs at (\S+)", "\n".join(text))
    found = []
    for entry in Path("/proc").iterdir():
        try:
            command = (entry / "cmdline").read_text().replace("\0", " ") if entry.name.isdigit() else ""
        except OSError:  # it has just ended
            continue
        if any(name in command for name in (str(folder), *address)):
            found.append(command)
    return found


@pytest.mark.parametrize("ends_by", whole.first([None, signal.SIGINT, signal.SIGKILL], 1))
def test_demo_shows_the_verdicts_of_a_scan_and_ends_its_processes(
    folder: Path, ends_by: signal.Signals | None, shell: Shell
) -> None:
    """ends_by: the signal that ends a demo that stays; None: it ends by itself."""
    demo = start(folder, *(["--stay"] if ends_by else []))
    try:
        output = lines_to(demo, "Ctrl-C ends all of it" if ends_by else "Everything has ended")
        if ends_by:
            assert len(left(output, folder)) >= 4  # itself, Kafka, both roles
            demo.send_signal(ends_by)
        out, _ = demo.communicate(timeout=PATIENCE_SECONDS)
    finally:
        demo.kill()
        demo.communicate()
    assert demo.returncode == (-ends_by if ends_by == signal.SIGKILL else 0), out
    assert "Traceback" not in out
    eventually(lambda: not left(output, folder), "the end of Kafka and both roles")

    scanned = folder / "scanned.jsonl"
    shell("scan", str(folder / "crawl.warc.gz"), "--state", str(folder / "scan"), "--out", str(scanned), "--quiet")
    rows = [line.split() for line in output if re.match(r"\s+\d+  \w+ .*http://a.example/", line)]
    wanted = [json.loads(line) for line in scanned.read_bytes().splitlines()]
    found = [(row[1], next(word for word in row if word.startswith("http"))) for row in rows]
    assert found == [(one["verdict"], one["url"]) for one in wanted]
    assert any(line.startswith(f"{len(CRAWL)} verdicts in ") for line in output)
    if not ends_by:
        assert output[-1].rstrip().endswith("STAY=1")
    assert any(re.fullmatch(r" +\d+  unique +No earlier page is a duplicate.*", line.rstrip()) for line in output)
    with sqlite3.connect(folder / "stream" / "index.db") as db:
        urls = {url for (url,) in db.execute("SELECT url FROM pages")}
        hidden = dict(db.execute("SELECT url, duplicate_of FROM pages WHERE duplicate_of IS NOT NULL"))
    assert urls == {f"http://a.example/{sample.path}" for sample in CRAWL}
    assert hidden["http://a.example/copy2.html"] == "http://a.example/page2.html"
