"""Small archives for tests: the same pages as WARC, gzip WARC, folder and JSON lines; and what scans them."""

import base64
import gzip
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from neardup.scheme import Scheme
from streams.scan import reading, sketcher
from streams.state.scan_directory import ScanDirectory

SCHEME = Scheme(seed=7)
WORDS = [
    *("amber", "basin", "cedar", "delta", "ember", "fjord", "grove", "harbor"),
    *("island", "jungle", "kernel", "lagoon", "meadow", "nectar", "orchid"),
]


def opened(path: Path | None) -> ScanDirectory:
    """A state whose sketches are the same on every run."""
    return ScanDirectory.open(path, scheme=SCHEME)


def small_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes a message of each three pages."""
    monkeypatch.setattr(sketcher, "MESSAGE_PAGES_MAX", 3)
    monkeypatch.setattr(reading, "BATCH_PAGES_MAX", 3)


def verdicts_in(path: Path) -> list[dict[str, Any]]:
    """The verdicts in a file."""
    return [json.loads(line) for line in path.read_text().splitlines()]


@dataclass(frozen=True)
class Sample:
    """One page of a test crawl; ms is its date."""

    path: str
    body: bytes
    ms: int = 1_577_836_800_000
    status: int = 200


def text(number: int, words: int = 120) -> str:
    """Words that differ from those of any other number, the same on every machine."""
    return " ".join(f"{WORDS[(number * 7 + i * i) % len(WORDS)]}{number}x{i // 3}" for i in range(words))


def html(title: str, body: str) -> bytes:
    return f"<html><head><title>{title}</title></head><body><p>{body}</p></body></html>".encode()


def crawl(pages: int = 12) -> list[Sample]:
    """Distinct pages, with an exact copy after every third and an edited copy after every fourth."""
    out = []
    for i in range(pages):
        out.append(Sample(f"page{i}.html", html(f"Item {WORDS[i % 15]}{i}", text(i)), 1_577_836_800_000 + i * 1000))
        if i % 3 == 2:
            out.append(Sample(f"copy{i}.html", out[-1].body, out[-1].ms + 100))
        if i % 4 == 3:
            body = html(f"Item {WORDS[i % 15]}{i}", text(i) + f" visited {i} times today")
            out.append(Sample(f"edit{i}.html", body, out[-1].ms + 200))
    return out


def date(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def record(
    url: str | None,
    content: bytes,
    *,
    kind: str = "response",
    media: str = "application/http; msgtype=response",
    length: int | str | None = None,
    when: str = "2020-01-01T00:00:00Z",
) -> bytes:
    """One WARC record around `content`; `length` is what it claims, if not the truth."""
    lines = ["WARC/1.0", f"WARC-Type: {kind}"]
    if url is not None:
        lines.append(f"WARC-Target-URI: {url}")
    lines += [f"WARC-Date: {when}", f"Content-Type: {media}"]
    lines.append(f"Content-Length: {len(content) if length is None else length}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + content + b"\r\n\r\n"


def http(body: bytes, *headers: str, status: int = 200, content_type: str = "text/html") -> bytes:
    lines = [f"HTTP/1.1 {status} OK", f"Content-Type: {content_type}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def records(samples: Sequence[Sample], base: str = "http://a.example/") -> list[bytes]:
    return [record(base + s.path, http(s.body, status=s.status), when=date(s.ms)) for s in samples]


def write_warc(path: Path, samples: Sequence[Sample], base: str = "http://a.example/") -> Path:
    parts = records(samples, base)
    path.write_bytes(b"".join(gzip.compress(p, mtime=0) if path.suffix == ".gz" else p for p in parts))
    return path


def write_folder(path: Path, samples: Sequence[Sample]) -> Path:
    for sample in samples:
        file = path / sample.path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(sample.body)
        os.utime(file, ns=(sample.ms * 1_000_000, sample.ms * 1_000_000))
    return path


def json_line(sample: Sample, base: str, *, encoded: bool) -> bytes:
    body = {"base64": base64.b64encode(sample.body).decode()} if encoded else sample.body.decode()
    page = {"url": base + sample.path, "body": body, "content_type": "text/html", "fetched_at": sample.ms}
    return json.dumps({**page, "http_status": sample.status}).encode() + b"\n"


def write_json_lines(path: Path, samples: Sequence[Sample], base: str = "http://a.example/") -> Path:
    data = b"".join(json_line(s, base, encoded=bool(i % 2)) for i, s in enumerate(samples))
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    return path


def write_each_form(folder: Path, samples: Sequence[Sample]) -> list[Path]:
    """The samples as an archive, as a folder and as lines of JSON, compressed and not."""
    return [
        write_warc(folder / "a.warc", samples),
        write_warc(folder / "a.warc.gz", samples),
        write_folder(folder / "folder", samples),
        write_json_lines(folder / "a.jsonl", samples),
        write_json_lines(folder / "a.ndjson.gz", samples),
    ]
