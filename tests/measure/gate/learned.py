"""The rule signals beside the default one on the gate's classes: learned on pages of one seed, judged on another's.

    python -m tests.measure.gate.learned --out build/gate-learned.json

For each class of pages a few sites are generated; pairs of one item are duplicates, others are not. What was learned of
the classes' pairs all together judges streams of other sites, class by class, as the gate judges `verified`.
"""

import argparse
import json
from itertools import combinations
from pathlib import Path
from random import Random

import numpy as np

from neardup.page import Page
from neardup.pairs.scoring import compare_records
from neardup.scheme import Scheme
from neardup.signals.learning import Examples, learn_rules, learn_tree, versions
from neardup.signals.model import Model
from neardup.signals.of_sketches import OF_SKETCHES, online_text, sketch_signals
from neardup.sketch.make_sketches import sketch_pages
from tests.measure.gate.measure import SEED, measure
from tests.measure.gate.sites import Sample
from tests.measure.gate.test_gate import GATES

#: Seeds of the pages that are learned from, and of those that are judged.
LEARNED, JUDGED = 11, 1
_PAIRS = 60  # of a class, of either kind


def pairs_of(samples: list[Sample], random: Random) -> list[tuple[dict[str, float], bool]]:
    """Some pairs of one class: of one item, and of others."""
    scheme = Scheme(seed=SEED)
    records = sketch_pages([Page(one.url, one.html, "text/html") for one in samples], scheme)
    kinds: dict[bool, list[tuple[int, int]]] = {True: [], False: []}
    for a, b in combinations(range(len(samples)), 2):
        kinds[samples[a].item == samples[b].item].append((a, b))
    out = []
    for same, pairs in kinds.items():
        for a, b in random.sample(pairs, min(_PAIRS, len(pairs))):
            pair = compare_records(records[b], [records[a]])[0]
            if not pair.same_digest:
                out.append((sketch_signals(pair), same))
    return out


def learned(by: str, pages: int) -> Model:
    random = Random(LEARNED)
    pairs = [pair for gate in GATES for pair in pairs_of(gate.generate(pages, LEARNED), random)]
    columns = {name: np.array([values[name] for values, _ in pairs]) for name in OF_SKETCHES}
    examples = Examples(columns, np.array([same for _, same in pairs], np.bool_))
    tree, rules = learn_tree(examples, 0), learn_rules(examples, 0)
    return Model(tuple(OF_SKETCHES), tree, rules, by, versions=versions())


def main() -> None:
    options = argparse.ArgumentParser(description="Judges the gate's classes by a learned model, and by the default.")
    options.add_argument("--pages", type=int, default=500, help="of each class, judged")
    options.add_argument("--by", default="tree", choices=("tree", "rules"))
    options.add_argument("--out", type=Path, help="for the model")
    given = options.parse_args()
    model = learned(given.by, 120)
    if given.out:
        given.out.write_text(json.dumps(model.to_json(), indent=1) + "\n")
    print(model.text())
    print(f"\n{'class':34} {'found':>7} {'default':>8} {'wrong/1000':>11} {'default':>8}")
    for gate in GATES:
        samples = gate.generate(given.pages, JUDGED)
        usual = measure(samples)
        values = measure(samples, rule="signals", model=online_text(model, "the model"))
        print(
            f"{samples[0].kind:34} {values.found_share:7.3f} {usual.found_share:8.3f} "
            f"{values.wrong_per_1000:11.1f} {usual.wrong_per_1000:8.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
