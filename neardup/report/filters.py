"""The report's filter by site and verdict, as styles alone: the file runs nothing.

Two lists to choose from, and a rule for each choice that hides what is not chosen. Sites have numbers in class names,
so that nothing of a page gets into a style.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from neardup.report.samples import Card

#: Sites to choose from, those with most samples first.
SITES_MAX = 60


class Filter:
    """What can be chosen. sites: (class, site) and verdicts: (class, kind), in the order of the lists."""

    def __init__(self, cards: Iterable[Card], kinds: Sequence[str], clusters: Iterable[str] = ()) -> None:
        """cards: all that are shown. kinds: of verdicts, in their order. clusters: sites of those that are shown."""
        cards = list(cards)
        counts = Counter(card.site for card in cards if card.site) + Counter(site for site in clusters if site)
        named = sorted(counts, key=lambda site: (-counts[site], site))[:SITES_MAX]
        self._numbers = {site: f"site-{number}" for number, site in enumerate(named)}
        self.sites = [(self._numbers[site], site) for site in sorted(named)]
        there = {card.kind for card in cards}
        self.kinds = [(f"kind-{kind}", kind) for kind in kinds if kind in there]

    def classes(self, site: str, kind: str = "") -> str:
        """Of an element about a page of this site, and about this verdict, if one is named."""
        judged = [f"judged kind-{kind}"] if any(kind == one for _, one in self.kinds) else []
        return " ".join(["placed", self._numbers.get(site, "elsewhere"), *judged])

    @property
    def style(self) -> str:
        """CSS. A group of which nothing is left to see goes with its title."""
        rules = []
        for select, of, choices in (("by-site", "placed", self.sites), ("by-verdict", "judged", self.kinds)):
            for name, _ in choices:
                chosen = f'main:has(#{select} option[value="{name}"]:checked)'
                rules.append(f"{chosen} .{of}:not(.{name}), {chosen} .group:not(:has(.{name})) {{ display: none; }}")
        return "\n".join(rules) + "\n"
