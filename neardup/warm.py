"""Compile every kernel that is not in the cache: `python -m neardup.warm`.

The cache depends on the CPU model, the version of numba and the sources of the kernels. The kernels for judging are
compiled in a second process: they share little with those for sketching.

`python -m neardup.warm levels`, when an image is built, compiles for every level of processors of this architecture,
into the package: see `neardup.kernels.kernel_cache`. This machine need not have the level.
"""

import gc
import os
import pickle
import pkgutil
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Literal

import numba
import numpy as np

from neardup import kernels, rules
from neardup.decider import Decider
from neardup.fold import fold
from neardup.index.layered import Layered
from neardup.index.memory import MemoryStore
from neardup.kernels import KEPT, PLAIN, kernel_cache
from neardup.kernels.batch import sketch_batch
from neardup.kernels.html import extract
from neardup.kernels.pairs import score_pairs
from neardup.kernels.sniffing import sniff
from neardup.kernels.spans import hash_spans
from neardup.kernels.tokens import tokenise
from neardup.kernels.urls import find_hosts
from neardup.matching import kernels as matching
from neardup.matching.kernels import lines, removal, rows, walk
from neardup.matching.takedown_and_expiry import expire
from neardup.page import Page
from neardup.pairs.scoring import numbers_of
from neardup.rules.rulings import decide_many, rule_of
from neardup.scheme import Scheme
from neardup.sketch.layout import HEADER, SKETCH_VERSION, RecordKind
from neardup.sketch.make_sketches import sketch_pages
from neardup.text.one_page_tokens import words
from neardup.wording import counted

#: The work of a command: sketching pages, judging sketches, comparing some pairs, reading texts of pages.
Need = Literal["sketching", "judging", "comparing", "texts"]
SCANNING: tuple[Need, ...] = ("sketching", "judging")
ALL: tuple[Need, ...] = (*SCANNING, "comparing", "texts")
#: The kernels that Python calls for it, and the seconds that each takes to compile in one process, on a processor of
#: 2023. Other processors took up to twice as long.
_SECONDS: Mapping[Need, Mapping[Any, float]] = {
    "sketching": {find_hosts: 1.1, hash_spans: 0.2, sniff: 0.4, sketch_batch: 17.0},
    "comparing": {score_pairs: 7.1, decide_many: 2.1},
    "texts": {extract: 5.0, tokenise: 3.2},
    "judging": {
        walk.enter_records: 0.2,
        walk.need_named: 0.8,
        walk.walk: 21.7,
        rows.changes: 0.3,
        rows.gather: 0.2,
        removal.remove: 2.4,
        removal.promotions: 1.2,
        lines.write_lines: 3.0,
    },
}
#: Processor seconds of the imports of the second process.
_IMPORTS = 2.0
#: Objects between two garbage collections while the compiler runs. With the default they take a tenth of its time.
_COLLECT_EVERY = 100_000


def _seconds(needs: Sequence[Need]) -> dict[Any, float]:
    return {kernel: seconds for need in needs for kernel, seconds in _SECONDS[need].items()}


def _held(kernel: Any) -> bool:
    return bool(kernel._cache.holds())


def is_warm(needs: Sequence[Need] = ALL) -> bool:
    """Whether the cache has all kernels of these needs for this processor.

    True with plain kernels: numba caches each of them at its first call.
    """
    return PLAIN or all(map(_held, _seconds(needs)))


def share_done(needs: Sequence[Need] = ALL) -> float:
    """The share of the compilation that is done, 0 to 1.

    A kernel counts when it is cached; the largest has two fifths.
    """
    seconds = _seconds(needs)
    done = sum(each for kernel, each in seconds.items() if _held(kernel))
    return 1.0 if is_warm(needs) else done / sum(seconds.values())


def notice(needs: Sequence[Need] = ALL) -> str:
    """The message for a user who waits for the compiler; empty if there is nothing to compile."""
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return ""
    if is_warm(needs):
        return ""
    if not KEPT:
        place = numba.config.CACHE_DIR  # type: ignore[attr-defined]
        return (
            f"compiling the kernels that this run needs, for this run only, because {place} cannot be written; "
            "set NUMBA_CACHE_DIR to another directory"
        )
    lacking = sum(seconds for kernel, seconds in _seconds(needs).items() if not _held(kernel))
    sides = min(2 if "sketching" in needs and "judging" in needs else 1, len(os.sched_getaffinity(0)))
    here = f"{counted(sides, 'core')} here"
    lacking += _IMPORTS * (sides - 1)
    return (
        f"compiling the kernels, once on this machine: {lacking:.0f} seconds of processor time or more, "
        f"on {here}, so {lacking / sides:.0f} seconds if nothing else runs"
    )


def make_ready(show: Callable[[str], object], needs: Sequence[Need] = ALL) -> None:
    """Compiles the kernels that the cache lacks, in two processes. show: called before, with the time that it takes."""
    if message := notice(needs):
        show(message)
        if KEPT:
            warm(needs)


@contextmanager
def _fewer_collections() -> Iterator[None]:
    """Collects garbage less often: the compiler makes millions of objects, and nearly all of them stay."""
    before = gc.get_threshold()
    gc.set_threshold(_COLLECT_EVERY, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _headers() -> list[bytes]:
    """Records that consist of a header and a URL: they suffice for the kernels of judging."""
    headers, url = np.zeros(5, HEADER), b"https://a.example/"
    headers["version"], headers["size"], headers["tokens"] = SKETCH_VERSION, HEADER.itemsize + len(url), 100
    headers["url_bytes"] = len(url)
    headers["kind"][-1] = RecordKind.TOMBSTONE
    headers["url_hash"], headers["digest"] = (
        np.frombuffer(b"".join(bytes([which] * 16) for which in each), "V16") for each in (b"abcaa", b"xyxzz")
    )
    return [header.tobytes() + url for header in headers]


def _judge(records: Sequence[bytes]) -> None:
    """Judges pages: one founds a cluster, one is like it, one is equal, the first one goes; then all expire."""
    store, decider = MemoryStore(), Decider(Scheme(seed=1).digest)
    for number, record in enumerate(records, 1):
        outcome = fold([(number, record)], store, decider)
        outcome.verdicts.lines()
        store.write(outcome.writes)
    expire(Layered(store), decider, after=b"", rows=len(records), before=1 << 62, cause=len(records) + 1, first=0)


def _compare(records: Sequence[bytes]) -> None:
    """Compares two pages, and decides the pair."""
    decider = Decider(Scheme(seed=1).digest)
    rule_of(decider).rulings(numbers_of(records[0], records[1:2]), decider)


def _others(needs: Sequence[Need]) -> None:
    if "comparing" in needs:
        _compare(_headers())
    if "texts" in needs:
        _texts()


def warm(needs: Sequence[Need] = ALL) -> None:
    """Runs every kernel of these needs once, on some small pages."""
    with _fewer_collections():
        if "sketching" not in needs:
            _others(needs)
            if "judging" in needs:
                _judge(_headers())
            return
        apart = "judging" in needs and KEPT and not is_warm(("judging",)) and (os.cpu_count() or 1) > 1
        helper = subprocess.Popen([sys.executable, "-m", "neardup.warm", "judging"]) if apart else None
        sketches = _sketching()
        _others(needs)
        if helper is not None:
            helper.wait()  # a kernel that it failed to compile is compiled here
        if "judging" in needs:
            _judge(sketches)


_TEXT = "<title>Wool</title><p>" + " ".join(f"word{i} größe 羊毛" for i in range(100))


def _sketching() -> list[bytes]:
    bodies = (_TEXT, _TEXT + " <a href=b>more</a><img src=b.png>", _TEXT, None)
    urls = (*(f"https://{host}.example/" for host in "abc"), "https://a.example/")
    pages = [Page(url, None if body is None else body.encode()) for url, body in zip(urls, bodies, strict=True)]
    pages.append(Page("https://a.example/x", b"\x00\x01", "image/png"))
    return sketch_pages(pages, Scheme(seed=1))


def _texts() -> None:
    words(_TEXT.encode())


#: Module and name of a kernel, and the types of arguments that it is called with.
Calls = Mapping[tuple[str, str], Sequence[Any]]


def _calls() -> Calls:
    """The calls of all kernels that Python has called in this process."""
    found = {}
    for package in (kernels, matching, rules):
        for module in pkgutil.iter_modules(package.__path__):
            for each in vars(import_module(f"{package.__name__}.{module.name}")).values():
                signatures = getattr(each, "signatures", None)
                # A function whose name begins with an underscore is compiled within the kernels that call it.
                if signatures and not each.__name__.startswith("_"):
                    found[each.py_func.__module__, each.__name__] = signatures
    return found


def warm_levels() -> None:
    """Compiles for the levels of this architecture, into the package. Raises CalledProcessError."""
    warm()
    calls = pickle.dumps(_calls())
    for name, level in kernel_cache.LEVELS.items():
        if level.machine != platform.machine():
            continue
        processor = {
            "NUMBA_CPU_NAME": level.cpu,
            "NUMBA_CPU_FEATURES": "",
            "NUMBA_CACHE_DIR": str(kernel_cache.shipped(name)),
        }
        command = [sys.executable, "-m", "neardup.warm", "calls"]
        subprocess.run(command, input=calls, env={**os.environ, **processor}, check=True)


def compile_for(calls: Calls) -> None:
    """Compiles kernels without running them, because this processor may lack the level's instructions."""
    for (module, name), signatures in calls.items():
        kernel = getattr(import_module(module), name)
        for signature in signatures:
            kernel.compile(signature)


def main(arguments: Sequence[str]) -> None:
    if not arguments:
        make_ready(lambda text: sys.stderr.write(f"neardup: {text}\n"))
    elif arguments == ["levels"]:
        warm_levels()
    elif arguments == ["calls"]:  # from another process of this module
        compile_for(pickle.load(sys.stdin.buffer))
    elif arguments == ["judging"]:  # from another process of this module
        warm(("judging",))
    else:
        sys.exit("python -m neardup.warm: no arguments, or: levels")


if __name__ == "__main__":
    main(sys.argv[1:])
