"""Groups from pairs: absorbed lists and stars."""

from collections.abc import Iterable


def absorb(contained: Iterable[tuple[int, int]], depth: int) -> list[tuple[int, int]]:
    """Returns (representative, owner) for each list that a list with a greater representative absorbs (step 4).

    contained: (representative, a smaller representative in its list), the greatest first.
    depth: 1 absorbs the lists whose representatives are in the list itself, 2 also the lists that those absorb, and so
    on.
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
    """Maps each member to a representative that it was compared with.

    The greatest free key takes all free keys that it is similar to. A key that is taken represents no set.

    accepted: pairs (a, b) with a > b, the greatest a first.
    """
    taken: dict[int, int] = {}
    for a, b in accepted:
        if a not in taken and b not in taken:
            taken[b] = a
    return taken
