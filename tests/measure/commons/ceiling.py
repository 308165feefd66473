"""How well any rule can do on labelled pairs: the best threshold that is chosen on the pairs themselves."""

import re
from collections.abc import Iterator, Sequence

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from neardup.decider import Decider
from neardup.evaluation.text_difference import common_ratio
from neardup.page import Page
from neardup.pairs.scoring import compare_records
from neardup.rules import rule_of
from neardup.scheme import Scheme
from neardup.sketch.make_sketches import sketch_pages
from tests.measure.commons import rules
from tests.measure.gate.ablation import Labelled

SEEDS = range(1, 11)


def ceilings(rows: Sequence[Labelled], seeds: Sequence[int] = SEEDS, trees: int = 500) -> Iterator[tuple[str, float]]:
    """What decides -> F1. Rules have the mean over seeds of the hashes, a forest that of predicted tenths."""
    same = np.array([row.same for row in rows])
    for rule in rules.RULES[:2]:
        yield f"rule {rule}, mean of {len(seeds)} seeds", float(np.mean([_f1(_by(rule, rows, s), same) for s in seeds]))
    numbers = np.array([_numbers(row.a, row.b) for row in rows])
    for column, name in enumerate(("exact LJ", "LCS over the longer text")):
        scores = numbers[:, column]
        yield f"{name}, best threshold on the set", max(_f1(scores >= least, same) for least in np.unique(scores))
    forest = RandomForestClassifier(trees, min_samples_leaf=4, random_state=0)
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    yield (
        "random forest on both and the lengths, ten folds",
        _f1(cross_val_predict(forest, numbers, same, cv=folds), same),
    )


def _by(rule: str, rows: Sequence[Labelled], seed: int) -> np.ndarray:
    """Which pairs a rule merges on two sites; the first text of a pair is crawled first."""
    scheme = Scheme(seed=seed)
    decider = Decider(scheme.digest, rule=rule)
    texts = [text for row in rows for text in (row.a, row.b)]
    pages = [Page(f"http://text{n}.example/", text.encode(), "text/plain") for n, text in enumerate(texts)]
    records = sketch_pages(pages, scheme)
    pairs = [compare_records(new, [old])[0] for old, new in zip(records[::2], records[1::2], strict=True)]
    return np.array([pair.same_digest or rule_of(decider).decide(pair, decider).kind is not None for pair in pairs])


def _numbers(a: str, b: str) -> tuple[float, ...]:
    """Exact LJ, LCS over the longer text, the ratio of the lengths, and the longer one."""
    names: dict[str, int] = {}
    texts = [re.findall(r"\w+", text.lower()) for text in (a, b)]
    one, other = (np.array([names.setdefault(word, len(names)) for word in text], np.uint64) for text in texts)
    likeness, shorter, longer = common_ratio(one, other) or 0.0, *sorted((len(one), len(other)))
    return likeness, likeness * (shorter + longer) / (1 + likeness) / max(1, longer), shorter / max(1, longer), longer


def _f1(found: np.ndarray, same: np.ndarray) -> float:
    return float(2 * (found & same).sum() / max(1, found.sum() + same.sum()))
