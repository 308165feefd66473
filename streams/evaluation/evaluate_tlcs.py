"""Implements `neardup evaluate tlcs`: measures what Huang 2008 measured.

It partitions a crawl by each system (tlcs, cosine, simhash64 of 59 and of 58 bits), and measures rates on pairs that
tlcs compared.
"""

from collections.abc import Sequence
from pathlib import Path
from time import process_time

import orjson

from neardup.evaluation.corpus import CorpusCounts
from neardup.evaluation.evaluation_report import HUANG, Evaluation, make_folder, write
from neardup.evaluation.huang_rates import signature_section, slope_section, window_section
from neardup.evaluation.huang_steps import step_section
from neardup.evaluation.huang_study import SystemSets, TextPair, exhaust
from neardup.evaluation.huang_systems import measure, mistake_section, system_section
from neardup.evaluation.item_truth import ItemTruth, certain_truth, item_truth
from neardup.evaluation.labels import read_labels
from neardup.evaluation.truth import RATIO_MIN, Editions
from neardup.partition.parameters import Parameters
from streams.errors import WrongUsage
from streams.evaluation.evaluate import open_crawl
from streams.files.sources import ReadOptions
from streams.partition.duck import (
    SampledPair,
    documents_of,
    perhaps_similar_sets,
    sampled_documents,
    sampled_pairs,
    sampled_texts,
)
from streams.partition.online import partition_online
from streams.partition.partition_command import PartitionOptions, partition_command
from streams.ports import Progress, silent

#: The sample whose texts are all compared: most texts, and comparisons for each of the `pairs` pairs.
TEXTS_MAX, COMPARISONS_PER_PAIR = 2000, 100
#: The sample of documents: documents for each of the `pairs` pairs, and most compared pairs of a document.
DOCUMENTS_PER_PAIR, PAIRS_EACH = 0.2, 50


def evaluate_tlcs(
    paths: Sequence[Path],
    *,
    out: Path,
    editions: Editions | None,
    pairs: int,
    workers: int,
    ratio_min: float = RATIO_MIN,
    labels: Sequence[Path] = (),
    base_url: str | None = None,
    follow_links: bool = False,
    progress: Progress = silent,
) -> Evaluation:
    """Partitions a crawl by tlcs, cosine and simhash64, measures, and writes the evaluation.

    Raises what `partition_command` raises, and BadInput.

    Args:
        editions: item and edition of each page.
        pairs: number of near-duplicates for the rates, and of other pairs.
        ratio_min: least LCS ratio of two editions of one item that are duplicates, as in `neardup evaluate`.
        labels: files of labels of pairs that were drawn from sets.
    """
    if not 0 < ratio_min <= 1:
        raise WrongUsage(f"--ratio {ratio_min}: must be above 0, and at most 1")
    given = [label for path in labels for label in read_labels(path)]
    make_folder(out)

    reading = ReadOptions(base_url, follow_links)

    def options_for(name: str, kind: str = "transitive", *, keep: bool = False) -> PartitionOptions:
        return PartitionOptions(out / name, kind, workers, 1000 + 500 * workers, keep=keep, reading=reading)

    made = partition_command(paths, Parameters(), options_for("tlcs", keep=True), progress=progress)
    baseline = partition_command(paths, Parameters(method="cosine"), options_for("cosine"), progress=progress)
    online = partition_online(paths, {"rule": "simhash64"}, options_for("simhash64", "stars"), progress=progress)
    wider = partition_online(
        paths, {"rule": "simhash64", "simhash64_min": 58}, options_for("simhash64-58", "stars"), progress=progress
    )
    documents = documents_of(out / "tlcs", "family")
    sites = {url: site for url, _, site in documents}
    truth = _truth(paths, list(sites), editions, ratio_min, reading, progress)
    systems = {
        "tlcs": SystemSets({url: family for url, family, _ in documents}, made.seconds),
        "cosine": SystemSets(
            {url: family for url, family, _ in documents_of(out / "cosine", "family")}, baseline.seconds
        ),
        "simhash64": SystemSets(_sets(out / "simhash64" / "sets.jsonl", sites), online.seconds),
        "simhash64 at 58 bits": SystemSets(_sets(out / "simhash64-58" / "sets.jsonl", sites), wider.seconds),
    }
    progress("measure", 0, 0)

    def pair(one: SampledPair) -> TextPair:
        return TextPair(one.text_a, one.text_b, one.near, truth.same(one.a, one.b), one.weight, one.step)

    measured = [pair(one) for one in sampled_pairs(out / "tlcs", pairs)]
    drawn = sampled_documents(out / "tlcs", max(1, round(DOCUMENTS_PER_PAIR * pairs)), PAIRS_EACH)
    texts = sampled_texts(out / "tlcs", TEXTS_MAX)
    exhausted = exhaust(texts, max(1, COMPARISONS_PER_PAIR * pairs // max(1, len(texts))), process_time)
    precision, _ = measure(systems["tlcs"].sets, truth)
    distinct = made.counts.documents - made.counts.repeats
    together = perhaps_similar_sets(out / "tlcs")
    sections = [
        system_section(systems, truth, sites),
        step_section(measured, together, truth, precision, exhausted, distinct, process_time),
        signature_section(measured, exhausted),
        window_section(measured),
        slope_section([[pair(one) for one in found] for found in drawn]),
        mistake_section(given),
    ]
    counts = CorpusCounts(fetches=made.counts.documents, pages=made.counts.documents - made.counts.repeats)
    counts.repeats, counts.rejected = made.counts.repeats, made.rejected
    fetched = (
        f"Of {made.counts.documents:,} documents {made.counts.repeats:,} repeat another's compared text; "
        f"{made.counts.alone:,} have no signature. Pairs were drawn from those that the partition by tlcs compared."
    )
    unlabelled = {"correct": 0, "incorrect": 0, "undecided": 0}
    evaluation = Evaluation(sections, counts, fetched, truth.notes, unlabelled)
    evaluation.unread = made.problems_total
    write(evaluation, out, HUANG)
    return evaluation


def _truth(
    paths: Sequence[Path],
    urls: Sequence[str],
    editions: Editions | None,
    ratio_min: float,
    reading: ReadOptions,
    progress: Progress,
) -> ItemTruth:
    """Returns the truth of the documents, the same as in `neardup evaluate`. Reads their pages only if it must."""
    if editions is None:
        return ItemTruth({})
    if (certain := certain_truth(urls, editions)) and certain.items:  # none: items may name documents by their ids
        return certain
    with open_crawl(paths, base_url=reading.base_url, follow_links=reading.follow_links, progress=progress) as crawl:
        known = crawl.documents.editions(editions)
        return item_truth(urls, known, crawl.corpus, crawl.texts, ratio_min)


def _sets(file: Path, urls: dict[str, str]) -> dict[str, int]:
    """Maps each URL to its set; a URL in no set is alone."""
    found = {url: -1 - place for place, url in enumerate(urls)}
    with file.open("rb") as lines:
        for number, line in enumerate(lines):
            found_set = orjson.loads(line)
            for member in (found_set["representative"], *found_set["members"]):
                found[member["url"]] = number
    return found
