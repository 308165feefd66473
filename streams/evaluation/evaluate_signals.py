"""Implements `neardup evaluate signals`: measures what Huffman 2007 measured, on labelled results or pages."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from neardup.decider import Decider
from neardup.evaluation.corpus import CorpusCounts
from neardup.evaluation.evaluation_report import HUFFMAN, Evaluation, make_folder, write
from neardup.evaluation.huffman import grouped_section, signal_sections, transfer_section
from neardup.evaluation.huffman_study import SignalStudy
from neardup.evaluation.labelling_judges import judges_section
from neardup.evaluation.truth import Editions
from neardup.rules import rules_for
from neardup.signals.learning import FOLDS, LEARNERS, SEEDS, require_learners
from neardup.wording import counted
from streams.evaluation.examples import Labelled, examples_of, groups_of, labelled, signal_costs
from streams.evaluation.train import over_processes
from streams.ports import Progress, silent
from streams.verdicts.compare import SCHEME, pair_of_pages


def evaluate_signals(
    paths: Sequence[Path],
    labels: Sequence[Path],
    *,
    out: Path,
    editions: Editions | None = None,
    pairs: int = 1000,
    seeds: int = SEEDS,
    folds: int = FOLDS,
    workers: int = 1,
    adjudicator: str = "",
    train: Sequence[Path] = (),
    group: str | None = None,
    base_url: str | None = None,
    progress: Progress = silent,
) -> Evaluation:
    """Measures signals and classifiers, and writes the evaluation. Raises BadInput, and Stopped after a signal.

    train: files of other pages; models learned from them judge the pairs of `paths`. group: "page" or "query";
    compares folds of pairs with folds of such groups.
    """
    require_learners()
    make_folder(out)

    def read(files: Sequence[Path]) -> Labelled:
        more = {"pairs_max": pairs, "adjudicator": adjudicator, "base_url": base_url, "progress": progress}
        return labelled(files, labels, editions=editions, **more)  # type: ignore[arg-type]

    made = read(paths)
    examples = examples_of(made, progress=progress)
    rendered = np.array([a.rendered is not None and b.rendered is not None for a, b in made.pairs], np.bool_)
    any_rendered = any(line.rendered is not None for pair in made.pairs for line in pair)
    languages = [a.lang if a.lang == b.lang else "" for a, b in made.pairs]
    steps, costs = signal_costs(made)
    plain = SignalStudy(examples, languages, rendered, any_rendered, costs, steps, _rules(made), seeds, folds)
    with over_processes(workers, progress, len({*plain.sets().values()}) * len(LEARNERS) * seeds) as each:
        study = replace(plain, each=each)
        sections = signal_sections(study)
        if train:
            other = read(train)
            judged = examples_of(replace(made, idf=other.idf), progress=progress)
            sections.append(transfer_section(examples_of(other, progress=progress), study, judged))
        if group:
            sections.append(grouped_section(study, groups_of(made, group), group))
    if judges := judges_section(made.given, made.labels, adjudicator):
        sections.append(judges)
    same = sum(made.same)
    counts = CorpusCounts(fetches=made.pages, pages=made.pages)
    fetched = f"{counted(made.pages, 'page')}, {counted(len(made.pairs), 'labelled pair')} of them."
    by_label = {"correct": same, "incorrect": len(made.same) - same, "undecided": 0}
    evaluation = Evaluation(sections, counts, fetched, [*made.notes], by_label)
    evaluation.unread = len(made.problems)
    write(evaluation, out, HUFFMAN)
    return evaluation


def _rules(made: Labelled) -> dict[str, np.ndarray]:
    """Applies each online rule to the pairs."""
    decider = Decider(scheme=SCHEME.digest)
    decided: dict[str, list[bool]] = {name: [] for name in rules_for(decider)}
    for a, b in made.pairs:
        pair = pair_of_pages([a.page, b.page], SCHEME)
        for name, rule in rules_for(decider).items():
            found = pair is not None and (pair.same_digest or rule.decide(pair, decider).kind is not None)
            decided[name].append(found)
    return {name: np.array(found, np.bool_) for name, found in decided.items()}
