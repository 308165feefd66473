"""The audit of a run: counts, and a sample of judged pairs as JSON lines, in a matcher's topic or a scan's file.

Which pairs are drawn is a function of the log alone, whatever the batches. A topic receives them in the transaction of
their verdicts, so each exactly once. A file receives them after these verdicts: a crash may lose the lines of the last
messages, since refolding them draws none. A file never stops a scan: lines that cannot be written are counted, with one
warning.

    {"version": 1, "audit": "pair", "sample": "rejected", "a": {"page_id": ..., "url": ..., "coordinates": ...},
     "b": {...}, "pair": {"tape_score": ...}, "live": {"rule": ..., "kind": null, "by": "tape"}, "shadow": {...}}
    {"version": 1, "audit": "counts", "pages": ..., "pairs": ..., "live_merges": ..., ...}

a is the earlier page. A line of counts holds those since the line before: their sum covers all runs. A file gets one at
the end of a run, a topic one in every transaction.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import orjson

from neardup.decider import Decider
from neardup.errors import BadInput
from neardup.limits import PLACE_BITS
from neardup.matching.outcome import ComparedPage
from neardup.shadow import AUDIT_VERSION, LIVE_ONLY, Auditor, Counts, shadow_of
from neardup.verdict import Disagreement
from streams.config.load import decider_numbers
from streams.errors import WrongUsage, bad_input

_BEGIN = b'{"version":%d,"audit":' % AUDIT_VERSION
RATE = 0.1


class AuditFile:
    """Appends lines to a file. lost: lines that could not be written."""

    def __init__(self, path: Path, warn: Callable[[str], None]) -> None:
        """Raises BadInput for a file that cannot be opened or holds something else."""
        self._path, self._warn = path, warn
        self.lost = 0
        if path.exists() and not (path.is_file() or path.is_char_device()):
            raise BadInput(f"cannot write the audit to {path}: not a file")  # a pipe's reader could block the run
        with bad_input(f"cannot write the audit to {path}"):
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            start = os.pread(self._handle, len(_BEGIN), 0) if path.is_file() else b""
        if start and start != _BEGIN:
            os.close(self._handle)
            raise BadInput(f"{path} holds something else than an audit, and would be appended to; name another file")
        self._size = os.fstat(self._handle).st_size
        if self._size and os.pread(self._handle, 1, self._size - 1) != b"\n":
            self.write([b"\n"])  # a crash left half a line, which readers count and skip

    def write(self, lines: Sequence[bytes]) -> None:
        data = b"".join(lines)
        if not data:
            return
        try:
            left = memoryview(data)
            while left:
                left = left[os.write(self._handle, left) :]
            self._size += len(data)
        except OSError as error:
            if not self.lost:
                self._warn(f"the audit cannot be written to {self._path}: {error.strerror}; the run goes on without it")
            self.lost += len(lines)
            with suppress(OSError):  # half a line would spoil the next one
                os.ftruncate(self._handle, self._size)

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


class Audit:
    """Draws pairs of judged messages. Use it as a context manager.

    A scan calls `record`, which writes them to the file. A matcher sends the lines of `draw` in its transaction.
    """

    def __init__(self, auditor: Auditor, file: AuditFile | None = None) -> None:
        self.auditor = auditor
        self._file = file
        self._written = Counts()

    @property
    def counts(self) -> Counts:
        return self.auditor.counts

    def record(self, weighed: Sequence[ComparedPage]) -> None:
        self._write(self.draw(weighed))

    def draw(self, weighed: Sequence[ComparedPage]) -> list[bytes]:
        """Count all pages; return the lines of the pairs drawn. Samples are bounded per message."""
        messages = groupby(weighed, lambda one: one.page_id >> PLACE_BITS)
        return [line for _, pages in messages for line in self.auditor.look(list(pages))]

    def _write(self, lines: Sequence[bytes]) -> None:
        if self._file is not None:
            self._file.write(lines)

    def write_counts(self) -> None:
        """Write the counts since the last line of counts."""
        now = replace(self.counts)
        self._write(self.counts_since(self._written))
        self._written = now

    def counts_since(self, before: Counts) -> list[bytes]:
        """Return the line of counts; none where no page was judged since."""
        since = self.counts.since(before)
        if not since.pages:
            return []
        shadow = self.auditor.shadow
        line = {"version": AUDIT_VERSION, "audit": "counts", "live": self.auditor.live.rule, **asdict(since)}
        return [orjson.dumps(line | ({"shadow": shadow.rule} if shadow else {})) + b"\n"]

    def to_json(self) -> dict[str, int]:
        """Return the counts; those of a shadow rule or of a file only where there is one."""
        hidden: set[str] = set() if self.auditor.shadow else {*Disagreement}
        lost = {} if self._file is None else {"lost": self._file.lost}
        hidden |= {"drawn", "left_out"} if self._file is None else set()
        return {name: value for name, value in {**asdict(self.counts), **lost}.items() if name not in hidden}

    def close(self) -> None:
        self.write_counts()
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> "Audit":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def shadow_numbers(texts: Sequence[str]) -> dict[str, Any]:
    """Parse NAME=NUMBER texts as numbers of the decider. Raises WrongUsage: unknown, or out of bounds."""
    return decider_numbers(texts, flag="--shadow-set", without=LIVE_ONLY)


def open_audit(
    live: Decider,
    *,
    file: Path | None = None,
    topic: str = "",
    rate: float = RATE,
    shadow: str | None = None,
    numbers: Mapping[str, Any] | None = None,
    warn: Callable[[str], None],
) -> Audit | None:
    """Return the audit that the settings describe, None without any. topic: where the caller sends the lines of `draw`.

    Raises BadInput for an unusable file, WrongUsage for settings that contradict.
    """
    if shadow == "signals" and not (numbers or {}).get("model"):
        raise WrongUsage("the shadow rule signals needs a model: shadow-set model=FILE")
    other = shadow_of(live, shadow, numbers or {})
    if file is None and not topic and other is None:
        return None
    if not 0 <= rate <= 1:
        raise WrongUsage(f"audit rate {rate:g}: must be a share from 0 to 1")
    auditor = Auditor(live, other, rate if file is not None or topic else 0.0)
    return Audit(auditor, None if file is None else AuditFile(file, warn))
