"""One article in the layouts of real pages, with comments.

    python -m tests.measure.bench.transplanted FOLDER --half 1

FOLDER: as for `tests.measure.bench.extraction`. In a page whose main content a person marked, the texts of that content
are taken out and another page's marked article is put where most of it stood; its headline goes into the page's heading
and title, beside the site's name. All else stays as it was fetched: menus, teasers, forms, comments. Articles of 150 to
1,500 words under a headline, each in `--layouts` pages of other hosts, with none to eight comments more. Numbers of the
rule were chosen on half 0 of the hosts. Told: the shares of repeats that are found, and what is merged wrongly, with
and without the step for syndicated articles; `meet`: pairs of one article that share a key.
"""

import argparse
import difflib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlsplit

from lxml import html as tree

from neardup.decider import Decider
from neardup.rules.posted_keys import similarity_keys
from neardup.scheme import Scheme
from neardup.sketch.header import Header
from tests.measure.bench.extraction import Marked, pages_of
from tests.measure.gate.measure import SEED, judged, sketched
from tests.measure.gate.sites import Sample

_WORD = re.compile(r"\w+")
_PART = re.compile(r"^\s*<(p|h|l|q|li|ul|ol)>", re.IGNORECASE | re.MULTILINE)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\ufffe\uffff]|&#(?:x[01]?[0-9a-f]|[12]?\d|3[01]);", re.IGNORECASE)
_HIDDEN = ("script", "style", "template", "noscript", "title", "option", "select", "textarea")
#: Where the article goes.
_PLACE = "\u241e"


@dataclass(frozen=True)
class Article:
    """headline, and paragraphs as text."""

    headline: str
    paragraphs: list[str]

    @property
    def words(self) -> int:
        return sum(len(_WORD.findall(paragraph)) for paragraph in self.paragraphs)


def article_of(page: Marked) -> Article | None:
    """The marked text of a page, if it is of the length of an article and has a headline."""
    _, *parts = _PART.split(page.marked)
    parts = [" ".join(_CONTROLS.sub(" ", part).split()) for part in parts]
    values = list(zip(map(str.lower, parts[::2]), parts[1::2], strict=True))
    headlines = [text for kind, text in values if kind == "h" and 4 <= len(_WORD.findall(text)) <= 16]
    paragraphs = [text for kind, text in values if kind in "pl" and len(_WORD.findall(text)) >= 8]
    found = Article(headlines[0], paragraphs) if headlines else None
    return found if found and 150 <= found.words <= 1500 else None


class Layout:
    """A real page around its main content. host: its own; name: what its title has beside the headline."""

    def __init__(self, page: Marked) -> None:
        """Raises ValueError for a page whose marked text is not found in it."""
        source = _CONTROLS.sub("", page.body.decode("utf-8", "replace"))
        self._page = tree.document_fromstring(source.encode(), parser=tree.HTMLParser(encoding="utf-8"))
        self.host = urlsplit(page.url).hostname or "a.example"
        self._texts = [text for text in _texts(self._page.find("body")) if _WORD.search(getattr(*text))]
        found = _marked_words([getattr(*text) for text in self._texts], page.gold)
        self._main = [at for at, (many, words) in enumerate(found) if many >= 0.6 * words]
        if sum(many for many, _ in found) < 0.8 * len(page.gold) or not self._main:
            raise ValueError(f"{page.path}: the marked text is not there")
        places = [at for at in self._main if not _within(self._texts[at], ("a", "h1", "h2", "h3"))]
        self._place = next((at for at in places if found[at][0] >= 12), max(self._main, key=lambda at: found[at][0]))
        headings = [_holder(self._texts[at]) for at in self._main if _within(self._texts[at], ("h1", "h2", "h3"))]
        self._heading = headings[0] if headings else None
        title = self._page.findtext(".//title") or ""
        self.name = re.split(r"\s[-|:\u2013\u2014\u00bb]+\s|:\s", title)[-1].strip()[:60] or self.host

    def html(self, article: Article, comments: str) -> bytes:
        """The page with this article in place of its own."""
        for at in self._main:
            setattr(*self._texts[at], " ")
        if self._heading is not None:
            self._heading.text = article.headline
        setattr(*self._texts[self._place], _PLACE)
        for title in self._page.findall(".//title")[:1]:
            title.text = f"{article.headline} | {self.name}"
        whole = tree.tostring(self._page, encoding="unicode")
        above = "" if self._heading is not None else f"<h2>{escape(article.headline)}</h2>"
        body = "".join(f"<p>{escape(paragraph)}</p>" for paragraph in article.paragraphs)
        return whole.replace(_PLACE, above + body + comments, 1).encode()


_Text = tuple[Any, str]


def _texts(element: Any) -> Iterator[_Text]:
    """(element, "text" or "tail") of all visible texts, in order."""
    waiting: list[tuple[Any, str]] = [] if element is None else [(element, "text")]
    while waiting:
        here, which = waiting.pop()
        if which == "tail":
            if here.tail:
                yield here, "tail"
            continue
        if not isinstance(here.tag, str) or here.tag in _HIDDEN:
            continue
        if here.text:
            yield here, "text"
        for child in reversed(here):
            waiting += [(child, "tail"), (child, "text")]


def _holder(text: _Text) -> Any:
    element, which = text
    return element if which == "text" else element.getparent()


def _within(text: _Text, tags: Sequence[str]) -> bool:
    holder = _holder(text)
    return holder.tag in tags or next(holder.iterancestors(*tags), None) is not None


def _marked_words(texts: Sequence[str], gold: Sequence[str]) -> list[tuple[int, int]]:
    """Of each text, its words that are marked, in runs of 3 and more, and all its words."""
    words, owners = [], []
    for at, text in enumerate(texts):
        found = _WORD.findall(text.lower())
        words += found
        owners += [at] * len(found)
    if len(words) > 15_000:
        raise ValueError("too long to align")
    marked = [0] * len(texts)
    for start, _, size in difflib.SequenceMatcher(None, words, gold, autojunk=False).get_matching_blocks():
        for at in owners[start : start + size] if size >= 3 else ():
            marked[at] += 1
    words_of = Counter(owners)
    return [(many, words_of[at]) for at, many in enumerate(marked)]


def transplanted(folder: Path, half: int | None, layouts: int, seed: int) -> list[Sample]:
    """Pages of all articles of a half, each in so many of its layouts, in order of arrival."""
    random = Random(seed)
    pages, places, articles = list(pages_of(folder, half)), [], []
    for page in pages:
        article = article_of(page)
        if article is not None:
            articles.append(article)
        try:
            places.append(page)
            Layout(page)
        except (ValueError, AssertionError):
            places.pop()
    samples = []
    for number, article in enumerate(articles):
        for page in random.sample(places, layouts):
            layout = Layout(page)
            comments = "".join(_comment(random, articles) for _ in range(random.randint(0, 8)))
            url = f"http://{layout.host}/news/{random.randrange(10**9)}"
            samples.append(Sample(url, layout.html(article, f"<ul>{comments}</ul>"), str(number), "real layouts"))
    random.shuffle(samples)
    return samples


def _comment(random: Random, articles: Sequence[Article]) -> str:
    words = " ".join(random.choice(articles).paragraphs).split()
    at, size = random.randrange(len(words)), random.randint(5, 60)
    text = escape(" ".join(words[at : at + size]))
    return f'<li><b>{escape(random.choice(words))}</b> <a href="/reply">Reply</a><p>{text}</p></li>'


def meeting(samples: Sequence[Sample], records: Sequence[bytes], decider: Decider) -> tuple[int, int]:
    """(pairs of one item that share a key, pairs of one item)"""
    keys: dict[str, list[set[bytes]]] = {}
    met = pairs = 0
    for sample, record in zip(samples, records, strict=True):
        mine = set(similarity_keys(Header(record), decider))
        for other in keys.setdefault(sample.item, []):
            pairs += 1
            met += not mine.isdisjoint(other)
        keys[sample.item].append(mine)
    return met, pairs


def main() -> None:
    options = argparse.ArgumentParser(description="One article in the layouts of several real pages.")
    options.add_argument("folder", type=Path)
    options.add_argument("--half", type=int, choices=(0, 1), help="hosts that numbers were chosen by (0), or not (1)")
    options.add_argument("--layouts", type=int, default=3, help="pages of each article")
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    samples = transplanted(given.folder, given.half, given.layouts, given.seed)
    records, decider = sketched(samples), Decider(Scheme(seed=SEED).digest)
    met, pairs = meeting(samples, records, decider)
    print(f"{len(samples):,} pages; {met:,} of {pairs:,} pairs of one article meet")
    print("| | repeats found | as same_content | wrong of items |\n|---|---|---|---|")
    for name, one in (("without the step", replace(decider, syndicated_tokens_min=0)), ("default", decider)):
        tally = judged(samples, records, one)
        wrong = tally.wrong + tally.wrong_content
        shares = f"{tally.found_share:.3f} | {tally.found_content / max(1, tally.repeats):.3f}"
        print(f"| {name} | {shares} | {wrong} of {tally.items} |")


if __name__ == "__main__":
    main()
