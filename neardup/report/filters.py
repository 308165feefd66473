"""Filters the report by site and verdict with CSS alone, since the file runs no scripts.

Each option of two lists has a rule that hides the other elements. Class names use numbers for sites, so that no
content of a page enters a style.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from neardup.report.samples import Card

#: Sites in the filter, those with most samples first.
SITES_MAX = 60


class Filter:
    """Options of the filter. sites: (class, site). verdicts: (class, kind). Both in list order."""

    def __init__(self, cards: Iterable[Card], kinds: Sequence[str], clusters: Iterable[str] = ()) -> None:
        """Collects the options.

        cards: all cards shown. kinds: verdicts in their order. clusters: sites of the clusters shown.
        """
        cards = list(cards)
        counts = Counter(card.site for card in cards if card.site) + Counter(site for site in clusters if site)
        named = sorted(counts, key=lambda site: (-counts[site], site))[:SITES_MAX]
        self._numbers = {site: f"site-{number}" for number, site in enumerate(named)}
        self.sites = [(self._numbers[site], site) for site in sorted(named)]
        there = {card.kind for card in cards}
        self.kinds = [(f"kind-{kind}", kind) for kind in kinds if kind in there]

    def classes(self, site: str, kind: str = "") -> str:
        """Returns the classes of an element about a page of this site, and about this verdict if one is given."""
        judged = [f"judged kind-{kind}"] if any(kind == one for _, one in self.kinds) else []
        return " ".join(["placed", self._numbers.get(site, "elsewhere"), *judged])

    @property
    def style(self) -> str:
        """Returns the CSS. A group without visible elements is hidden with its title."""
        rules = []
        for select, of, choices in (("by-site", "placed", self.sites), ("by-verdict", "judged", self.kinds)):
            for name, _ in choices:
                chosen = f'main:has(#{select} option[value="{name}"]:checked)'
                rules.append(f"{chosen} .{of}:not(.{name}), {chosen} .group:not(:has(.{name})) {{ display: none; }}")
        return "\n".join(rules) + "\n"
