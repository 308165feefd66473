"""The errors of rows that contradict each other."""

from neardup.errors import CorruptRecord, InvariantBroken
from neardup.index.column_families import Family
from neardup.matching.kernels import rows
from neardup.matching.store_keys import keys_of


def fault(r: rows.Rows) -> InvariantBroken | CorruptRecord:
    """The error that the last walk has found, by its reason and the two numbers with it."""
    why, a, b = (int(number) for number in r.n[rows.WHY : rows.WHY + 3])
    if why == rows.NO_ROW:
        return InvariantBroken(f"{_family(r, a)}: no row under {_key(r, a)}")
    if why == rows.MISPLACED:
        return InvariantBroken(f"the posting of page {a} is not where it was put: key {b} of the page")
    if why == rows.NOT_LIVE:
        return InvariantBroken(f"page {a} is not among the live pages of its digest {_key(r, b)}")
    if why == rows.TOO_FEW:
        return InvariantBroken(f"a digest counts {a} more live pages, but {b} are there")
    if why == rows.LEANS:
        return InvariantBroken(f"sketch {a} leans on another sketch than the row of its digest {_key(r, b)}")
    if why == rows.NO_MEMBERS:
        return InvariantBroken(f"cluster {a} counts {b} pages, but has no members")
    if why == rows.DAMAGED:
        row, length = int(r.entries["row"][a]), int(r.entries["length"][a])
        found = r.heap[row : row + min(length, 9)].tobytes().hex()
        return CorruptRecord(f"{_family(r, a)}: not a sketch under {_key(r, a)}: {found}..., {length} bytes")
    return InvariantBroken(f"{_family(r, b)}: the member {_key(r, b)} is held as one of cluster {a}")


def _key(r: rows.Rows, entry: int) -> str:
    return keys_of(r.entries[entry : entry + 1])[0].hex()


def _family(r: rows.Rows, entry: int) -> str:
    return Family(int(r.entries["kind"][entry]) >> 8).name.lower()
