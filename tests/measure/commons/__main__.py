"""The commons: near-duplicate rules on documentation that was not selected by hand.

    python -m tests.measure.commons fetch
    python -m tests.measure.commons run --data ../shared/data --out build/commons.md
    python -m tests.measure.commons draw --seed 1 > build/pairs.txt
    python -m tests.measure.commons ceiling --data ../shared/data

`fetch` calls package clients, `run` and `draw` read the cache alone, `ceiling` reads the labelled pairs. README.md
describes method and results.
"""

import argparse
import subprocess
from hashlib import blake2b
from pathlib import Path

from tests.measure.bench.peers import made
from tests.measure.commons import packages, reading, rules, run, tables
from tests.measure.gate.ablation import human_pairs


def main() -> None:
    options = argparse.ArgumentParser(description="Near-duplicate rules on documentation of many generators.")
    options.add_argument("command", choices=("fetch", "run", "draw", "ceiling"))
    options.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of the public sets")
    options.add_argument("--only", default="", help="streams whose name, kind or generator has this")
    options.add_argument("--quick", action="store_true", help="the default rule and tape alone")
    options.add_argument("--steps", action="store_true", help="these two, and the default rule without each step")
    options.add_argument("--count", type=int, default=200, help="pairs to draw")
    options.add_argument("--seed", type=int, default=1, help="of the pairs to draw")
    options.add_argument("--processes", type=int, default=2)
    options.add_argument("--minutes", type=float, default=600, help="report what is measured after so many minutes")
    options.add_argument("--cache", type=Path, default=packages.cache_folder())
    options.add_argument("--out", type=Path, default=Path("build/commons.md"))
    given = options.parse_args()
    if given.command == "fetch":
        for problem in packages.fetch(packages.listed(), given.cache):
            print(problem, flush=True)
        try:
            made(rules.peers_folder(), rules.PEER_PACKAGES)
        except (OSError, subprocess.SubprocessError) as error:
            print(f"the peers' rows are left out: {error}")
        return
    if given.command == "ceiling":
        from tests.measure.commons import ceiling  # scikit-learn takes seconds

        for name, f1 in ceiling.ceilings(human_pairs(given.data / "human_pairs.jsonl.xz")):
            print(f"set A: {name}: F1 {f1:.3f}", flush=True)
        return
    streams = [*run.of_packages(given.cache), *run.of_made(given.data if given.data.is_dir() else None)]
    streams = [one for one in streams if given.only in f"{one.name} {one.kind} {one.generator}"]
    streams.sort(key=lambda one: blake2b(one.name.encode()).digest())  # so that a part of them is of all kinds
    if given.command == "draw":
        for pair in reading.drawn(streams, given.count, given.seed):
            print(pair, flush=True)
        return
    few = [*rules.RULES[:2], *(f"without {step.name}" for step in rules.DROPPED if given.steps)]
    forms = few if given.quick or given.steps else [*rules.forms(), "texts"]
    results = run.results(
        streams, forms, given.cache, given.processes, given.minutes, lambda line: print(line, flush=True)
    )
    text = tables.report(results)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
