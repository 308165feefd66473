"""Partitions that kill themselves, before and after a file gets its name, run from a process of its own.

`python -m tests.crash.partition_driver FOLDER`. Each start dies at a file that comes no earlier than that of the one
before it; what the last one leaves must be, row by row, what an uninterrupted partition leaves. Exits with 1 and
says what differs. DuckDB is opened in children alone: its threads would be missing in what is forked after it.
"""

import os
import signal
import sys
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from neardup.partition import Parameters, compare
from streams.partition import duck, reading
from streams.partition.partition_command import PartitionOptions, partition_command
from streams.partition.workspace import PartitionWorkspace
from tests.streams.partition.corpora import items, sentences, write
from tests.whole import count

#: A partition that is killed again and again must still end: each start gets further, or the driver gives up.
STARTS_MAX = 200
RESULTS = ("sets.jsonl", "documents.parquet", "pairs.parquet")


def run(crawl: Path, out: Path) -> None:
    reading.CHUNK_PAGES, duck.CHUNK_PAIRS = 9, 6
    partition_command([crawl], Parameters(), PartitionOptions(out=out, memory_mb=700))


def dying(writes: int, *, named: bool) -> None:
    """This process dies at its n-th file: with the file written but not yet named, or just named."""
    whole, left = PartitionWorkspace.whole, [writes]

    @contextmanager
    def counted(self: PartitionWorkspace, file: Path) -> Any:
        with whole(self, file) as fresh:
            yield fresh
            left[0] -= 1
            if not left[0] and not named:
                os.kill(os.getpid(), signal.SIGKILL)
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)

    PartitionWorkspace.whole = counted  # type: ignore[method-assign]


def ended(child: Callable[[], None]) -> bool:
    """Runs it in a fork -> whether it ended by itself."""
    process = os.fork()
    if not process:
        try:
            child()
        except BaseException as error:  # noqa: BLE001 - the parent reads the exit code
            print(f"{type(error).__name__}: {error}", flush=True)
            os._exit(2)
        os._exit(0)
    status = os.waitpid(process, 0)[1]
    if os.WIFSIGNALED(status):
        return False
    if os.WEXITSTATUS(status):
        sys.exit("a partition failed")
    return True


def main(folder: Path) -> None:
    folder.mkdir()
    crawl = write(folder / "crawl.jsonl", items(10))
    compare("".join(sentences(1)), "".join(sentences(2)), Parameters())  # compiled once, for all children
    if not ended(lambda: run(crawl, folder / "whole")):
        sys.exit("the partition was killed by something else")
    starts = 0
    for starts in range(STARTS_MAX):

        def child(start: int = starts) -> None:
            dying(1 + start // count(2, 4), named=bool(start % 2))
            run(crawl, folder / "killed")

        if ended(child):
            break
    else:
        sys.exit(f"not ended after {STARTS_MAX} starts")

    def same() -> None:
        import duckdb

        for name in RESULTS:
            one, two = folder / "whole" / name, folder / "killed" / name
            if name.endswith("l"):
                assert one.read_bytes() == two.read_bytes(), name
            else:
                left, right = (duckdb.sql(f"select * from '{file}'").fetchall() for file in (one, two))
                assert left == right, name

    ended(same)
    print(f"the same after {starts} kills")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
