"""The demo: real HTML documentation of several releases, packed as a crawl, scanned, and checked by path.

    python deploy/demo/demo.py FOLDER

FOLDER is made, and only files below it are written. Downloads are kept there, so that a second run needs no network.
"""

import argparse
import gzip
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

#: Source packages that carry their documentation as HTML, oldest release first: the order of the crawl.
RELEASES = [
    {"alembic": "1.13.1", "Mako": "1.3.2", "dogpile.cache": "1.3.1", "docutils": "0.20.1"},
    {"alembic": "1.15.1", "Mako": "1.3.5", "dogpile.cache": "1.3.3", "docutils": "0.21.2"},
    {"alembic": "1.16.1", "Mako": "1.3.8", "dogpile.cache": "1.3.4", "docutils": "0.22"},
]

#: A secret in earnest; here every run shall sample the same words.
SEED = 7


class DocumentationPage(NamedTuple):
    url: str
    fetched_at: int  # seconds since the epoch
    body: bytes


def fetch(package: str, version: str, folder: Path) -> Path:
    """The source package as a file in `folder`, downloaded with pip if it is not there yet."""
    target = folder / f"{package}-{version}"
    if not target.is_dir():
        scratch = folder / f".{package}-{version}"
        shutil.rmtree(scratch, ignore_errors=True)
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
        ]
        command += ["--no-binary", ":all:", "--dest", str(scratch), f"{package}=={version}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"pip could not download {package}=={version}:\n{done.stderr.strip()[-2000:]}")
        scratch.rename(target)
    return next(target.iterdir())


def documents(archive: Path, package: str, version: str) -> Iterator[DocumentationPage]:
    """The HTML files of a source package, as pages of a site of its own."""
    with tarfile.open(archive) as tar:
        for member in sorted(tar.getmembers(), key=lambda m: m.name):
            path = member.name.partition("/")[2]
            if not (member.isfile() and path.endswith(".html")):
                continue
            file = tar.extractfile(member)
            if file is not None:
                site = package.lower().replace(".", "-")
                yield DocumentationPage(f"https://{site}.example/{version}/{path}", int(member.mtime), file.read())


def record(document: DocumentationPage) -> bytes:
    """One gzip member with one WARC response record."""
    http = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(document.body)
    block = http + document.body
    name = hashlib.md5(document.url.encode(), usedforsecurity=False).hexdigest()
    head = (
        "WARC/1.1\r\nWARC-Type: response\r\n"
        f"WARC-Record-ID: <urn:uuid:{name[:8]}-{name[8:12]}-{name[12:16]}-{name[16:20]}-{name[20:]}>\r\n"
        f"WARC-Target-URI: {document.url}\r\n"
        f"WARC-Date: {datetime.fromtimestamp(document.fetched_at, UTC):%Y-%m-%dT%H:%M:%SZ}\r\n"
        f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return gzip.compress(head.encode() + block + b"\r\n\r\n", mtime=0)


def pack(folder: Path) -> Path:
    """The whole crawl as folder/crawl.warc.gz, made once."""
    crawl = folder / "crawl.warc.gz"
    if crawl.exists():
        return crawl
    downloads = folder / "packages"
    downloads.mkdir(exist_ok=True)
    required = [(package, version) for release in RELEASES for package, version in release.items()]
    print(f"fetching {len(required)} source packages with pip, real documentation of three releases", flush=True)
    with ThreadPoolExecutor(4) as pool:
        archives = list(pool.map(lambda w: fetch(*w, downloads), required))
    print(f"packing their pages as a crawl: {crawl}", flush=True)
    scratch = folder / "crawl.warc.gz.part"
    with scratch.open("wb") as out:
        for archive, (package, version) in zip(archives, required, strict=True):
            for document in documents(archive, package, version):
                out.write(record(document))
    scratch.rename(crawl)
    return crawl


def check(verdicts: Path) -> None:
    """Prints how many same-path pages of neighbouring releases were found, and how many merges cross paths."""
    position = {(p.lower().replace(".", "-"), v): i for i, release in enumerate(RELEASES) for p, v in release.items()}
    seen: set[tuple[int, str, str]] = set()
    neighbours: Counter[str] = Counter()
    merges = crossing = 0
    for line in verdicts.read_text().splitlines():
        verdict = json.loads(line)
        release, site, path = _split(verdict["url"], position)
        outcome = "thin" if verdict["verdict"] == "unique" and verdict.get("thin") else verdict["verdict"]
        if verdict["verdict"] in ("exact_duplicate", "near_duplicate"):
            merges += 1
            _, *other = _split(verdict["representative"]["url"], position)
            outcome = "found" if [site, path] == other else "elsewhere"
            crossing += outcome == "elsewhere"
        if (release - 1, site, path) in seen:
            neighbours[outcome] += 1
        seen.add((release, site, path))
    print(f"pages with the same path in the release before: {neighbours.total()}")
    print(f"  {neighbours['found']} found as duplicates of an earlier release of themselves,")
    print(f"  {neighbours['elsewhere']} of a page with another path (its own copy is one, too),")
    print(f"  {neighbours['same_content']} found as the same content in other surroundings,")
    print(f"  {neighbours['thin']} too thin to judge, {neighbours['unique']} changed too much or named otherwise")
    print(f"merges: {merges}, of which {crossing} across different paths")


def _split(url: str, position: dict[tuple[str, str], int]) -> tuple[int, str, str]:
    parts = urlsplit(url)
    site = (parts.hostname or "").removesuffix(".example")
    version, _, path = parts.path.lstrip("/").partition("/")
    return position[site, version], site, path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    folder.mkdir(exist_ok=True)
    crawl = pack(folder)
    for made in (folder / "state", folder / "verdicts.jsonl", folder / "report.html"):
        if made.is_dir():
            shutil.rmtree(made)
        else:
            made.unlink(missing_ok=True)
    command = [str(Path(sys.executable).with_name("neardup")), "scan", str(crawl)]
    command += ["--state", str(folder / "state"), "--out", str(folder / "verdicts.jsonl")]
    command += ["--report", str(folder / "report.html")]
    print(
        f"scanning it with seed {SEED}, always the same, so that every run says the same: {shlex.join(command)}",
        flush=True,
    )
    done = subprocess.run(command, check=False, env={**os.environ, "NEARDUP_SEED": str(SEED)})
    if done.returncode:
        raise SystemExit(done.returncode)
    print("checking the verdicts by the paths of the pages")
    check(folder / "verdicts.jsonl")
    print(f"look at {folder / 'report.html'}; then try: {command[0]} explain URL --state {folder / 'state'}")


if __name__ == "__main__":
    main()
