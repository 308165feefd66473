"""Results of queries whose truth is known, as JSON lines, with labels: to learn from, and to measure what was learned.

    python -m tests.measure.gate.results build/results --queries 120 --human ../shared/data/human_pairs.jsonl.xz
    neardup train build/results/results.jsonl --labels build/results/labels.jsonl --out build/results/model.json
    neardup evaluate signals build/results/results.jsonl --labels build/results/labels.jsonl

Of each query there is an article, duplicates of it as Huffman 2007 names them to its judges (mirrors, printer versions,
other advertisements, redirects), and what its judges call different (another item of one template, the same content in
other surroundings, login walls, another order). Bodies of redirects and of scripted pages differ from what a browser
makes of them. All pairs of a query are labelled, NOISE of them wrongly, as people do. --human writes the pairs that
people labelled as well: plain texts, without title, query or rendered body.
"""

import argparse
import json
import lzma
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from random import Random

from tests.measure.gate.language import Language
from tests.measure.gate.same import slug
from tests.measure.gate.sites import FAMILIES, Site, make_site

#: Share of wrong labels; of one judge of several, and of pairs that such a judge cannot decide.
NOISE, JUDGE_NOISE, JUDGE_UNDECIDED = 0.02, 0.08, 0.03
JUDGES, ADJUDICATOR = ("ana", "bob", "eve"), "max"
_LANGUAGES = ("xa", "xb")


@dataclass(frozen=True)
class Found:
    """One result. item: results of one item are duplicates. rendered: None where it is as it was fetched."""

    url: str
    body: str
    item: str
    rendered: str | None = None


class Query:
    """Makes the results of one query."""

    def __init__(self, language: Language, random: Random) -> None:
        self.language, self.random = language, random
        self.text = " ".join(random.sample(language.words[2000:], 2))
        self.site = self._site()

    def _site(self) -> Site:
        return make_site(self.language, self.random, self.random.choice(FAMILIES))

    def _words(self, least: int, most: int) -> str:
        """Paragraphs in which the query's words turn up."""
        paragraphs = []
        for _ in range(self.random.randint(least, most)):
            words = self.language.text(self.random, self.random.randint(30, 90)).split()
            if self.random.random() < 0.6:
                words[self.random.randrange(len(words))] = self.random.choice(self.text.split())
            paragraphs.append(f"<p>{' '.join(words)}</p>")
        return "".join(paragraphs)

    def results(self) -> list[Found]:
        """The article, and five to seven others, in the order in which engines may have put them."""
        title = f"{self.text.capitalize()} {self.language.topic(self.random, 1, 3)}"
        main = f"<h1>{title}</h1>{self._words(3, 14)}"
        page = self.site.html(title, main).decode()
        url = f"http://{self.site.host}/{slug(title)}"
        out = [Found(url, page, "article")]
        makers: list[Callable[[str, str, str, str], Iterator[Found]]] = [
            *(self._mirror, self._printer, self._adverts, self._redirect),
            *(self._sibling, self._aggregator, self._wall, self._resorted, self._scripted),
        ]
        for make in self.random.sample(makers, self.random.randint(5, 7)):
            out += make(url, page, title, main)
        self.random.shuffle(out)
        return out

    def _mirror(self, url: str, page: str, title: str, main: str) -> Iterator[Found]:
        line = f"<p>Mirror of {self.site.host}. {self.language.text(self.random, self.random.randint(3, 25))}</p>"
        yield Found(f"http://{self.language.name(self.random).lower()}.org/{slug(title)}", line + page, "article")

    def _printer(self, url: str, page: str, title: str, main: str) -> Iterator[Found]:
        yield Found(f"{url}?print=1", f"<title>{title}</title><body>{main}</body>", "article")

    def _adverts(self, url: str, page: str, title: str, main: str) -> Iterator[Found]:
        advert = f"<aside>{self.language.text(self.random, self.random.randint(10, 80))}</aside>"
        yield Found(f"{url}?ref={self.random.randrange(10**6)}", page.replace("<main", f"{advert}<main"), "article")

    def _redirect(self, url: str, page: str, title: str, main: str) -> Iterator[Found]:
        host = f"{self.language.name(self.random).lower()}.net"
        body = f'<meta http-equiv="refresh" content="0;url={url}"><title>Moved</title>{host}'
        yield Found(f"http://{host}/", body, "article", page)

    def _sibling(self, url: str, page: str, title: str, main: str) -> Iterator[Found]:
        """The next item of the same template; half of them under the same words but one."""
        other = (
            f"{title} {self.random.randint(2, 9)}" if self.random.random() < 0.5 else self.language.topic(self.random)
        )
        text = main if self.random.random() < 0.2 else self._words(3, 14)
        text = text.replace("<p>", f"<p>{self.language.text(self.random, 25)}</p><p>", 1)
        body = self.site.html(other, f"<h1>{other}</h1>{text}").decode()
        yield Found(f"http://{self.site.host}/{slug(other)}-2", body, "sibling")

    def _aggregator(self, url: str, page: str, title: str, main: str) -> Iterator[Found]:
        site = self._site()
        around = f"{main}<h2>{self.language.topic(self.random)}</h2>{self._words(2, 6)}"
        yield Found(f"http://{site.host}/{slug(title)}", site.html(title, around).decode(), "aggregator")

    def _wall(self, url: str, page: str, title: str, main: str) -> Iterator[Found]:
        text = f"<h1>{title}</h1><form>{self.language.text(self.random, 20)}<input name=user></form>"
        yield Found(f"{url}/full", self.site.html(title, text).decode(), "wall")

    def _resorted(self, url: str, page: str, title: str, main: str) -> Iterator[Found]:
        rows = [f"<li>{self.language.topic(self.random)} {self.text}</li>" for _ in range(self.random.randint(8, 30))]
        for order in ("date", "price"):
            body = self.site.html(title, f"<h1>{self.text}</h1><ul>{''.join(rows)}</ul>").decode()
            yield Found(f"http://{self.site.host}/list?sort={order}", body, f"list by {order}")
            self.random.shuffle(rows)

    def _scripted(self, url: str, page: str, title: str, main: str) -> Iterator[Found]:
        """Two pages of one application, one of them twice: their fetched bodies are one shell."""
        site = self._site()
        shell = f'<title>{site.name}</title><div id="app"></div><script src="/app.js"></script>'
        first, second = (f"<h1>{self.text}</h1>{self._words(3, 10)}" for _ in range(2))
        for at, (item, text) in enumerate((("first", first), ("second", second), ("first", first))):
            seen = f'<title>{site.name}</title><div id="app">{site.before}{text}</div><p>{self.random.random()}</p>'
            yield Found(f"http://{site.host}/#!{at}".replace("#!", "view"), shell, f"view {item}", seen)


def queries(count: int, seed: int) -> Iterator[tuple[str, str, list[Found]]]:
    """(query, language, results) of some queries, in two languages by turns."""
    languages = [Language(seed + number, 8000) for number in range(len(_LANGUAGES))]
    for number in range(count):
        query = Query(languages[number % 2], Random(f"{seed} {number}"))
        yield query.text, _LANGUAGES[number % 2], list({one.url: one for one in query.results()}.values())


def write_results(out: Path, count: int, seed: int, *, judges: bool = False) -> int:
    """Writes results.jsonl and labels.jsonl; returns the number of labelled pairs.

    judges: each pair has the labels of several, and where they differ that of an adjudicator.
    """
    out.mkdir(parents=True, exist_ok=True)
    noise, pairs = Random(seed), 0
    with (out / "results.jsonl").open("w") as results, (out / "labels.jsonl").open("w") as labels:
        for query, lang, found in queries(count, seed):
            for one in found:
                line = {"query": query, "url": one.url, "body": one.body, "lang": lang, "content_type": "text/html"}
                results.write(json.dumps(line | ({"rendered": one.rendered} if one.rendered else {})) + "\n")
            for a, b in combinations(found, 2):
                same = (a.item == b.item) != (noise.random() < NOISE)
                labels.write(_judged(a.url, b.url, same, noise) if judges else _label(a.url, b.url, same))
                pairs += 1
    return pairs


def _label(a: str, b: str, same: bool) -> str:
    return json.dumps({"a": {"url": a}, "b": {"url": b}, "label": "correct" if same else "incorrect"}) + "\n"


def _judged(a: str, b: str, same: bool, noise: Random) -> str:
    """What each judge says of a pair, and where they differ the adjudicator."""
    reported = []
    for _ in JUDGES:
        wrong, undecided = noise.random() < JUDGE_NOISE, noise.random() < JUDGE_UNDECIDED
        reported.append("undecided" if undecided else "correct" if same != wrong else "incorrect")
    final = "correct" if same else "incorrect"
    names = [*zip(JUDGES, reported, strict=True), *([(ADJUDICATOR, final)] if len(set(reported)) > 1 else [])]
    pair = {"a": {"url": a}, "b": {"url": b}}
    return "".join(json.dumps({**pair, "label": label, "labeller": name}) + "\n" for name, label in names)


def write_human(archive: Path, out: Path) -> int:
    """Writes human.jsonl and human_labels.jsonl of the pairs that people labelled; returns how many are decided."""
    out.mkdir(parents=True, exist_ok=True)
    pairs = 0
    with (
        lzma.open(archive, "rt") as lines,
        (out / "human.jsonl").open("w") as results,
        (out / "human_labels.jsonl").open("w") as labels,
    ):
        for number, line in enumerate(lines):
            one = json.loads(line)
            if one["label"] in (None, 1):
                continue
            pairs += 1
            # of two sites, under one path: what the URLs of the pages were is not known
            urls = [f"http://{side}{number}.example/" for side in "ab"]
            for url, side in zip(urls, "ab", strict=True):
                text = {"url": url, "body": one[f"text_{side}"], "content_type": "text/plain", "lang": one["crawl"]}
                results.write(json.dumps(text) + "\n")
            labels.write(_label(*urls, one["label"] >= 2))
    return pairs


def main() -> None:
    options = argparse.ArgumentParser(description="Builds results of queries with labels.")
    options.add_argument("out", type=Path)
    options.add_argument("--queries", type=int, default=120)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--human", type=Path, help="human_pairs.jsonl.xz")
    options.add_argument("--judges", action="store_true", help="several labels a pair, with an adjudicator's")
    given = options.parse_args()
    pairs = write_results(given.out, given.queries, given.seed, judges=given.judges)
    print(f"{pairs:,} labelled pairs in {given.out}")
    if given.human:
        print(f"{write_human(given.human, given.out):,} pairs that people labelled")


if __name__ == "__main__":
    main()
