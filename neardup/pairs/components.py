"""Connected components of pairs."""

from collections.abc import Iterable
from typing import TypeVar

Item = TypeVar("Item", int, str)


def components(pairs: Iterable[tuple[Item, Item]]) -> dict[Item, Item]:
    """Maps each item of a pair to the greatest item of its connected component, which is not among the keys."""
    above: dict[Item, Item] = {}

    def top(item: Item) -> Item:
        while (over := above.get(item, item)) != item:
            above[item] = above.get(over, over)
            item = over
        return item

    for a, b in pairs:
        one, other = top(a), top(b)
        if one != other:
            above[min(one, other)] = max(one, other)
    return {item: top(item) for item in above}
