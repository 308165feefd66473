"""Implements `neardup train`: trains a model from labelled pairs and measures it by Huffman 2007's protocol."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from neardup.evaluation.truth import Editions
from neardup.signals.idf import Idf
from neardup.signals.learning import (
    FOLDS,
    LEARNERS,
    SEEDS,
    CrossValidation,
    CrossValidationTask,
    Each,
    LearningOutcome,
    learn_rules,
    learn_tree,
    outcomes,
    require_learners,
    versions,
)
from neardup.signals.model import Model
from neardup.signals.of_sketches import OF_SKETCHES
from neardup.signals.table import SETS, SIGNALS
from streams.errors import WrongUsage
from streams.evaluation.examples import examples_of, labelled
from streams.partition.workers import Workers
from streams.ports import Progress, silent
from streams.process.disk import write_whole
from streams.process.shutdown import stopped_by_signals

#: Name of the set of sketch signals in --signals.
SKETCHES = "sketches"


@dataclass(frozen=True)
class Trained:
    """The model with its measurement by the protocol, and notes on the labels."""

    model: Model
    pairs: int
    duplicates: int
    notes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return {
            "pairs": self.pairs,
            "duplicates": self.duplicates,
            "measured": dict(self.model.measured),
            "rules": self.model.text().split("\n"),
            "notes": self.notes,
            "problems": self.problems,
        }


def signals_named(text: str) -> tuple[str, ...]:
    """Parses --signals: a set, or names separated by commas. Raises BadInput."""
    if text == SKETCHES:
        return tuple(OF_SKETCHES)
    if text in SETS:
        return SETS[text]
    names = tuple(text.split(","))
    for known in (SIGNALS, OF_SKETCHES):
        if set(names) <= set(known):
            return tuple(dict.fromkeys(names))
    raise WrongUsage(
        f"--signals {text}: there is {', '.join([*SETS, SKETCHES])}, or names of signals with commas between"
    )


def train_command(
    paths: Sequence[Path],
    labels: Sequence[Path],
    *,
    out: Path,
    signals: str = "F+R+FS+RS",
    by: str = "tree",
    seeds: int = SEEDS,
    folds: int = FOLDS,
    workers: int = 1,
    adjudicator: str = "",
    editions: Editions | None = None,
    base_url: str | None = None,
    progress: Progress = silent,
) -> Trained:
    """Measures labelled pairs by the protocol, trains a model on all of them, and writes it.

    Raises BadInput, and Stopped after a signal.

    signals: a set of the paper, `sketches`, or names of signals. by: the deciding classifier, tree or rules.
    adjudicator: name of the labeller whose label counts if labels differ.
    """
    require_learners()
    names = signals_named(signals)
    made = labelled(paths, labels, editions=editions, adjudicator=adjudicator, base_url=base_url, progress=progress)
    examples = examples_of(made, sketches=set(names) <= set(OF_SKETCHES), progress=progress).of(names)
    with over_processes(workers, progress, len(LEARNERS) * seeds) as each:
        (outcome,) = outcomes(examples, [names], seeds=seeds, folds=folds, each=each)
    tree, rules = learn_tree(examples, 0), learn_rules(examples, 0)
    asked = any(name.startswith("tfidf") for name in names)
    same = int(examples.truth.sum())
    model = Model(
        tuple(names),
        tree,
        rules,
        idf=made.idf if asked else Idf(),
        measured={"pairs": len(made.same), "duplicates": same, **_measured_json(outcome, seeds, folds)},
        versions=versions(),
    )
    model = model.decided_by(by)
    write_whole(out, orjson.dumps(model.to_json(), option=orjson.OPT_INDENT_2).decode() + "\n")
    return Trained(model, len(made.same), same, made.notes, made.problems)


def _measured_json(outcome: LearningOutcome, seeds: int, folds: int) -> dict[str, Any]:
    def shares(values: Any) -> dict[str, float]:
        return dict(zip(("precision", "recall", "f"), (round(value, 4) for value in values[:3]), strict=True))

    medians = {learner: shares(outcome.median(learner)) for learner in LEARNERS}
    return {"folds": folds, "seeds": seeds, **medians, "average": shares(outcome.average)}


@contextmanager
def over_processes(processes: int, progress: Progress, total: int) -> Iterator[Each]:
    """Provides a `map` over processes that reports progress and stops after a signal."""
    import threading

    stop = threading.Event()
    with stopped_by_signals(stop), Workers(processes, stop) as workers:

        def each(
            work: Callable[[CrossValidationTask], CrossValidation], tasks: Iterable[CrossValidationTask]
        ) -> Iterator[CrossValidation]:
            for done, run in enumerate(workers.each(work, tasks), 1):
                progress("learn", done, total)
                yield run

        yield each
