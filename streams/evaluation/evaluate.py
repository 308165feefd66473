"""Implements `neardup evaluate`: reads pages and labels, and writes the evaluation."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from neardup.decider import Decider
from neardup.errors import BadInput
from neardup.evaluation.audits import audit_section, read_audits
from neardup.evaluation.corpus import PAGES_MAX, Corpus, corpus_of
from neardup.evaluation.corpus_texts import Texts
from neardup.evaluation.evaluation_report import Evaluation, evaluate_run, make_folder, write
from neardup.evaluation.evaluation_report import evaluate as evaluate_study
from neardup.evaluation.graphs import ALL_PAIRS_PAGES_MAX, Graph, b_graph, c_graph, c_graph_of_all
from neardup.evaluation.henzinger_label_tables import agreement
from neardup.evaluation.labels import Label, join_labels, lines_of, read_labels, united
from neardup.evaluation.run_tables import RunPages, RunStudy
from neardup.evaluation.runs import CrawlRun, read_run, run_of, stream
from neardup.evaluation.study import CrawlStudy
from neardup.evaluation.truth import (
    LABELLER,
    RATIO_MIN,
    Documents,
    Editions,
    Items,
    NaturalTruth,
    Releases,
    beside,
    thinned,
)
from neardup.limits import VERDICT_LINE_BYTES_MAX
from neardup.scheme import FIXED_SEED, Scheme
from neardup.sketch.make_sketches import sketch_pages
from streams.errors import WrongUsage, bad_input
from streams.files.not_read import NotRead
from streams.files.sources import LocalSource, ReadOptions, SourceRecord, open_all
from streams.formats.message import Message, decode_entry
from streams.ports import Progress, silent
from streams.state.scan_reader import ScanReader
from streams.state.scan_snapshot import read_scan

#: Fixed, so that two evaluations of the same files give the same figures.
SCHEME = Scheme(seed=FIXED_SEED)
#: Least C-similarity of pairs that are counted for the choice of t.
WIDE_C_MIN = 340
#: Most of these pairs kept for labels by natural truth.
WIDE_PAIRS = 200_000
#: Pairs that natural truth labels, of each kind; the paper's judges labelled 1,900 for each algorithm.
TRUTH_PAIRS = 4000
_BATCH = 512


@dataclass(frozen=True)
class EvaluatedCrawl:
    """A corpus, access to its pages, the thresholds of its rules, and its run.

    unread: places of the input that could not be read. documents: finds those that labels and items name by ids.
    """

    corpus: Corpus
    texts: Texts
    decider: Decider
    documents: Documents
    run: CrawlRun | None = None
    unread: Sequence[str] = ()


def check_crawl(paths: Sequence[Path | str], state: Path | None) -> None:
    """Raises BadInput for inputs that `open_crawl` would reject.

    The input must be files or a state directory, not both, and must exist.
    """
    if bool(paths) == (state is not None):
        raise WrongUsage("name either files to evaluate, or a state directory by --state")
    if state is None:
        return
    if not (state / "scheme.json").exists():
        raise WrongUsage(f"{state} is no state directory; `neardup scan --state {state}` makes one")
    if not (state / "log").exists():
        raise WrongUsage(
            f"{state} belongs to the stream's matcher, which keeps no log of pages; evaluate its verdicts with "
            "`neardup verdicts --no-follow --json | neardup evaluate --verdicts -`, with the pages' files for more"
        )


@contextmanager
def open_crawl(
    paths: Sequence[Path | str] = (),
    state: Path | None = None,
    *,
    base_url: str | None = None,
    follow_links: bool = False,
    threads: int = 1,
    pages_max: int = PAGES_MAX,
    progress: Progress = silent,
) -> Iterator[EvaluatedCrawl]:
    """Opens a crawl from files or a state directory. Sketches are held in memory, texts are read on demand.

    Raises BadInput for neither or both, for an unknown kind of source, for no readable page, and for more than
    pages_max pages; StateError for a directory without a scan.
    """
    check_crawl(paths, state)
    if state is not None:
        with read_scan(state) as opened:
            records = _logged(opened, progress)
            corpus = corpus_of(records, pages_max=pages_max)
            run = run_of(f"the run of {state.name}: {opened.decider.rule}", opened.verdicts())
            texts = Texts(corpus, opened.read_page, opened.scheme)
            documents = _documents(corpus, opened.sources.values())
            yield EvaluatedCrawl(corpus, texts, opened.decider, documents, run)
        return
    not_read = NotRead()
    reading = ReadOptions(base_url, follow_links)
    local = list(map(Path, paths))
    sources = open_all(local, reading, body_bytes_max=SCHEME.body_bytes_max, not_read=not_read)
    corpus = corpus_of(_sketched(sources, threads, progress), pages_max=pages_max)
    by_id = {source.record.id: source for source in sources}
    texts = Texts(corpus, lambda place: by_id[place.source].read_at(place), SCHEME)
    unread = not_read.lines + [str(problem) for source in sources for problem in source.problems]
    if corpus.counts.fetches == corpus.counts.rejected:
        names, why = ", ".join(map(str, paths)), f": {unread[0]}" if unread else ""
        raise BadInput(f"{names}: no page could be read{why}; if these are verdicts, name them with --verdicts")
    documents = _documents(corpus, (source.record for source in sources))
    yield EvaluatedCrawl(corpus, texts, Decider(scheme=SCHEME.digest), documents, unread=unread)


def _documents(corpus: Corpus, records: Iterable[SourceRecord]) -> Documents:
    return Documents((*corpus.places, *corpus.twins), {record.path: record.files_of_ids for record in records})


def _logged(state: ScanReader, progress: Progress) -> Iterator[bytes]:
    end = state.log.end()
    for done, (offset, data) in enumerate(state.log.read(), 1):
        entry = decode_entry(data, offset)
        if isinstance(entry, Message):
            yield from entry.records
        progress("sketch", done, end)


def _sketched(sources: Sequence[LocalSource], threads: int, progress: Progress) -> Iterator[bytes]:
    done = 0
    read = chain.from_iterable(source.read() for source in sources)
    while batch := list(islice(read, _BATCH)):
        pages, places = [one.page for one in batch], [one.coordinates for one in batch]
        times = [one.date for one in batch]
        yield from sketch_pages(pages, SCHEME, coordinates=places, log_times=times, threads=threads)
        done += len(batch)
        progress("sketch", done, 0)


def natural_labels(
    crawl: EvaluatedCrawl,
    graphs: Sequence[Graph],
    editions: Editions,
    ratio_min: float,
    seed: int,
    run: CrawlRun | None = None,
    given: Sequence[Label] = (),
) -> list[Label]:
    """Labels by natural truth: pairs of the graphs, pairs that the run merged, pairs of one item, and others.

    Each label names the sample of its pair. The run's own pairs are included to find merges that no graph contains.
    given: labels by people, which take precedence; see `neardup.evaluation.truth.beside`.
    """
    truth = NaturalTruth(crawl.corpus, crawl.texts, editions, ratio_min)
    if isinstance(editions, Items):
        if not truth.known:
            raise BadInput("the items are of other pages than those of this crawl")
    elif len(truth.editions) < 2:
        raise BadInput(
            f"natural truth needs pages of at least two releases, and the URLs name {len(truth.editions)}; give "
            "--releases a regular expression of what tells releases apart in a path"
        )
    samples: dict[tuple[int, int], str] = {}

    def draw(name: str, pairs: Iterable[tuple[int, int]], count: int = TRUTH_PAIRS) -> None:
        for pair in thinned(pairs, count, seed):
            samples[pair] = united(samples.get(pair, ""), name)

    for name, graph in zip(("B", "C", "wide"), graphs, strict=False):
        draw(name, zip(graph.a.tolist(), graph.b.tolist(), strict=True))
    if run is not None:
        found = [(crawl.corpus.find(merge.url), crawl.corpus.find(merge.other)) for merge in run.merges]
        draw("run", [(min(a, b), max(a, b)) for a, b in found if a is not None and b is not None and a != b])
    draw("items", truth.items())
    draw("others", truth.others(min(TRUTH_PAIRS, max(1, len(samples))), seed))
    return beside(given, truth.labels(samples), samples, crawl.corpus)


def editions_of(releases: str | None, items: Path | None, natural: bool) -> Editions | None:
    """Selects the source of items and editions. Raises BadInput for more than one."""
    if releases is not None and items is not None:
        raise WrongUsage("--items and --releases exclude each other; choose one")
    if items is not None:
        return Items.read(items)
    return Releases.by(releases) if natural or releases is not None else None


def evaluate_command(
    paths: Sequence[Path | str] = (),
    *,
    state: Path | None = None,
    verdicts: Path | None = None,
    labels: Sequence[Path] = (),
    releases: str | None = None,
    natural: bool = False,
    items: Path | None = None,
    ratio_min: float = RATIO_MIN,
    out: Path | None = None,
    base_url: str | None = None,
    follow_links: bool = False,
    seed: int = 0,
    threads: int = 1,
    differences_max: int = 5000,
    labels_out: Path | None = None,
    audits: Sequence[Path] = (),
    progress: Progress = silent,
) -> Evaluation:
    """Evaluates a crawl as Henzinger 2006 did, and writes the result to the folder `out` if given. Raises BadInput.

    Args:
        verdicts: file of the run's verdicts, "-" for standard input; without paths and state, only the run is
        evaluated.
        labels: files of labels.
        natural: whether to label by natural truth, too.
        releases: regular expression of the release in a path; implies natural.
        items: file of the items that pages are about; implies natural.
        labels_out: file for all labels used, including those by natural truth.
        seed: seed of samples, splits and intervals.
        audits: files of `neardup scan --audit` or of the matcher, for a section of their own.
    """
    if not 0 < ratio_min <= 1:
        raise WrongUsage(f"--ratio {ratio_min}: must be above 0, and at most 1")
    editions = editions_of(releases, items, natural)
    by_file = {path: read_labels(path) for path in labels}
    given = [label for found in by_file.values() for label in found]
    audit = read_audits(audits) if audits else None
    run = None if verdicts is None else _read_run(verdicts)
    if out is not None:
        make_folder(out)  # fails now instead of after an hour
    if run is not None and not paths and state is None:
        evaluation = _evaluate_verdicts(run, given, editions, seed)
    else:
        with open_crawl(
            paths, state, base_url=base_url, follow_links=follow_links, threads=threads, progress=progress
        ) as crawl:
            evaluation = _evaluate_crawl(
                crawl, run, given, editions, ratio_min, seed, threads, differences_max, progress
            )
    evaluation.notes += [f"{path} holds no label" for path, found in by_file.items() if not found]
    if labels_out is not None:
        with bad_input(f"cannot write labels {labels_out}"):
            labels_out.write_bytes(b"".join(label.to_json() for label in given))
    more = agreement(given), None if audit is None else audit_section(audit, given)
    evaluation.sections += [section for section in more if section is not None]
    if out is not None:
        progress("write", 0, 0)
        write(evaluation, out)
    return evaluation


def _read_run(verdicts: Path) -> CrawlRun:
    if verdicts == Path("-"):
        lines = lines_of(sys.stdin.buffer, VERDICT_LINE_BYTES_MAX)
        return read_run(lines, "the run of standard input", "standard input")
    with bad_input(f"cannot read the verdicts {verdicts}"), verdicts.open("rb") as file:
        return read_run(lines_of(file, VERDICT_LINE_BYTES_MAX), f"the run of {verdicts.name}", str(verdicts))


def _evaluate_verdicts(run: CrawlRun, given: list[Label], editions: Editions | None, seed: int) -> Evaluation:
    if editions is not None:
        raise BadInput("natural truth reads pages: name the files or the state directory beside --verdicts")
    pages = RunPages(run)
    given[:] = Documents(pages.urls, {}).labels(given)
    joined = join_labels(given, pages.find)
    if given and not len(joined):
        raise BadInput("no label fits these verdicts: " + "; ".join(joined.problems()))
    return evaluate_run(RunStudy(run, pages, joined, seed))


def _evaluate_crawl(
    crawl: EvaluatedCrawl,
    run: CrawlRun | None,
    given: list[Label],
    editions: Editions | None,
    ratio_min: float,
    seed: int,
    threads: int,
    differences_max: int,
    progress: Progress,
) -> Evaluation:
    """Evaluates a crawl. Adds labels by natural truth to `given`, with the names of their samples."""
    corpus = crawl.corpus
    given[:] = crawl.documents.labels(given)
    if editions is not None:
        editions = crawl.documents.editions(editions)
    progress("join", 0, 0)
    b = b_graph(corpus, b_min=crawl.decider.b_min, seed=seed, threads=threads)
    c = c_graph(corpus, c_min=crawl.decider.c_min, seed=seed, threads=threads)
    wide = None
    if len(corpus) <= ALL_PAIRS_PAGES_MAX:
        wide = c_graph_of_all(corpus, c_min=WIDE_C_MIN, seed=seed, threads=threads, pairs_max=WIDE_PAIRS)
    notes = []
    if len(corpus) < 2:
        count = "one page" if len(corpus) else "no page"
        notes.append(f"The corpus has {count} with words of its own: there are no pairs to evaluate.")
    if run is None:
        run = crawl.run or stream(corpus.records, crawl.decider)
    elif not any(run.says(url, url) for url in corpus.urls):
        raise BadInput("the verdicts are of other pages than those of this crawl")
    if editions is not None:
        progress("read", 0, 0)
        graphs = [b, c] if wide is None else [b, c, wide]
        given[:] = natural_labels(crawl, graphs, editions, ratio_min, seed, run, given)
        notes.append(_on_truth(editions, ratio_min))
    joined = join_labels(given, corpus.find)
    if given and not len(joined):
        raise BadInput("no label fits: " + "; ".join(joined.problems()))
    if crawl.unread:
        notes.append(f"Places of the input that could not be read: {len(crawl.unread):,}, as {crawl.unread[0]}")
    study = CrawlStudy(
        corpus, crawl.texts, crawl.decider, b, c, wide, joined, seed, differences_max, notes, run, editions
    )
    progress("read", 0, 0)
    evaluation = evaluate_study(study)
    evaluation.unread = len(crawl.unread)
    return evaluation


def _on_truth(editions: Editions, ratio_min: float) -> str:
    if isinstance(editions, Items):
        return (
            f"Labels by {LABELLER}: the file of items names the item of each page. Pairs of one item are correct, of "
            f"two items incorrect; two editions of one item are correct if the LCS ratio of their full token sequences "
            f"is at least {ratio_min:g}, else incorrect. It leaves nothing undecided."
        )
    return (
        f"Labels by {LABELLER}: two releases of one page are correct if the LCS ratio of their full token sequences is "
        f"at least {ratio_min:g}, else incorrect, as are pairs of different paths. It leaves nothing undecided; "
        "aliases of a page count as incorrect; people would judge otherwise."
    )
