"""The commons: near-duplicate rules on documentation that was not selected by hand.

    python -m tests.measure.commons fetch
    python -m tests.measure.commons run --data ../shared/data --out build/commons.md
    python -m tests.measure.commons sites --data ../shared/data --out build/sites.md --json build/sites.json
    python -m tests.measure.commons open --data ../shared/data > build/open.txt
    python -m tests.measure.commons draw --seed 1 > build/pairs.txt
    python -m tests.measure.commons ceiling --data ../shared/data

`fetch` calls package clients, `run` and `draw` read the cache alone, `ceiling` reads the labelled pairs. `sites` makes
its sites and needs no cache; `open` prints the pairs of crawled sites whose truth is not known, for reading. README.md
describes method and results.
"""

import argparse
import json
import subprocess
from hashlib import blake2b
from pathlib import Path

from tests.measure.bench.peers import made
from tests.measure.commons import packages, reading, rules, run, tables
from tests.measure.commons.sites import kinds, site_tables
from tests.measure.gate.ablation import human_pairs


def main() -> None:
    options = argparse.ArgumentParser(description="Near-duplicate rules on documentation of many generators.")
    options.add_argument("command", choices=("fetch", "run", "sites", "open", "draw", "ceiling"))
    options.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of the public sets")
    options.add_argument("--only", default="", help="streams whose name, kind or generator has this")
    options.add_argument("--quick", action="store_true", help="the default rule and tape alone")
    options.add_argument("--steps", action="store_true", help="these two, and the default rule without each step")
    options.add_argument(
        "--kept-back", action="store_true", help="the sites by which no rule is chosen, instead of the others"
    )
    options.add_argument("--json", type=Path, help="file for the results of the sites")
    options.add_argument("--count", type=int, default=200, help="pairs to draw")
    options.add_argument("--seed", type=int, default=1, help="of the pairs to draw")
    options.add_argument("--processes", type=int, default=2)
    options.add_argument("--minutes", type=float, default=600, help="report what is measured after so many minutes")
    options.add_argument("--cache", type=Path, default=packages.cache_folder())
    options.add_argument("--out", type=Path, help="file for the tables: build/commons.md, of sites build/sites.md")
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
    data = given.data if given.data.is_dir() else None
    of_sites = given.command in ("sites", "open")
    if of_sites:
        streams = list(run.of_sites(data, given.kept_back))
    else:
        streams = [*run.of_packages(given.cache), *run.of_made(data)]
    streams = [one for one in streams if given.only in f"{one.name} {one.kind} {one.generator}"]
    streams.sort(key=lambda one: blake2b(one.name.encode()).digest())  # so that a part of them is of all kinds
    if given.command == "draw":
        for pair in reading.drawn(streams, given.count, given.seed):
            print(pair, flush=True)
        return
    if given.command == "open":
        for pair in reading.still_open([one for one in streams if one.name.partition(": ")[2] in kinds.CRAWLS]):
            print(pair, flush=True)
        return
    few = [
        *rules.RULES[:2],
        *(f"without {step.name}" for step in rules.DROPPED if given.steps or (of_sites and not given.quick)),
    ]
    forms = few if given.quick or given.steps or of_sites else [*rules.forms(), "texts"]
    results = run.results(
        streams, forms, given.cache, given.processes, given.minutes, lambda line: print(line, flush=True)
    )
    text = site_tables.report(results) if of_sites else tables.report(results)
    out = given.out or Path("build/sites.md" if of_sites else "build/commons.md")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text)
    if given.json:
        given.json.write_text(json.dumps(results, indent=1))
    print(text)


if __name__ == "__main__":
    main()
