"""Plays a number of schedules on all cores; a failing one is shrunk and printed, to be played again.

python -m tests.streams.simulation --seeds 10000 [--first 0] [--real]     # make simulate SEEDS=10000
python -m tests.streams.simulation --replay "17 publish:93 sketch:4 ..."  # as a failure prints it
"""

import argparse
import multiprocessing
import os
import sys
import time
from collections import Counter
from contextlib import nullcontext

from tests.streams.simulation.ledger import cheap
from tests.streams.simulation.run import Failure, parse, shrunk, simulate, simulated
from tests.streams.simulation.schedule import schedule

CHUNK = 50


def _chunk(given: tuple[int, int, bool]) -> tuple[int, Counter[str], list[Failure]]:
    first, count, real = given
    happened: Counter[str] = Counter()
    failures = []
    with nullcontext() if real else cheap():
        for seed in range(first, first + count):
            found = simulate(seed, schedule(seed))
            happened += found.happened
            if found.failure is not None:
                failures.append(found.failure)
    return count, happened, failures


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1_000, help="so many schedules")
    parser.add_argument("--first", type=int, default=0, help="seed of the first one")
    parser.add_argument("--real", action="store_true", help="sketch and judge as the program does")
    parser.add_argument("--replay", help="one schedule, as a failure printed it")
    given = parser.parse_args()
    if given.replay:
        seed, steps = parse(given.replay)
        with nullcontext() if given.real else cheap():
            simulated(seed, steps, say=print)
        return 0
    began = time.monotonic()
    end = given.first + given.seeds
    chunks = [(at, min(CHUNK, end - at), given.real) for at in range(given.first, end, CHUNK)]
    happened: Counter[str] = Counter()
    done, failures = 0, list[Failure]()
    with multiprocessing.Pool(len(os.sched_getaffinity(0))) as pool:
        for count, more, failed in pool.imap_unordered(_chunk, chunks):
            done, happened, failures = done + count, happened + more, failures + failed
            if failures:
                pool.terminate()
                break
    seconds = time.monotonic() - began
    print(f"{done} schedules in {seconds:.0f} s, {done / seconds * 60:,.0f} a minute")
    for name, count in happened.most_common():
        print(f"  {count:>9,}  {name}")
    for failure in failures[:1]:
        with nullcontext() if given.real else cheap():
            small = shrunk(failure)
        print(f"seed {failure.seed}: {failure.error}\n{failure.trace}")
        print(f"shrunk from {len(failure.steps)} to {len(small.steps)} steps: {small.error}")
        print(f"python -m tests.streams.simulation {'--real ' if given.real else ''}--replay '{small.printed()}'")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
