"""Posting lists as they gain and lose postings; their format is that of `neardup.index.posting_rows`."""

from neardup.errors import InvariantBroken
from neardup.index.posting_rows import HOT, POSTING_BYTES, is_hot

LIST = b"\x01"


def with_posting(row: bytes | None, entry: bytes, postings_max: int, kept: int) -> bytes:
    """The row after one more posting; hot, for ever, if there would be more than `postings_max`.

    kept: number of sites of which a hot row keeps a posting.
    """
    entries = [*entries_of(row), entry]
    if not is_hot(row) and len(entries) <= postings_max:
        return (row or LIST) + entry
    hot: list[bytes] = []
    for one in entries:
        admit(hot, one, kept)
    return HOT + b"".join(hot)


def admit(hot: list[bytes], entry: bytes, kept: int) -> None:
    """Adds a posting to a hot list that has fewer than `kept`, and none of its site."""
    if len(hot) < kept and all(one[-1] != entry[-1] for one in hot):
        hot.append(entry)


def without_posting(row: bytes | None, entry: bytes) -> bytes | None:
    """The row without a posting; None if it was the last. A hot row stays, and may lack the posting.

    Raises InvariantBroken if the posting is not there.
    """
    entries = list(entries_of(row))
    if entry in entries:
        entries.remove(entry)
        assert row is not None
        return row[:1] + b"".join(entries) if entries or is_hot(row) else None
    if is_hot(row):
        return row
    raise InvariantBroken(f"posting {entry.hex()} is not where it was put")


def entries_of(row: bytes | None) -> list[bytes]:
    return [] if row is None else [row[at : at + POSTING_BYTES] for at in range(1, len(row), POSTING_BYTES)]
