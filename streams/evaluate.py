"""`neardup evaluate`: pages from files or a state directory, labels, and the evaluation written out."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from neardup.decider import Decider
from neardup.errors import BadInput
from neardup.evaluation.audits import audit_section, read_audits
from neardup.evaluation.corpus import PAGES_MAX, Corpus, corpus_of
from neardup.evaluation.graphs import ALL_PAIRS_PAGES_MAX, Graph, b_graph, c_graph, c_graph_of_all
from neardup.evaluation.labels import Label, join_labels, read_labels
from neardup.evaluation.report import Evaluation, write
from neardup.evaluation.report import evaluate as evaluate_study
from neardup.evaluation.study import Study
from neardup.evaluation.texts import ReadPage, Texts
from neardup.evaluation.truth import LABELLER, RATIO_MIN, NaturalTruth, Releases, thinned
from neardup.page import Page
from neardup.scheme import Scheme
from neardup.sketching import sketch_pages
from neardup.verdict import Coordinates
from streams.local import LocalSource, open_sources
from streams.records import Message, decode_entry
from streams.state import State

#: A fixed seed: two evaluations of the same files give the same figures.
SCHEME = Scheme(seed=0x6E656172647570)
#: C-similarity down to which every pair is counted, for the choice of t.
WIDE_C_MIN = 340
#: Of those, pairs kept for natural truth to label.
WIDE_PAIRS = 200_000
#: Pairs that natural truth labels, of each kind; the paper's judges labelled 1,900 for each algorithm.
TRUTH_PAIRS = 4000
_BATCH = 512

#: phase ("sketch", "join", "read", "write"), done, total (0: unknown)
Progress = Callable[[str, int, int], None]


def silent(phase: str, done: int, total: int) -> None:
    """Progress that nobody watches."""


@dataclass(frozen=True)
class Crawl:
    """A corpus with the means to read its pages again, and the thresholds of its rules."""

    corpus: Corpus
    texts: Texts
    decider: Decider


@contextmanager
def open_crawl(
    paths: Sequence[Path | str] = (),
    state: Path | None = None,
    *,
    base_url: str | None = None,
    threads: int = 1,
    pages_max: int = PAGES_MAX,
    progress: Progress = silent,
) -> Iterator[Crawl]:
    """The crawl of some files, or of a state directory. Sketches are held in memory, texts are read when asked for.

    Raises BadInput for neither or both, for what is no source, and for more than pages_max pages; StateError for a
    directory that is in use.
    """
    if bool(paths) == (state is not None):
        raise BadInput("name either files to evaluate, or a state directory with --state")
    if state is not None:
        with State.open(state) as opened:
            records = _logged(opened, progress)
            corpus = corpus_of(records, pages_max=pages_max)
            yield Crawl(corpus, Texts(corpus, opened.read_page, opened.scheme), opened.decider)
        return
    sources = [
        source
        for path in paths
        for source in open_sources(Path(path), base_url=base_url, body_bytes_max=SCHEME.body_bytes_max)
    ]
    corpus = corpus_of(_sketched(sources, threads, progress), pages_max=pages_max)
    problems = [str(problem) for source in sources for problem in source.problems]
    texts = Texts(corpus, _reader(sources), SCHEME)
    texts.problems += problems[:20]
    yield Crawl(corpus, texts, Decider(scheme=SCHEME.digest))


def _logged(state: State, progress: Progress) -> Iterator[bytes]:
    end = state.log.end()
    for done, (offset, data) in enumerate(state.log.read(), 1):
        entry = decode_entry(data, offset)
        if isinstance(entry, Message):
            yield from entry.records
        progress("sketch", done, end)


def _sketched(sources: Sequence[LocalSource], threads: int, progress: Progress) -> Iterator[bytes]:
    done = 0
    for source in sources:
        pages: list[Page] = []
        places: list[Coordinates] = []
        times: list[int] = []
        for sourced in source.read():
            pages.append(sourced.page)
            places.append(sourced.coordinates)
            times.append(sourced.log_time)
            if len(pages) == _BATCH:
                yield from sketch_pages(pages, SCHEME, coordinates=places, log_times=times, threads=threads)
                done += len(pages)
                progress("sketch", done, 0)
                pages, places, times = [], [], []
        yield from sketch_pages(pages, SCHEME, coordinates=places, log_times=times, threads=threads)
        done += len(pages)
        progress("sketch", done, 0)


def _reader(sources: Sequence[LocalSource]) -> ReadPage:
    by_id = {source.record.id: source for source in sources}
    return lambda coordinates: by_id[coordinates.source].read_at(coordinates)


def natural_labels(
    crawl: Crawl, graphs: Sequence[Graph], releases: Releases, ratio_min: float, seed: int
) -> list[Label]:
    """Labels by natural truth of the pairs of the graphs, of pairs of one item, and of as many of different items."""
    truth = NaturalTruth(crawl.corpus, crawl.texts, releases, ratio_min)
    if len(truth.releases) < 2:
        raise BadInput(
            f"natural truth needs pages of at least two releases, and the URLs name {len(truth.releases)}; give "
            "--releases a regular expression of what tells releases apart in a path"
        )
    out: list[Label] = []
    for graph in graphs:
        pairs = list(zip(graph.a.tolist(), graph.b.tolist(), strict=True))
        out += truth.labels(thinned(pairs, TRUTH_PAIRS, seed), graph.name)
    out += truth.labels(thinned(truth.items(), TRUTH_PAIRS, seed), "items")
    out += truth.labels(truth.others(min(TRUTH_PAIRS, max(1, len(out))), seed), "others")
    return list({label.pair: label for label in out}.values())


def evaluate_command(
    paths: Sequence[Path | str] = (),
    *,
    state: Path | None = None,
    labels: Sequence[Path] = (),
    releases: str | None = None,
    natural: bool = False,
    ratio_min: float = RATIO_MIN,
    out: Path | None = None,
    base_url: str | None = None,
    seed: int = 0,
    threads: int = 1,
    differences_max: int = 5000,
    labels_out: Path | None = None,
    audits: Sequence[Path] = (),
    progress: Progress = silent,
) -> Evaluation:
    """Evaluates a crawl as Henzinger 2006 did, and writes it to the folder `out` if one is given.

    labels: files of labels. natural: also label by natural truth; releases: a regular expression of what tells
    releases apart in a path (implies natural). labels_out: a file for all labels that were used, those of natural
    truth among them. seed: of samples, splits and intervals. audits: files of `neardup scan --audit` or of the matcher,
    which get a section of their own. Raises BadInput.
    """
    if not 0 < ratio_min <= 1:
        raise BadInput(f"--ratio {ratio_min}: a share above 0, at most 1, is wanted")
    said = [label for path in labels for label in read_labels(path)]
    audit = read_audits(audits) if audits else None
    with open_crawl(paths, state, base_url=base_url, threads=threads, progress=progress) as crawl:
        corpus = crawl.corpus
        progress("join", 0, 0)
        b = b_graph(corpus, b_min=crawl.decider.b_min, seed=seed, threads=threads)
        c = c_graph(corpus, c_min=crawl.decider.c_min, seed=seed, threads=threads)
        wide = None
        if len(corpus) <= ALL_PAIRS_PAGES_MAX:
            wide = c_graph_of_all(corpus, c_min=WIDE_C_MIN, seed=seed, threads=threads, pairs_max=WIDE_PAIRS)
        notes = []
        if len(corpus) < 2:
            notes.append(f"The corpus has {len(corpus)} pages with words of their own: there are no pairs to evaluate.")
        if natural or releases is not None:
            progress("read", 0, 0)
            graphs = [b, c] if wide is None else [b, c, wide]
            made = natural_labels(crawl, graphs, Releases.by(releases), ratio_min, seed)
            known = {label.pair for label in said}
            said += [label for label in made if label.pair not in known]
            notes.append(
                f"Labels by {LABELLER}: two releases of one page are correct if the LCS ratio of their full token "
                f"sequences is at least {ratio_min:g}, else incorrect, as are pairs of different paths. Nothing is "
                "undecided; aliases of a page count as incorrect; people would judge otherwise."
            )
        joined = join_labels(said, corpus)
        if labels_out is not None:
            _write_labels(labels_out, said)
        if said and not len(joined):
            raise BadInput("no label fits: " + "; ".join(joined.problems()))
        study = Study(corpus, crawl.texts, crawl.decider, b, c, wide, joined, seed, differences_max, notes)
        progress("read", 0, 0)
        evaluation = evaluate_study(study)
    if audit is not None:
        evaluation.sections.append(audit_section(audit, said))
    if out is not None:
        progress("write", 0, 0)
        write(evaluation, out)
    return evaluation


def _write_labels(path: Path, labels: Sequence[Label]) -> None:
    try:
        path.write_bytes(b"".join(label.to_json() for label in labels))
    except OSError as error:
        raise BadInput(f"cannot write labels {path}: {error.strerror or error}") from error
