"""A made-up crawl for tests of the report: verdicts as JSON objects, and the pages that they speak of."""

import random
from collections.abc import Iterator, Mapping
from typing import Any

from neardup.page import Page

SUBJECTS = ["index", "broker", "log", "page", "crawl", "token", "sketch", "cluster", "verdict", "matcher", "score"]
VERBS = ["reads", "writes", "keeps", "finds", "drops", "merges", "compares", "orders", "counts", "follows"]


class MadeUpCrawl:
    """`verdicts()` may be called again and gives the same. `read_page` answers from the pages made so far."""

    def __init__(self, count: int, seed: int = 1, hostile: str = "") -> None:
        self.count, self.seed, self.hostile = count, seed, hostile
        self.pages: dict[int, Page] = {}

    def verdicts(self, keep_pages: bool = True) -> Iterator[dict[str, Any]]:
        chance = random.Random(self.seed)
        clusters: list[dict[str, Any]] = []
        sizes: dict[int, int] = {}
        for number in range(self.count):
            page_id = (number // 512 << 12) | number % 512
            site = f"site{int(chance.paretovariate(0.8)) % 40}.example"
            verdict: dict[str, Any] = {
                "version": 1, "page_id": page_id, "n": 0, "url": f"https://www.{site}/doc/{number}.html",
                "fetched_at": 1_700_000_000_000 + number * 1000,
                "coordinates": {"source": "ab" * 16, "partition": 0, "offset": number, "position": number * 100},
                "scheme": "5" * 32, "decider": "d" * 32, "site": site,
                "title": f"Page {number} of {site}{self.hostile}",
            }  # fmt: skip
            roll = chance.random()
            if not clusters or roll < 0.55:
                self._unique(verdict, clusters, chance)
                sizes[page_id] = 1
                clusters.append(verdict)
            elif roll < 0.93:
                head = clusters[min(int(chance.paretovariate(0.5)) - 1, len(clusters) - 1)]
                sizes[head["cluster"]] += 1
                self._duplicate(verdict, head, sizes[head["cluster"]], chance)
            else:
                kind = chance.choice(["rejected", "unchanged", "edited", "stale", "gone"])
                verdict["verdict"] = kind
                if kind == "rejected":
                    verdict["reason"] = chance.choice(["HTTP status 500", "truncated gzip"]) + self.hostile
            if keep_pages:
                self._keep(verdict)
            yield verdict

    def read_page(self, coordinates: Mapping[str, Any]) -> Page | None:
        return self.pages.get(coordinates["offset"])

    def _unique(self, verdict: dict[str, Any], clusters: list[dict[str, Any]], chance: random.Random) -> None:
        same_content = clusters and chance.random() < 0.05
        verdict |= {"verdict": "unique", "cluster": verdict["page_id"], "cluster_size": 1}
        if clusters and chance.random() < 0.6:
            other = chance.choice(clusters)
            by = chance.choice(["tape", "tape", "title veto", "short tape"])
            score = {"tape": chance.betavariate(3, 4) * 0.74, "title veto": chance.betavariate(8, 2),
                     "short tape": chance.uniform(0.5, 0.85)}[by]  # fmt: skip
            near = _numbers(score, by, chance) | _place(other)
            verdict["evidence"] = {"nearest": near}
            if same_content:
                verdict["verdict"] = "same_content"
                verdict["content_of"] = _place(other)
                verdict["evidence"] = _numbers(0.5, "content", chance) | {"content_score": 0.9}

    def _duplicate(self, verdict: dict[str, Any], head: dict[str, Any], size: int, chance: random.Random) -> None:
        exact = chance.random() < 0.5
        verdict |= {"verdict": "exact_duplicate" if exact else "near_duplicate", "cluster": head["cluster"],
                    "cluster_size": size, "representative": _place(head)}  # fmt: skip
        score = 1.0 if exact else 0.74 + 0.26 * chance.betavariate(3, 1)
        verdict["evidence"] = _numbers(score, "digest" if exact else "tape", chance)

    def _keep(self, verdict: dict[str, Any]) -> None:
        offset = verdict["coordinates"]["offset"]
        place = verdict.get("representative")
        words = random.Random(place["coordinates"]["offset"] if place else offset)
        lines = [f"The {words.choice(SUBJECTS)} {words.choice(VERBS)} the {words.choice(SUBJECTS)}." for _ in range(90)]
        if verdict["verdict"] == "near_duplicate":
            mine = random.Random(offset)
            for line in mine.sample(range(90), 9):
                lines[line] = f"Release {offset} {mine.choice(VERBS)} its {mine.choice(SUBJECTS)}."
        text = "".join(f"<p>{line}{self.hostile}</p>" for line in lines)
        body = f"<title>{verdict['title']}</title>{text}".encode("utf-8", "surrogatepass")
        self.pages[offset] = Page(verdict["url"], body, "text/html; charset=utf-8", verdict["fetched_at"])


def _place(verdict: Mapping[str, Any]) -> dict[str, Any]:
    return {name: verdict[name] for name in ("page_id", "url", "fetched_at", "coordinates")}


def _numbers(score: float, by: str, chance: random.Random) -> dict[str, Any]:
    return {
        "by": by, "score": round(score, 4), "demand": 0.85 if by == "short tape" else 0.74,
        "tape_score": round(score, 4), "content_score": 0.0, "same_site": chance.random() < 0.8,
        "b_similarity": min(6, int(score * score * 7)),
        "c_similarity": min(384, int(330 + 54 * score + chance.gauss(0, 4))),
        "keys": {"head": 1, "wide": chance.randint(1, 8)},
    }  # fmt: skip
