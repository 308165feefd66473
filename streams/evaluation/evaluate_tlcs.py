"""Implements `neardup evaluate tlcs`: measures what Huang 2008 measured.

It partitions a crawl three times (tlcs, cosine, simhash64), and measures rates on pairs that tlcs compared.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from time import process_time

import orjson

from neardup.evaluation import huang
from neardup.evaluation.corpus import CorpusCounts
from neardup.evaluation.evaluation_report import HUANG, Evaluation, make_folder, write
from neardup.evaluation.labels import read_labels
from neardup.evaluation.truth import Editions, Items
from neardup.partition.parameters import Parameters
from streams.files.sources import ReadOptions
from streams.partition.duck import SampledPair, documents_of, sampled_documents, sampled_pairs, sampled_texts
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
    labels: Sequence[Path] = (),
    base_url: str | None = None,
    follow_links: bool = False,
    progress: Progress = silent,
) -> Evaluation:
    """Partitions a crawl by tlcs, cosine and simhash64, measures, and writes the evaluation.

    editions: the truth. pairs: number of near-duplicates for the rates, and of other pairs.
    labels: files of labels of pairs that were drawn from sets. Raises what `partition_command` raises.
    """
    given = [label for path in labels for label in read_labels(path)]
    make_folder(out)

    reading = ReadOptions(base_url, follow_links)

    def options_for(name: str, kind: str = "transitive", *, keep: bool = False) -> PartitionOptions:
        return PartitionOptions(out / name, kind, workers, 1000 + 500 * workers, keep=keep, reading=reading)

    made = partition_command(paths, Parameters(), options_for("tlcs", keep=True), progress=progress)
    baseline = partition_command(paths, Parameters(method="cosine"), options_for("cosine"), progress=progress)
    online = partition_online(paths, {"rule": "simhash64"}, options_for("simhash64", "stars"), progress=progress)
    item_of = _items(editions)
    documents = documents_of(out / "tlcs", "family")
    sites = {url: site for url, _, site in documents}
    items = {url: item for url in sites if (item := item_of(url))}
    systems = {
        "tlcs": huang.SystemSets({url: family for url, family, _ in documents}, made.seconds),
        "cosine": huang.SystemSets(
            {url: family for url, family, _ in documents_of(out / "cosine", "family")}, baseline.seconds
        ),
        "simhash64": huang.SystemSets(_sets(out / "simhash64" / "sets.jsonl", sites), online.seconds),
    }
    progress("measure", 0, 0)

    def pair(one: SampledPair) -> huang.TextPair:
        a, b = item_of(one.a), item_of(one.b)
        same = a == b if a and b else None
        return huang.TextPair(one.text_a, one.text_b, one.near, same, one.weight, one.step)

    measured = [pair(one) for one in sampled_pairs(out / "tlcs", pairs)]
    drawn = sampled_documents(out / "tlcs", max(1, round(DOCUMENTS_PER_PAIR * pairs)), PAIRS_EACH)
    texts = sampled_texts(out / "tlcs", TEXTS_MAX)
    exhausted = huang.exhaust(texts, max(1, COMPARISONS_PER_PAIR * pairs // max(1, len(texts))), process_time)
    sections = [
        huang.system_section(systems, items, sites),
        huang.step_section(measured, exhausted, made.counts.documents - made.counts.repeats, process_time),
        huang.signature_section(measured, exhausted),
        huang.window_section(measured),
        huang.slope_section([[pair(one) for one in found] for found in drawn]),
        huang.mistake_section(given),
    ]
    counts = CorpusCounts(fetches=made.counts.documents, pages=made.counts.documents - made.counts.repeats)
    counts.repeats, counts.rejected = made.counts.repeats, made.refused
    fetched = (
        f"Of {made.counts.documents:,} documents {made.counts.repeats:,} repeat another's compared text; "
        f"{made.counts.alone:,} have no signature. Pairs were drawn from those that the partition by tlcs compared."
    )
    evaluation = Evaluation(sections, counts, fetched, labels={"correct": 0, "incorrect": 0, "undecided": 0})
    evaluation.unread = made.problems_total
    write(evaluation, out, HUANG)
    return evaluation


def _items(editions: Editions | None) -> Callable[[str], str]:
    def item(url: str) -> str:
        if editions is None:
            return ""
        found, edition = editions.split(url)
        return found if edition or isinstance(editions, Items) else ""

    return item


def _sets(file: Path, urls: dict[str, str]) -> dict[str, int]:
    """Maps each URL to its set; a URL in no set is alone."""
    found = {url: -1 - place for place, url in enumerate(urls)}
    with file.open("rb") as lines:
        for number, line in enumerate(lines):
            found_set = orjson.loads(line)
            for member in (found_set["representative"], *found_set["members"]):
                found[member["url"]] = number
    return found
