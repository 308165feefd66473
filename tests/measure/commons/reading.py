"""Pairs to be read by eye, drawn by seed, and how often people found the truth wrong on them."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from tests.measure.commons import rules
from tests.measure.commons.run import Stream
from tests.measure.commons.truth import Relation, Truth

#: Judgements of readers: relation, URLs, "right", "wrong" or "unclear", and a reason.
JUDGEMENTS = Path(__file__).with_name("judgements.tsv")
_LINES_MAX, _LINE_MAX = 16, 160


class Drawn(NamedTuple):
    """Two pages that the default rule or `tape` brought together. difference: lines of a diff."""

    relation: Relation
    a: str
    b: str
    difference: list[str]

    def __str__(self) -> str:
        return "\n".join([f"\n## {self.relation.value}\n{self.a}\n{self.b}", *self.difference])


def drawn(streams: Sequence[Stream], count: int, seed: int) -> Iterator[Drawn]:
    """`count` pairs in all, as many of each relation, at most two of a relation from one package."""
    left = dict.fromkeys(Relation, count // len(Relation))
    packages = [one for one in streams if one.kind in ("package", "releases", "editions")]
    for stream in sorted(packages, key=lambda one: _rank(one.name, seed)):
        truth = stream.load()
        assert isinstance(truth, Truth)
        records = rules.sketched(truth.read())
        found: dict[Relation, set[tuple[int, int]]] = defaultdict(set)
        for name in rules.RULES[:2]:
            for page, other in rules.hidden(records, rules.forms()[name]).items():
                found[truth.of(page, other)].add((page, other))
        for relation, pairs in found.items():
            pairs = {(a, b) for a, b in pairs if truth.whole[a] != truth.whole[b]}
            for a, b in sorted(pairs, key=lambda pair: _rank(f"{pair}", seed))[: min(2, left[relation])]:
                left[relation] -= 1
                yield Drawn(relation, truth.pages[a].url, truth.pages[b].url, list(_difference(truth, a, b)))
        if not any(left.values()):
            return


def still_open(streams: Sequence[Stream]) -> Iterator[Drawn]:
    """The pairs of sites that the default rule brought together and whose relation the truth does not know."""
    for stream in streams:
        truth = stream.load()
        assert isinstance(truth, Truth)
        found = rules.hidden(rules.sketched(truth.read()), rules.forms()[rules.DEFAULT])
        for page, other in sorted(found.items()):
            if (relation := truth.of(page, other)) is Relation.TWIN:
                yield Drawn(
                    relation, truth.pages[page].url, truth.pages[other].url, list(_difference(truth, page, other))
                )


def _rank(text: str, seed: int) -> bytes:
    return blake2b(f"{seed} {text}".encode(), digest_size=8).digest()


def _difference(truth: Truth, a: int, b: int) -> Iterator[str]:
    one, other = (f"{truth.titles[place]}\n{truth.texts[place]}".split("\n") for place in (b, a))
    lines = [line for line in unified_diff(one, other, n=0, lineterm="") if not line.startswith(("---", "+++", "@@"))]
    yield f"title: {truth.titles[a]} | {len(one)} lines, {len(lines)} differ, LJ {truth.likeness(a, b):.2f}"
    for line in lines[:_LINES_MAX]:
        yield line[:_LINE_MAX]


def judged(path: Path = JUDGEMENTS) -> dict[str, Counter[str]]:
    """Relation -> counts of "right", "wrong" and "unclear"."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            relation, _, _, values, _ = line.split("\t")
            counts[relation][values] += 1
    return dict(counts)
