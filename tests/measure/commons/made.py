"""Streams whose truth is given: classes of the gate, public sets, labelled texts, real pages and edits of them."""

import tarfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from random import Random

from tests.measure.bench.extraction import pages_of as marked_pages
from tests.measure.commons.packages import cache_folder
from tests.measure.commons.pages import Served
from tests.measure.commons.truth import Relation, Truth
from tests.measure.gate import corpora
from tests.measure.gate.ablation import SEEDS, Labelled, Source, human_pairs, pairs, samples_of_one_site
from tests.measure.gate.editions import syndicated
from tests.measure.gate.language import Language
from tests.measure.gate.same import article, slug
from tests.measure.gate.sites import Sample
from tests.measure.gate.test_gate import GATES

#: Pages of a class for each of two seeds. Public sets give 20 pages for 3 of these.
CLASS_PAGES = 300
_WORDS_MIN = 80

Load = Callable[[], Truth | Source]


class Itemed(Truth):
    """Pages of one item are SAME, others are OTHER."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        super().__init__([Served(one.url, one.item, str(place), one.html) for place, one in enumerate(samples)])

    def _of(self, a: int, b: int) -> Relation:
        return Relation.SAME if self.pages[a].key == self.pages[b].key else Relation.OTHER


class Gold(Truth):
    """Real pages of many sites: SAME, EDITION or OTHER by the likeness of the main contents that people marked."""

    def _of(self, a: int, b: int) -> Relation:
        likeness = self.likeness(a, b)
        return Relation.SAME if likeness >= 0.9 else Relation.EDITION if likeness >= 0.5 else Relation.OTHER


def streams(data: Path | None, pages: int = CLASS_PAGES) -> Iterator[tuple[str, str, Load]]:
    """(name, kind, load) of the gate's classes, and of the public sets in a folder."""
    for gate in GATES:
        yield f"class: {gate.generate.__name__}", "made", partial(_class, gate.generate, pages)
    yield "class: syndicated, other headlines", "made", partial(_class, _other_headlines, pages)
    for canonical in (False, True):
        name = "twenty slugs" + (", one canonical" if canonical else "")
        yield name, "slugs", partial(_slugs, canonical)
    if data is None or not (data / "human_pairs.jsonl.xz").exists():
        return
    yield "A: labelled pairs, two sites", "labelled", partial(_pairs_of, data, False)
    yield "A: one site", "labelled", partial(_pairs_of, data, True)
    yield "B: edits of real pages, two sites", "labelled", partial(_edits_of, data, False)
    yield "B: one site", "labelled", partial(_edits_of, data, True)
    yield "real web pages", "real", partial(_real, data)
    for one in corpora.SETS:
        if (data / f"{one.archive}.tar.xz").exists():
            yield one.name, "public", partial(_public, data, one.archive, 20 * pages // 3)


def _class(generate: Callable[[int, int], list[Sample]], pages: int) -> Truth:
    return Itemed([one._replace(item=f"{seed} {one.item}") for seed in SEEDS for one in generate(pages, seed)])


def _other_headlines(n: int, seed: int) -> list[Sample]:
    """Syndicated articles, each paper with a headline of its own."""
    random, language = Random(seed), Language(seed)
    samples = []
    for one in syndicated(n, seed):
        title = one.item.encode()
        samples.append(one._replace(html=one.html.replace(title, language.topic(random, 5, 9).encode())))
    return samples


def _slugs(canonical: bool, seed: int = 31) -> Truth:
    """Each of ten articles at twenty addresses of one site that differ in slugs of letters, each copy with a clock."""
    random, language = Random(seed), Language(seed)
    samples = []
    for item in range(10):
        title, host = language.topic(random, 5, 8), f"www.{language.name(random).lower()}{item}.example"
        text = article(language, random, title)
        for copy in range(20):
            clock = f"{random.randint(0, 23):02}:{random.randint(0, 59):02}:{random.randint(0, 59):02}"
            named = f'<link rel="canonical" href="http://{host}/article/{item}">' if canonical else ""
            html = f"<title>{title}</title>{named}<nav>home</nav>{text}<p>{clock} March 2024</p>"
            url = f"http://{host}/article/{slug(language.topic(random, 3, 5))}-{chr(97 + copy)}"
            samples.append(Sample(url, html.encode(), str(item), "slugs"))
    return Itemed(samples)


def _labelled(rows: Sequence[Labelled], one_site: bool) -> Truth | Source:
    return Itemed(samples_of_one_site(rows)) if one_site else pairs(rows)


def _pairs_of(data: Path, one_site: bool) -> Truth | Source:
    return _labelled(human_pairs(data / "human_pairs.jsonl.xz"), one_site)


def _edits_of(data: Path, one_site: bool) -> Truth | Source:
    return _labelled(edits(data), one_site)


def edits(data: Path, seed: int = 31) -> list[Labelled]:
    """Set B: marked texts of real pages, and an edit of each.

    A duplicate has up to 4% of its words replaced, or a teaser put before and after it, or the last sixth cut off. A
    text that is none keeps a share of 30 to 60% of the words, beside sentences of another page.
    """
    random = Random(seed)
    texts = [page.gold for page in marked_pages(_unpacked(data)) if _WORDS_MIN <= len(page.gold) <= 3000]
    rows = []
    for number, words in enumerate(texts):
        other = texts[(number + 1 + random.randrange(len(texts) - 1)) % len(texts)]
        edit = list(words)
        kind = random.randrange(4)
        if kind == 0:
            for at in random.sample(range(len(edit)), max(1, len(edit) // random.randint(25, 100))):
                edit[at] = random.choice(other)
        elif kind == 1:
            many = min(len(words) // 12, len(other) // 2)
            edit = [*other[:many], *words, *other[-many:]] if many else edit + other[:1]
        elif kind == 2:
            edit = words[: len(words) - max(1, len(words) // random.randint(6, 20))]
        else:
            kept = int(len(words) * random.uniform(0.3, 0.6))
            edit = [*words[:kept], *(other * (len(words) // len(other) + 1))[: len(words) - kept]]
        rows.append(Labelled(" ".join(words), " ".join(edit), kind != 3))
    return rows


def _unpacked(data: Path) -> Path:
    folder = cache_folder() / "real_web_pages_gold"
    if not folder.exists():
        part = folder.with_suffix(".part")
        with tarfile.open(data / "real_web_pages_gold.tar.xz") as tar:
            tar.extractall(part, filter="data")
        part.rename(folder)
    return folder


def _real(data: Path) -> Truth:
    found = list(marked_pages(_unpacked(data)))
    pages = [Served(page.url, str(page.path), "", page.body) for page in found]
    return Gold(pages, [" ".join(page.gold) for page in found])


def _public(data: Path, archive: str, pages_max: int) -> Truth:
    """All releases of some items of the half of a set that no number was chosen by."""
    one = next(one for one in corpora.SETS if one.archive == archive)
    served = [page for tuned, page in corpora.pages_of(data, one) if not tuned]
    items = sorted({page.item for page in served})
    count = min(len(items), len(items) * pages_max // len(served))
    wanted = set(Random(SEEDS[0]).sample(items, count))
    pages = [Served(page.url, page.item, page.edition, page.body()) for page in served if page.item in wanted]
    Random(SEEDS[0]).shuffle(pages)
    return Truth(pages)
