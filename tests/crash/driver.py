"""Scans that are killed, run from a process of its own: it warms the kernels once, then forks a child for each scan.

`python -m tests.crash.driver random SEED FOLDER` kills children from outside, at random moments.
`python -m tests.crash.driver steps SEED FOLDER` has children kill themselves between the numbered steps.
Each killed scan is started again until one ends; then --out, the log, the verdicts and the store must be, byte for
byte, those of an uninterrupted scan. Exits with 1 and prints the differences. RocksDB is opened in children alone: its
threads would be missing in what is forked after it.
"""

import gc
import os
import pickle
import random
import signal
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from neardup.index.column_families import Family
from neardup.index.rocks import RocksStore
from streams.files import parts
from streams.files.sources import ReadOptions
from streams.ports import SourceProgress
from streams.scan import reading, sketcher
from streams.scan import scan as scanning
from streams.scan.scan import scan
from streams.scan.sketch_processes import SketchProcesses
from streams.scan.sketcher import Sketcher
from streams.state import scan_directory
from streams.state.scan_directory import ScanDirectory, VerdictLog
from streams.state.segments import SegmentLog
from tests.processes import die_with_parent
from tests.streams.archives import SCHEME, crawl, write_folder, write_json_lines, write_warc
from tests.whole import chosen, count

MESSAGE_PAGES = 3
RANDOM_ROUNDS = count(5, 10)
#: A scan that is killed again and again must still end: each start gets further, or the driver gives up.
STARTS_MAX = 100


def archives(folder: Path) -> list[Path]:
    """The same three sources for every scan."""
    folder.mkdir()
    return [
        write_warc(folder / "a.warc.gz", crawl(24)),
        write_folder(folder / "pages", crawl(15)),
        write_json_lines(folder / "c.jsonl", crawl(18), base="http://c.example/"),
    ]


def run(paths: list[Path], folder: Path, progress: Callable[[SourceProgress], None], processes: int = 0) -> None:
    with (
        SketchProcesses(processes) if processes else nullcontext() as readers,
        ScanDirectory.open(folder / "state", scheme=SCHEME) as opened,
    ):
        base, out = ReadOptions("http://f.example/"), str(folder / "out")
        scan(paths, opened, reading=base, out=out, progress=progress, processes=readers)


def outcome(folder: Path) -> dict[str, Any]:
    """Everything that must not depend on crashes."""

    def look() -> None:
        with ScanDirectory.open(folder / "state") as opened:
            found = {
                "--out": (folder / "out").read_bytes(),
                "log": list(opened.log.read()),
                "verdicts": list(opened.verdict_log.log.read()),
                "store": {family.name: list(opened.store.scan(family)) for family in Family},
                "sources": sorted((s.id, s.finished, s.pages) for s in opened.sources.values()),
            }
        (folder / "outcome").write_bytes(pickle.dumps(found))

    if not ended(fork(look)):
        sys.exit("the look at a scan's outcome was killed")
    found: dict[str, Any] = pickle.loads((folder / "outcome").read_bytes())
    return found


def fork(child: Callable[[], None]) -> int:
    """Runs `child` in a process of its own and returns its pid."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    die_with_parent()
    try:
        child()
        status = 0
    finally:
        os._exit(status)


def ended(pid: int) -> bool:
    """Waits for a child. True: it ended well; False: it was killed. Anything else is a failure."""
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return False
    if status:
        sys.exit(f"a scan failed by itself, with status {status}")
    return True


def killed_at_random(paths: list[Path], folder: Path, chance: random.Random) -> int:
    """Kills scans after some messages and a random bit of work, until one ends; returns how many were killed."""
    for kills in range(STARTS_MAX):
        ready, tell = os.pipe()

        def child(tell: int = tell, processes: int = chance.randrange(3)) -> None:
            run(paths, folder, lambda now: void(now.phase == "scan" and os.write(tell, b".")), processes)

        pid = fork(child)
        os.close(tell)
        for _ in range(chance.randrange(14)):
            if not os.read(ready, 1):
                break
        sum(range(chance.randrange(200_000)))  # some time into the next message
        os.kill(pid, signal.SIGKILL)
        os.close(ready)
        if ended(pid):
            return kills
    sys.exit(f"{STARTS_MAX} starts, and the scan has not ended")


def ended_whole(paths: list[Path], folder: Path, kills: int) -> int:
    """A last scan, without a kill."""
    if not ended(fork(lambda: run(paths, folder, lambda now: None))):
        sys.exit("a scan was killed by something else")
    return kills


def void(_: object) -> None:
    """Drops a value where none is wanted."""


def die(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def tear(log: SegmentLog, payload: bytes) -> None:
    """Leaves the first half of a frame behind."""
    file = log._writable()
    file.write(b"\x10\0\0\0" + payload[: len(payload) // 2])
    die()


def dying(where: Any, name: str, call: int, *, before: bool, how: Callable[..., None] = die) -> None:
    """Makes this process die before or after the given call of a method, counted from 1."""
    real, calls = getattr(where, name), [0]

    def wrapped(*given: Any, **named: Any) -> Any:
        calls[0] += 1
        if calls[0] == call and before:
            how(*given)
        result = real(*given, **named)
        if calls[0] == call and not before:
            how()
        return result

    setattr(where, name, wrapped)


STEPS: dict[str, Callable[[int], None]] = {
    "sketched, not appended": lambda n: dying(SegmentLog, "append", n, before=True),
    "half a frame": lambda n: dying(SegmentLog, "append", n, before=True, how=tear),
    "appended, not synced": lambda n: dying(SegmentLog, "sync", n, before=True),
    "in the log, not folded": lambda n: dying(Sketcher, "append", n, before=False),
    "folded, not emitted": lambda n: dying(VerdictLog, "emit", n, before=True),
    "emitted, not in --out": lambda n: dying(scanning.Verdicts, "write", n, before=True),
    "emitted, not in the store": lambda n: dying(VerdictLog, "emit", n, before=False),
    "in the store, not flushed": lambda n: dying(RocksStore, "write", n, before=False),
    "verdicts synced, store not": lambda n: dying(RocksStore, "flush", 1 + n // 6, before=True),
    "flushed": lambda n: dying(RocksStore, "flush", 1 + n // 6, before=False),
    "source known, not scanned": lambda n: dying(ScanDirectory, "save_source", 1 + n % 6, before=False),
    "source finished, not noted": lambda n: dying(ScanDirectory, "save_source", 4 + n % 3, before=True),
}


def killed_at_steps(paths: list[Path], folder: Path, chance: random.Random) -> int:
    """Every step once, each in a scan that goes on where the last was killed."""
    kills = 0
    steps = list(STEPS)
    chance.shuffle(steps)
    for step in steps:
        call = chance.randrange(1, 4)

        def child(step: str = step, call: int = call) -> None:
            STEPS[step](call)
            run(paths, folder, lambda now: None)

        if ended(fork(child)):
            print(f"  the scan ended before {step!r} ({call})")
            break
        kills += 1
    return ended_whole(paths, folder, kills)


def killed_at_one_step(paths: list[Path], folder: Path, step: str, call: int) -> int:
    """One step in a separate scan, then an uninterrupted scan."""

    def child() -> None:
        STEPS[step](call)
        run(paths, folder, lambda now: None)

    if ended(fork(child)):
        sys.exit(f"the scan was not killed at {step!r} ({call})")
    return ended_whole(paths, folder, 1)


def main(mode: str, seed: int, folder: Path) -> None:
    """Runs one mode; exits with 1 if a killed scan differs from the whole one."""
    print(f"{mode}, seed {seed}")
    sketcher.MESSAGE_PAGES_MAX = reading.BATCH_PAGES_MAX = MESSAGE_PAGES
    parts.GZIP_BYTES, parts.PLAIN_BYTES, parts.FILES = 1_500, 3_000, 4
    scan_directory.FLUSH_MESSAGES = 5
    paths = archives(folder / "archives")
    with ScanDirectory.open(None) as throw_away:
        scan(paths, throw_away)  # compiles or loads the kernels before anything is forked
    gc.collect()
    gc.freeze()  # an index that is closed has garbage collected: in each child all that is imported
    (folder / "whole").mkdir()
    if not ended(fork(lambda: run(paths, folder / "whole", lambda now: None))):
        sys.exit("the whole scan was killed")
    whole = outcome(folder / "whole")
    chance = random.Random(seed)
    rounds: list[tuple[str, Callable[[Path], int]]] = []
    if mode == "random":
        rounds = [("random", lambda f: killed_at_random(paths, f, chance)) for _ in range(RANDOM_ROUNDS)]
    else:
        for number, step in enumerate(STEPS):
            call = chance.randrange(1, 15)
            if not chosen() and number % 3:
                continue  # `make test-all` kills each in a scan of its own, and each twice
            rounds.append((step, lambda f, s=step, n=call: killed_at_one_step(paths, f, s, n)))  # type: ignore[misc]
        rounds.append(("all steps in turn", lambda f: killed_at_steps(paths, f, chance)))
    for number, (name, killed) in enumerate(rounds):
        place = folder / f"round{number}"
        place.mkdir()
        kills = killed(place)
        print(f"round {number}: {name}: {kills} kills", flush=True)
        found = outcome(place)
        for what, wanted in whole.items():
            if found[what] != wanted:
                sys.exit(f"round {number} ({name}), seed {seed}: {what} differs from that of a whole scan")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
