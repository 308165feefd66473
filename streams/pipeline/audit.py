"""The audit of a run: an auditor's counts, and its pairs as JSON lines, in a file on this machine or in a topic.

Which pairs are drawn is a function of the log alone, whatever batches its messages come in. To a topic they go in the
transaction of the verdicts that they are about: each once, whatever dies. To a file they go once these verdicts are
out, so a crash may take the lines of the last messages, and what is folded in silence afterwards draws none; a file
never stops a run: what cannot be written is counted, and told once.

    {"version": 1, "audit": "pair", "sample": "rejected", "a": {"page_id": ..., "url": ..., "coordinates": ...},
     "b": {...}, "pair": {"tape_score": ...}, "live": {"rule": ..., "kind": null, "by": "tape"}, "shadow": {...}}
    {"version": 1, "audit": "counts", "pages": ..., "pairs": ..., "live_merges": ..., ...}

a is the earlier page. Counts are those since the counts before: their sum is that of all runs. A file gets them at the
end of a run, a topic in every transaction.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import Any

import orjson

from neardup.clusters.choice import Weighed
from neardup.decider import Decider
from neardup.errors import BadInput
from neardup.limits import PLACE_BITS
from neardup.shadow import AUDIT_VERSION, LIVE_ONLY, Auditor, Counts, Disagreement, shadow_of
from streams.config.settings import OPTIONS
from streams.errors import WrongUsage

_BEGIN = b'{"version":%d,"audit":' % AUDIT_VERSION
RATE = 0.1


class AuditFile:
    """A file that lines are appended to. bytes_max: beyond it the file becomes FILE.1, which is replaced; None: never.

    lost: lines that could not be written.
    """

    def __init__(self, path: Path, bytes_max: int | None, warn: Callable[[str], None]) -> None:
        """Raises BadInput where it cannot be opened, or holds something else."""
        self._path, self._bytes_max, self._warn = path, bytes_max, warn
        self.lost = 0
        if path.exists() and not (path.is_file() or path.is_char_device()):
            raise BadInput(f"cannot write the audit to {path}: not a file")  # a pipe's reader could stop the run
        try:
            self._handle = _open(path)
            start = os.pread(self._handle, len(_BEGIN), 0) if path.is_file() else b""
        except OSError as error:
            raise BadInput(f"cannot write the audit to {path}: {error.strerror}") from error
        if start and start != _BEGIN:
            os.close(self._handle)
            raise BadInput(f"{path} holds something else than an audit, and would be appended to; name another file")
        self._size = os.fstat(self._handle).st_size
        if self._size and os.pread(self._handle, 1, self._size - 1) != b"\n":
            self.write([b"\n"])  # a crash left half a line, which readers count and pass over

    def write(self, lines: Sequence[bytes]) -> None:
        data = b"".join(lines)
        if not data:
            return
        try:
            if self._bytes_max is not None and self._size and self._size + len(data) > self._bytes_max:
                self._rotate()
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

    def _rotate(self) -> None:
        os.replace(self._path, self._path.with_name(self._path.name + ".1"))
        fresh = _open(self._path)
        os.close(self._handle)
        self._handle, self._size = fresh, 0

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)


class Audit:
    """What a run is given: `look` at some messages once their verdicts are out. Use it as a context manager.

    Whoever also writes to a topic takes its lines from `draw` before, and gives those of the file to `write` after.
    """

    def __init__(self, auditor: Auditor, file: AuditFile | None = None) -> None:
        self.auditor = auditor
        self._file = file
        self._told = Counts()

    @property
    def counts(self) -> Counts:
        return self.auditor.counts

    @property
    def lost(self) -> int:
        """Lines that could not be written."""
        return self._file.lost if self._file else 0

    def look(self, weighed: Sequence[Weighed]) -> None:
        self.write(self.draw(weighed))

    def draw(self, weighed: Sequence[Weighed]) -> list[bytes]:
        """The lines of the pairs drawn; all pages are counted. The bounds of a sample are those of one message."""
        messages = groupby(weighed, lambda one: one.page_id >> PLACE_BITS)
        return [line for _, pages in messages for line in self.auditor.look(list(pages))]

    def write(self, lines: Sequence[bytes]) -> None:
        if self._file is not None:
            self._file.write(lines)

    def tell_counts(self) -> None:
        """Writes the counts since they were written last."""
        now = replace(self.counts)
        self.write(self.counts_since(self._told))
        self._told = now

    def counts_since(self, before: Counts) -> list[bytes]:
        """A line; none where nothing was weighed since."""
        since = self.counts.since(before)
        if not since.pages:
            return []
        shadow = self.auditor.shadow
        told = {"version": AUDIT_VERSION, "audit": "counts", "live": self.auditor.live.rule, **asdict(since)}
        return [orjson.dumps(told | ({"shadow": shadow.rule} if shadow else {})) + b"\n"]

    def to_json(self) -> dict[str, int]:
        """The counts; those of a shadow rule or of a file only where there is one."""
        left: set[str] = set() if self.auditor.shadow else {*Disagreement}
        left |= {"drawn", "left_out", "lost"} if self._file is None else set()
        return {name: value for name, value in {**asdict(self.counts), "lost": self.lost}.items() if name not in left}

    def close(self) -> None:
        self.tell_counts()
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> "Audit":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def shadow_numbers(texts: Sequence[str]) -> dict[str, Any]:
    """NAME=NUMBER texts as numbers of the decider. Raises BadInput: unknown, or out of bounds."""
    out: dict[str, Any] = {}
    for text in texts:
        name, _, value = text.strip().partition("=")
        option = OPTIONS.get(f"decider.{name}")
        if option is None or name in ("rule", "sites") or name in LIVE_ONLY:
            raise WrongUsage(f"shadow number {text!r}: there is {', '.join(_numbers())}")
        try:
            out[name] = option.kind.parse(value)
        except (ValueError, TypeError):
            raise WrongUsage(f"shadow number {text!r}: {name} is {option.kind.allowed}") from None
    return out


def _numbers() -> list[str]:
    names = (name.removeprefix("decider.") for name in OPTIONS if name.startswith("decider."))
    return [name for name in names if name not in ("rule", "sites") and name not in LIVE_ONLY]


def open_audit(
    live: Decider,
    *,
    file: Path | None = None,
    topic: str = "",
    rate: float = RATE,
    shadow: str | None = None,
    numbers: Mapping[str, Any] | None = None,
    bytes_max: int | None = None,
    warn: Callable[[str], None],
) -> Audit | None:
    """The audit that some settings ask for, None if they ask for none. topic: its lines are taken by `draw`.

    Raises BadInput.
    """
    if shadow == "signals" and not (numbers or {}).get("model"):
        raise WrongUsage("the shadow rule signals wants a model: shadow-set model=FILE")
    other = shadow_of(live, shadow, numbers or {})
    if file is None and not topic and other is None:
        return None
    if not 0 <= rate <= 1:
        raise WrongUsage(f"audit rate {rate:g}: a share from 0 to 1 is wanted")
    auditor = Auditor(live, other, rate if file is not None or topic else 0.0)
    return Audit(auditor, None if file is None else AuditFile(file, bytes_max, warn))
