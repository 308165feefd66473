"""Main contents against pages marked by hand, beside other extractors.

    python -m tests.measure.bench.extraction FOLDER

FOLDER holds the sets of the archive `real_web_pages_gold`, each with `input/*.html` and `GoldStandard/*.txt`. Counted
are tokens, cut in one way for all: precision, recall and F1 of the multiset of a page's extracted tokens against that
of its marked ones, means over pages. `--half` takes the pages of every second host.
Others run in an environment of their own (`--peers`, a folder that is made if missing), on the same pages in the same
run; us: of a page, wall clock; ours is of the whole sketch, main content and all else. Comments of a page count as
marked where its labellers counted them.
"""

import argparse
import json
import re
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import md5
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from neardup.evaluation.corpus_texts import page_tokens
from neardup.page import Page
from neardup.scheme import Scheme
from neardup.sketch.make_sketches import sketch_pages
from neardup.text.one_page_tokens import words
from tests.measure.bench.peers import made
from tests.measure.gate.measure import SEED

#: Versions that the figures in README.md are of.
PACKAGES = ("trafilatura==2.3.1", "resiliparse==2.0.1", "readability-lxml==0.9", "lxml_html_clean==0.4.6")
_MARK = re.compile(r"^\s*(?:<(?:p|h|l|q|li|ul|ol)>|URL:.*$)", re.IGNORECASE | re.MULTILINE)
_OPENING = re.compile(rb'^\s*<text id="([^"]+)"[^>]*>')
_PEERS_S_MAX = 1800


@dataclass(frozen=True)
class Marked:
    """A page as it was fetched. marked: its main content as a person marked it, `<p>`, `<h>`, `<l>` before each part;
    gold: the tokens of it.
    """

    set: str
    path: Path
    url: str
    body: bytes
    marked: str
    gold: list[str]


def pages_of(folder: Path, half: int | None = None) -> Iterator[Marked]:
    """Pages with anything marked, set by set. half: 0 or 1, of hosts; None: all."""
    for path in sorted(folder.glob("*/input/*.html")):
        values = path.parents[1] / "GoldStandard" / f"{path.stem}.txt"
        if not values.exists():
            continue
        body = path.read_bytes()
        found = _OPENING.match(body)
        url = found[1].decode("utf-8", "replace") if found else f"http://{path.stem.lower()}.example/"
        marked = values.read_bytes().decode("utf-8", "replace")
        gold = words(_MARK.sub(" ", marked).encode(), 1)
        if gold and half in (None, half_of(url)):
            yield Marked(path.parents[1].name, path, url, body[found.end() :] if found else body, marked, gold)


def half_of(url: str) -> int:
    """0 or 1, the same for all pages of a host."""
    host = (urlsplit(url).hostname or url).removeprefix("www.")
    return md5(host.encode(), usedforsecurity=False).digest()[0] % 2


def figures(found: Sequence[str], gold: Sequence[str]) -> tuple[float, float, float]:
    """Precision, recall and F1 of two multisets of tokens; 0 where nothing was found."""
    common = sum((Counter(found) & Counter(gold)).values())
    precision, recall = common / len(found) if found else 0.0, common / len(gold)
    return precision, recall, 2 * precision * recall / (precision + recall) if common else 0.0


def ours(page: Marked, scheme: Scheme) -> dict[str, list[str]]:
    """Tokens of the article, of the main content by densities, and all tokens."""
    tokens = page_tokens(Page(page.url, page.body, "text/html; charset=utf-8"), scheme)
    words = np.array(tokens.words, dtype=object)
    chosen = {"neardup: article": tokens.article, "neardup: by densities": tokens.content}
    return {name: words[inside].tolist() for name, inside in chosen.items()} | {"all text": tokens.words}


def theirs(pages: Sequence[Marked], folder: Path) -> dict[str, dict[str, tuple[list[str], float]]]:
    """{extractor: {path: (tokens, seconds)}} of peers in an environment of their own."""
    python = made(folder, PACKAGES)
    request = json.dumps([[str(page.path), page.body.decode("utf-8", "replace")] for page in pages])
    command = [str(python), "-P", str(Path(__file__).with_name("extractors.py"))]
    done = subprocess.run(command, input=request, capture_output=True, text=True, timeout=_PEERS_S_MAX, check=True)
    return {
        name: {path: (words(text.encode("utf-8", "replace"), 1), seconds) for path, (text, seconds) in texts.items()}
        for name, texts in json.loads(done.stdout).items()
    }


def table(pages: Sequence[Marked], peers: dict[str, dict[str, tuple[list[str], float]]]) -> str:
    """Markdown: a line for each extractor, precision / recall / F1 of each set."""
    scheme = Scheme(seed=SEED)
    rows: dict[str, dict[str, list[tuple[float, float, float]]]] = {}
    costs: dict[str, list[float]] = {"neardup: article": [_sketching(pages, scheme)]}
    for page in pages:
        found = ours(page, scheme)
        for name, texts in peers.items():
            found[name], seconds = texts[str(page.path)]
            costs.setdefault(name, []).append(seconds)
        for name, tokens in found.items():
            rows.setdefault(name, {}).setdefault(page.set, []).append(figures(tokens, page.gold))
    sets = list(dict.fromkeys(page.set for page in pages))
    counts = Counter(page.set for page in pages)
    lines = [
        "| | " + " | ".join(f"{name} ({counts[name]})" for name in sets) + " | us |",
        "|---" * (len(sets) + 2) + "|",
    ]
    for name, by_set in rows.items():
        cells = [" / ".join(f"{value:.3f}" for value in np.mean(by_set[one], axis=0)) for one in sets]
        cost = f"{1e6 * float(np.mean(costs[name])):.0f}" if name in costs else ""
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {cost} |")
    return "\n".join(lines)


def _sketching(pages: Sequence[Marked], scheme: Scheme) -> float:
    """Seconds a page, the least of three rounds."""
    bodies, rounds = [Page(page.url, page.body, "text/html; charset=utf-8") for page in pages], []
    for _ in range(3):
        began = time.perf_counter()
        sketch_pages(bodies, scheme)
        rounds.append((time.perf_counter() - began) / len(pages))
    return min(rounds)


def main() -> None:
    options = argparse.ArgumentParser(description="Main contents against pages marked by hand.")
    options.add_argument("folder", type=Path)
    options.add_argument("--half", type=int, choices=(0, 1), help="of the hosts")
    options.add_argument("--peers", type=Path, help="folder of the environment of other extractors")
    given = options.parse_args()
    pages = list(pages_of(given.folder, given.half))
    print(table(pages, theirs(pages, given.peers) if given.peers else {}))


if __name__ == "__main__":
    main()
