"""What is made of lists and of accepted pairs, one pass each: absorption, stars, transitive sets."""

from collections.abc import Iterable


def absorb(contained: Iterable[tuple[int, int]], depth: int) -> list[tuple[int, int]]:
    """(representative, owner) of the lists that greater ones absorb: README.md, step 4.

    contained: (representative, a smaller representative in its list), the greatest first. depth: 1: those in the list
    itself; 2: also those in the lists that these had; and so on.
    """
    within: dict[int, list[int]] = {}
    for rep, item in contained:
        within.setdefault(rep, []).append(item)
    owner: dict[int, int] = {}
    for rep in within:
        if rep in owner:
            continue
        reached = [rep]
        for _ in range(depth):
            fresh: list[int] = []
            for at in reached:
                for item in within.get(at, ()):
                    if item not in owner:
                        owner[item] = rep
                        fresh.append(item)
            reached = fresh
    return list(owner.items())


def stars(accepted: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Member -> representative, each verified against it. accepted: pairs (a, b) with a > b, the greatest a first.

    The greatest key comes first: it takes all that it was found similar to; who is taken represents nobody.
    """
    taken: dict[int, int] = {}
    for a, b in accepted:
        if a not in taken and b not in taken:
            taken[b] = a
    return taken


def transitive(accepted: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Member -> the greatest key of all that hang together by accepted pairs; that key itself is left out."""
    above: dict[int, int] = {}

    def top(item: int) -> int:
        while (over := above.get(item, item)) != item:
            above[item] = above.get(over, over)
            item = over
        return item

    for a, b in accepted:
        one, other = top(a), top(b)
        if one != other:
            above[min(one, other)] = max(one, other)
    return {item: top(item) for item in above}
