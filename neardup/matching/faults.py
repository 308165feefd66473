"""The errors of rows that contradict each other."""

from neardup.errors import InvariantBroken
from neardup.index.column_families import Family
from neardup.matching.kernels import rows
from neardup.matching.store_keys import keys_of

# Reasons of BROKEN, `rows.n[rows.WHY]`; a and b are its two numbers.
(NO_ROW, MISPLACED, NOT_LIVE, TOO_FEW, LEANS, NO_MEMBERS, OTHER_CLUSTER) = range(7)


def fault(r: rows.Rows) -> InvariantBroken:
    """The error that the last walk has found."""
    why, a, b = (int(number) for number in r.n[rows.WHY : rows.WHY + 3])
    if why == NO_ROW:
        return InvariantBroken(f"{_family(r, a)}: no row under {_key(r, a)}")
    if why == MISPLACED:
        return InvariantBroken(f"the posting of page {a} is not where it was put: key {b} of the page")
    if why == NOT_LIVE:
        return InvariantBroken(f"page {a} is not among the live pages of its digest {_key(r, b)}")
    if why == TOO_FEW:
        return InvariantBroken(f"a digest counts {a} more live pages, but {b} are there")
    if why == LEANS:
        return InvariantBroken(f"sketch {a} leans on another sketch than the row of its digest {_key(r, b)}")
    if why == NO_MEMBERS:
        return InvariantBroken(f"cluster {a} counts {b} pages, but has no members")
    return InvariantBroken(f"{_family(r, b)}: the member {_key(r, b)} is held as one of cluster {a}")


def _key(r: rows.Rows, entry: int) -> str:
    return keys_of(r.entries[entry : entry + 1])[0].hex()


def _family(r: rows.Rows, entry: int) -> str:
    return Family(int(r.entries["kind"][entry]) >> 8).name.lower()
