"""The search where atheris does not install: inputs that reach what none before reached are kept, and changed on.

Of the Python of `neardup` and `streams`; what is compiled is not seen, and its bounds are checked as it runs.
"""

import hashlib
import os
import random
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

_SPLICES = (b"\xff" * 8, bytes(8), b"\r\n\r\n", b"9" * 8, b"<", b"&#", b"\x1f\x8b", b'":{"')
#: Of a kept input so many changes are tried one after another before the next one is drawn.
_CHANGES_MAX = 4


def changed(corpus: Sequence[bytes], chance: random.Random) -> bytes:
    """An input of the corpus with one to four changes: bits, cuts, pieces of others, and what readers stumble over."""
    data = bytearray(chance.choice(corpus))
    for _ in range(chance.randrange(1, _CHANGES_MAX + 1)):
        at, end = sorted((chance.randrange(len(data) + 1), chance.randrange(len(data) + 1)))
        how = chance.randrange(5)
        if how == 0 and data:
            data[at % len(data)] ^= 1 << chance.randrange(8)
        elif how == 1:
            data[at:end] = b""
        elif how == 2:
            other = chance.choice(corpus)
            begin = chance.randrange(len(other) + 1)
            data[at:at] = other[begin : begin + 64]
        elif how == 3:
            data[at:at] = data[at:end][:256]
        else:
            splice = chance.choice(_SPLICES)
            data[at : at + len(splice)] = splice
    return bytes(data)


class Lines:
    """Which lines of the program a call reaches."""

    def __init__(self) -> None:
        self.known: set[tuple[CodeType, int]] = set()
        self._new = False

    def reaches_new(self, call: Callable[[], None]) -> bool:
        """Calls, and says whether a line was reached that none before reached. Raises what the call raises."""
        self._new = False
        before = sys.gettrace()
        sys.settrace(self._entered)
        try:
            call()
        finally:
            sys.settrace(before)
        return self._new

    def _entered(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        name = frame.f_globals.get("__name__", "")
        return self._line if name.startswith(("neardup.", "streams.")) else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
        place = frame.f_code, frame.f_lineno
        if place not in self.known:
            self.known.add(place)
            self._new = True
        return self._line


def search(
    target: Callable[[bytes], None],
    corpus: Path,
    found: Path,
    *,
    seconds: float,
    bytes_max: int,
    input_seconds_max: float,
    chance: random.Random,
) -> int:
    """How many inputs were tried. corpus: inputs to begin with, and those that are kept; found: where a finding goes.

    Raises SystemExit with a finding: an input that raised, took too long, or never ended.
    """
    lines, kept = Lines(), [path.read_bytes() for path in sorted(corpus.iterdir()) if path.is_file()] or [b""]
    waiting, count, until = list(kept), 0, time.monotonic() + seconds
    while time.monotonic() < until:
        data = waiting.pop() if waiting else changed(kept, chance)[:bytes_max]
        # A target that never ends is ended from another thread, and its input is kept.
        watch = threading.Timer(10 * input_seconds_max, _ended, (data, found))
        watch.daemon = True
        watch.start()
        began = time.monotonic()
        try:
            new = lines.reaches_new(lambda data=data: target(data))  # type: ignore[misc]
        except Exception as error:
            raise SystemExit(f"{_written(data, found, 'crash')}: {type(error).__name__}: {error}") from error
        finally:
            watch.cancel()
        if time.monotonic() - began > input_seconds_max:  # once more: the first call may have compiled kernels
            began = time.monotonic()
            target(data)
            if (took := time.monotonic() - began) > input_seconds_max:
                raise SystemExit(f"{_written(data, found, 'slow')}: took {took:.1f} s")
        count += 1
        if new and data not in kept:
            kept.append(data)
            _written(data, corpus, "kept")
    return count


def _written(data: bytes, folder: Path, what: str) -> Path:
    path = folder / f"{what}-{hashlib.blake2b(data, digest_size=8).hexdigest()}"
    path.write_bytes(data)
    return path


def _ended(data: bytes, found: Path) -> None:
    print(f"{_written(data, found, 'endless')}: does not end", file=sys.stderr, flush=True)
    os._exit(1)
