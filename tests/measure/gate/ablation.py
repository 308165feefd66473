"""What each veto and step of the default rule is worth: pages of known truth under it, with and without each.

    python -m tests.measure.gate.ablation --pages 500 --data ../shared/data --out FILE

Steps are taken out of the rule's list one at a time, by name; parts of steps by a number of the decider. Judged are

* the gate's classes, of other seeds than the gate's own: each class is a stream, all of them are counted together, and
  the class on which a step does most is named;
* with --data: texts of pairs that people labelled, as pairs of two sites and as a stream of one site; and of each
  public set the half that nothing was chosen by. The same path in another edition counts as a repeat, however much of
  it was written anew.

Packages of documentation are in `tests.measure.commons`.

A cell is: share of the repeats found / items hidden behind another, per 1,000 / F1; empty where nothing changes;
of pages without repeats the second alone. The first row is the whole rule.
"""

import argparse
import json
import lzma
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np

from neardup.decider import Decider
from neardup.page import Page
from neardup.pairs.scoring import compare_records
from neardup.rules import RULES, default_rule
from neardup.scheme import Scheme
from neardup.sketch.make_sketches import sketch_pages
from tests.measure.gate.corpora import SETS, pages_of
from tests.measure.gate.measure import SEED, Tally, judged, sketched
from tests.measure.gate.sites import Sample
from tests.measure.gate.test_gate import GATES

#: Seeds of the gate's pages; the gate itself, and the choice of its numbers, used others.
SEEDS = (31, 32)


@dataclass(frozen=True)
class Step:
    """What is taken away. numbers: of the decider, with which something is off. left_out: a step of the rule."""

    name: str
    numbers: Mapping[str, float] = field(default_factory=dict)
    left_out: str = ""


#: The last step of the rule decides all pairs that are left, so it stays. A pair of one article under two titles passes
#: the names for the sake of a later step, so without its number the names decide.
STEPS = (
    Step("nothing"),
    *(Step(step.name, left_out=step.name) for step in default_rule.STEPS[:-1] if step.name != "syndicated"),
    Step("syndicated", {"syndicated_tokens_min": 0}),
    Step("alike", {"alike_min": 255}),
    Step("stamps", {"stamp_words_max": 0}),
    Step("short tape", {"short_tape_min": 0.74}),
    Step("two sites", {"two_sites_tape_min": 0.74}),
    Step("renamed", {"renamed_tape_min": 0.0}),
    Step("hot postings kept", {"hot_postings_kept": 0}),
)


@dataclass
class Source:
    """Pages or pairs of known truth. measure: what the rule does with them under a decider."""

    name: str
    measure: Callable[[Decider], Tally]


@contextmanager
def lacking(left_out: str) -> Iterator[None]:
    """The default rule without one of its steps; whole if the name is empty."""
    rule = RULES["verified"]
    if not left_out:
        yield
        return
    RULES["verified"] = rule.without(left_out)
    try:
        yield
    finally:
        RULES["verified"] = rule


def without(step: Step, source: Source) -> Tally:
    decider = Decider(Scheme(seed=SEED).digest, **step.numbers)  # type: ignore[arg-type]
    with lacking(step.left_out):
        return source.measure(decider)


def stream(name: str, samples: Sequence[Sample]) -> Source:
    """Pages in the order given, streamed."""
    records = sketched(samples)
    return Source(name, lambda decider: judged(samples, records, decider))


def gate(pages: int) -> list[Source]:
    """Each class of the gate."""
    return [of_class(gate.generate, pages) for gate in GATES]


def of_class(generate: Callable[[int, int], list[Sample]], pages: int) -> Source:
    """A class of the gate, with seeds that no number was chosen on."""
    samples = [one._replace(item=f"{seed} {one.item}") for seed in SEEDS for one in generate(pages, seed)]
    return stream(generate.__name__, samples)


class Labelled(NamedTuple):
    """Two texts, and whether people called them duplicates."""

    a: str
    b: str
    same: bool


def human_pairs(archive: Path) -> list[Labelled]:
    """The decided pairs of an archive of JSON lines."""
    with lzma.open(archive, "rt") as lines:
        rows = [json.loads(line) for line in lines]
    return [Labelled(row["text_a"], row["text_b"], row["label"] >= 2) for row in rows if row["label"] not in (None, 1)]


def pairs(rows: Sequence[Labelled]) -> Source:
    """Each pair for itself, on two sites. Duplicates are repeats, the other pairs are items."""
    texts = [text for row in rows for text in (row.a, row.b)]
    pages = [Page(f"http://text{at}.example/", text.encode(), "text/plain") for at, text in enumerate(texts)]
    records = sketch_pages(pages, Scheme(seed=SEED))
    numbers = [compare_records(b, [a])[0] for a, b in zip(records[::2], records[1::2], strict=True)]

    def measured(decider: Decider) -> Tally:
        tally = Tally(items=sum(not row.same for row in rows), repeats=sum(row.same for row in rows))
        for row, pair in zip(rows, numbers, strict=True):
            merged = pair.same_digest or RULES[decider.rule].decide(pair, decider).kind is not None
            tally.found += merged and row.same
            tally.wrong += merged and not row.same
        return tally

    return Source("labelled pairs, two sites", measured)


def texts_of_one_site(rows: Sequence[Labelled]) -> Source:
    """The same texts as a stream of one site."""
    return stream("the same texts, one site", samples_of_one_site(rows))


def samples_of_one_site(rows: Sequence[Labelled]) -> list[Sample]:
    """The same texts without titles, at addresses that tell nothing; texts that hang together by duplicates are one."""
    above: dict[str, str] = {}

    def top(text: str) -> str:
        while (over := above.get(text, text)) != text:
            text = over
        return text

    for row in rows:
        if row.same:
            above[top(row.b)] = top(row.a)
    texts = dict.fromkeys(text for row in rows for text in (row.a, row.b))
    return [
        Sample(f"http://one.example/{_short(text)}", f"<p>{text}</p>".encode(), _short(top(text)), "texts")
        for text in texts
    ]


def _short(text: str) -> str:
    return blake2b(text.encode(), digest_size=6).hexdigest()


def public_halves(folder: Path, count: int) -> Iterator[Source]:
    """Of each public set the half that nothing was chosen by: all pages of some items, `count` in all."""
    for one in SETS:
        if not (folder / one.archive).is_dir() and not (folder / f"{one.archive}.tar.xz").exists():
            continue
        served = [page for tuned, page in pages_of(folder, one) if not tuned]
        items = sorted({page.item for page in served})
        wanted = set(Random(SEEDS[0]).sample(items, min(len(items), len(items) * count // len(served))))
        samples = [Sample(page.url, page.body(), page.item, one.name) for page in served if page.item in wanted]
        Random(SEEDS[0]).shuffle(samples)
        yield stream(one.name, samples)


def ablated(sources: Sequence[Source], steps: Sequence[Step] = STEPS) -> list[list[Tally]]:
    """Tallies by step and source."""
    return [[without(step, source) for source in sources] for step in steps]


def cell(tally: Tally) -> str:
    if not tally.repeats:
        return f"{tally.wrong_per_1000:.1f}"
    return f"{tally.found_share:.3f} / {tally.wrong_per_1000:.1f} / {tally.f1:.4f}"


def table(names: Sequence[str], tallies: Sequence[Sequence[Tally]], steps: Sequence[Step] = STEPS) -> str:
    """In Markdown. names: of the sources; tallies: of the whole rule, then without each other step."""
    lines = ["| without | " + " | ".join(names) + " |", "|---" * (1 + len(names)) + "|"]
    for step, row in zip(steps, tallies, strict=True):
        whole = row is tallies[0]
        cells = [cell(one) if whole or one != usual else "" for one, usual in zip(row, tallies[0], strict=True)]
        lines.append(f"| {step.name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def most(classes: Sequence[Source], tallies: Sequence[Sequence[Tally]], steps: Sequence[Step] = STEPS) -> str:
    """In Markdown: for each step the classes whose F1 falls and rises most without it."""
    lines = ["| without | falls most | from | to | rises most | from | to |", "|---" * 7 + "|"]
    for step, row in zip(steps[1:], tallies[1:], strict=True):
        changes = [one.f1 - usual.f1 for one, usual in zip(row, tallies[0], strict=True)]
        cells = [step.name]
        for at, change in ((np.argmin(changes), -1), (np.argmax(changes), 1)):
            changed = changes[at] * change > 0
            cells += [classes[at].name, cell(tallies[0][at]), cell(row[at])] if changed else ["", "", ""]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    options = argparse.ArgumentParser(description="The default rule with and without each of its steps.")
    options.add_argument("--pages", type=int, default=300, help="of each class of the gate, for each of two seeds")
    options.add_argument("--real", type=int, default=3000, help="of each public set, at most")
    options.add_argument("--data", type=Path, help="folder of the public archives, or what they unpack to")
    options.add_argument("--out", type=Path, default=Path("build/ablation.md"))
    given = options.parse_args()
    classes = gate(given.pages)
    by_class = ablated(classes)
    values = most(classes, by_class)
    print(values, flush=True)
    names, tallies = ["the gate's classes"], [[sum(row, Tally())] for row in by_class]
    for source in _real(given.data, given.real):
        names.append(source.name)
        for row, one in zip(tallies, ablated([source]), strict=True):
            row += one
        print(source.name, flush=True)
    whole = table(names, tallies)
    print(whole)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(f"{whole}\n{values}")


def _real(data: Path | None, count: int) -> Iterator[Source]:
    if data is not None:
        rows = human_pairs(data / "human_pairs.jsonl.xz")
        yield pairs(rows)
        yield texts_of_one_site(rows)
        yield from public_halves(data, count)


if __name__ == "__main__":
    main()
