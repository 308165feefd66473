"""Measures the rules on each stream, in processes; what was measured is kept, so that a run goes on where it ended."""

import json
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from hashlib import blake2b
from multiprocessing import TimeoutError, get_context
from pathlib import Path
from typing import Any, NamedTuple

from tests.measure.commons import made, packages, rules
from tests.measure.commons.pages import read
from tests.measure.commons.sites import kinds
from tests.measure.commons.truth import Relation, Truth
from tests.measure.gate.ablation import Source, without
from tests.measure.gate.measure import Tally

_ROOT = Path(__file__).parents[3]
#: Wrongly hidden pairs that a result names, at most, of each form.
_PAIRS_MAX = 40
#: Parts of a result that map forms.
_PARTS = ("counts", "pairs", "steps")


class Stream(NamedTuple):
    """One stream of pages. load: reads its truth, in the process that measures it."""

    name: str
    generator: str
    kind: str  # "package", "public", "real" or "made"
    load: made.Load


def of_packages(folder: Path) -> Iterator[Stream]:
    """The packages whose archives are in the cache."""
    for package in packages.listed():
        if archives := packages.archives_of(package, folder):
            kind = "editions" if len(archives) > 2 else "releases" if len(archives) == 2 else "package"
            yield Stream(package.name, package.generator, kind, _Load(package.name, archives))


def of_made(data: Path | None, pages: int = made.CLASS_PAGES) -> Iterator[Stream]:
    """The gate's classes, and what a folder of public sets gives."""
    for name, kind, load in made.streams(data, pages):
        yield Stream(name, name, kind, load)


def of_sites(data: Path | None, kept_back: bool) -> Iterator[Stream]:
    """The made-up sites, and the crawled ones of a folder."""
    for name, kind, load in kinds.streams(data, kept_back):
        yield Stream(name, name, kind, load)


class _Load(NamedTuple):
    name: str
    archives: Sequence[tuple[str, Path]]

    def __call__(self) -> Truth:
        return Truth(read(self.name, self.archives))


def counted(truth: Truth, hidden: Mapping[int, int]) -> tuple[Counter[str], list[tuple[int, int]]]:
    """Counts of one form, and the pairs that are wrong.

    distinct: pages without an earlier page that is SAME; of these wrong, twin and edition are hidden behind such a
    page. exact, near and reframed are the other pages (`Truth.repeats`), exact_found and so on those of them that are
    hidden behind a page of theirs, and misled those that are hidden behind an OTHER one.
    """
    tally: Counter[str] = Counter(pages=len(truth.pages), hidden=len(hidden))
    wrong = []
    for place, (kind, earlier) in enumerate(truth.repeats):
        tally[kind] += 1
        other = hidden.get(place)
        if other is None:
            continue
        relations = {truth.of(one, other) if one != other else Relation.SAME for one in (place, *earlier)}
        apart = relations == {Relation.OTHER}
        if earlier:
            tally["misled" if apart else f"{kind}_found"] += 1
        elif apart:
            tally["wrong"] += 1
            wrong.append((place, other))
        else:
            tally[(relations - {Relation.OTHER}).pop().value] += 1
    return tally, wrong


def measured(stream: Stream, forms: Sequence[str]) -> dict[str, Any]:
    """Counts of one stream by form, and the wrong pairs of the rules by URL. The form "texts" stands for TEXT_RULES."""
    truth, steps = stream.load(), rules.forms()
    if isinstance(truth, Source):
        counts = {name: _of_tally(without(steps[name], truth)) if name in steps else {} for name in forms}
        return _result(stream, counts, {}, {})
    records = rules.sketched(truth.read())
    texts = rules.of_texts(truth.tokens()) if "texts" in forms else {}
    decided = {name: rules.decided(records, steps[name]) for name in forms if name in steps}
    hidden = texts | {name: {page: how.behind for page, how in found.items()} for name, found in decided.items()}
    counts: dict[str, Any] = {"texts": {}} if "texts" in forms else {}
    pairs, deciding = {}, {}
    for name, found in hidden.items():
        tally, wrong = counted(truth, found)
        counts[name] = dict(tally)
        deciding[name] = dict(Counter(decided[name][page].by for page, _ in wrong if name in decided))
        if name in texts or name in rules.RULES:
            pairs[name] = [(truth.pages[a].url, truth.pages[b].url) for a, b in wrong[:_PAIRS_MAX]]
    return _result(stream, counts, pairs, deciding)


def _result(
    stream: Stream, counts: dict[str, Any], pairs: dict[str, Any], deciding: dict[str, dict[str, int]]
) -> dict[str, Any]:
    """deciding: form -> number of wrong pages by the step that decided."""
    named = {"stream": stream.name, "generator": stream.generator, "kind": stream.kind}
    return {**named, "counts": counts, "pairs": pairs, "steps": deciding}


def _of_tally(tally: Tally) -> dict[str, int]:
    found, wrong = tally.found + tally.found_content, tally.wrong + tally.wrong_content
    return {"distinct": tally.items, "wrong": wrong, "near": tally.repeats, "near_found": found}


def code_digest() -> str:
    """Of everything that a result depends on, archives aside."""
    digest = blake2b(digest_size=6)
    here = Path(__file__).parent
    sources = [here / f"{name}.py" for name in ("made", "packages", "pages", "truth", "rules", "run")]
    sources += [
        here / "packages.tsv",
        *(here / "sites").iterdir(),
        *(path for room in ("neardup", "tests/measure/gate") for path in (_ROOT / room).rglob("*.py")),
    ]
    for path in sorted(path for path in sources if path.is_file()):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def results(
    streams: Sequence[Stream],
    forms: Sequence[str],
    folder: Path,
    processes: int,
    minutes: float,
    say: Callable[[str], None],
) -> list[dict[str, Any]]:
    """Results of streams and forms, kept or measured now; after so many minutes only of those that are done."""
    until = time.monotonic() + 60 * minutes
    kept = folder / "results" / code_digest()
    kept.mkdir(parents=True, exist_ok=True)
    files = {one.name: kept / f"{blake2b(one.name.encode(), digest_size=8).hexdigest()}.json" for one in streams}
    held = {name: json.loads(path.read_text()) for name, path in files.items() if path.exists()}
    missing = {one.name: [form for form in forms if form not in _counts(held, one.name)] for one in streams}
    waiting = [one for one in streams if missing[one.name]]
    tasks = [(one, missing[one.name]) for one in waiting]
    with closing(_each(tasks, processes, until)) as done:
        for number, result in enumerate(done, 1):
            name = result["stream"]
            for part in _PARTS:
                result[part] = held.get(name, {}).get(part, {}) | result[part]
            held[name] = result
            unfinished = files[name].with_suffix(".part")
            unfinished.write_text(json.dumps(result))
            unfinished.rename(files[name])
            say(f"{number} of {len(waiting)}: {name}")
    return [held[one.name] for one in streams if all(form in _counts(held, one.name) for form in forms)]


def _each(
    tasks: Sequence[tuple[Stream, Sequence[str]]], processes: int, until: float
) -> Generator[dict[str, Any], None, None]:
    """Results as they come, until a time. A process keeps the memory of its largest stream, so it is replaced now and
    then.

    A single process looks at the time between two streams; several are ended in the middle of one.
    """
    if processes == 1 or not tasks:
        for task in tasks:
            yield _measured(task)
            if time.monotonic() > until:
                return
        return
    with get_context("spawn").Pool(processes, maxtasksperchild=30) as pool:
        done = pool.imap_unordered(_measured, tasks)
        with suppress(TimeoutError):
            for _ in tasks:
                yield done.next(max(0.0, until - time.monotonic()))


def _measured(task: tuple[Stream, Sequence[str]]) -> dict[str, Any]:
    return measured(*task)


def _counts(held: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    counts: Mapping[str, Any] = held.get(name, {}).get("counts", {})
    return counts
