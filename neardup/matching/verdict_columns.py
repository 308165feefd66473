"""The verdicts of a batch as columns, which the walk fills; `neardup.matching.verdict_lines` makes lines of them.

The kernel names records by their byte offset in the heap, one buffer with all records of the batch and of the index
that the batch has read; `*_at` is such an offset. It decodes no text, and writes numbers of pairs once.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from neardup.rules.records import BY
from neardup.verdict import Kind

#: Kinds by code; the first five are the standings of `neardup.index.rows`. 0: no kind.
KINDS = (
    *(None, Kind.UNIQUE, Kind.EXACT_DUPLICATE, Kind.NEAR_DUPLICATE, Kind.SAME_CONTENT, Kind.GONE),
    *(Kind.UNCHANGED, Kind.EDITED, Kind.STALE, Kind.REJECTED, Kind.PROMOTED),
)
#: In columns with a page id or an offset: there is none.
NONE = -1
#: In `standing_content_of`: the field is absent.
NO_FIELD = -2


class Form(IntEnum):
    """What the evidence of a verdict describes."""

    EMPTY = 0
    #: A page that had no candidates.
    ALONE = 1
    #: A page that no candidate repeats: the nearest of them.
    NEAREST = 2
    #: The candidate that the page repeats.
    BEST = 3
    #: A live page of the same digest.
    DIGEST = 4
    #: The last check of a page against a sketch of its cluster.
    CHECK = 5
    #: A page that reclaimed a cluster: the former representative, and the page against the founding sketch.
    CLAIM = 6


#: One verdict. `blank` has the values of absent fields.
VERDICT = np.dtype(
    (
        np.record,
        np.dtype(
            [
                ("i", "i4"),  # position in the batch of the record that causes the verdict
                ("n", "i4"),  # number of the verdict; 0: the page's own
                ("kind", "u1"),  # code in KINDS
                ("cut", "u1"),  # whether some candidates were not scored
                ("down", "u1"),  # whether an operator took the page down: then only its URL and site are named
                ("named", "u1"),  # whether the verdict has the field `representative`
                ("standing", "u1"),  # code in KINDS of the verdict that is in force; 0: no field
                ("at", "i8"),  # record of the page that the verdict is about
                ("replaces", "i8"),  # page id, or NONE
                # the cluster of the page; NONE: no cluster
                ("cluster", "i8"),
                ("pages", "i8"),
                ("revision", "i8"),
                ("canonical_at", "i8"),  # offset of the text in UTF-8
                ("canonical_bytes", "i8"),  # 0: the URL of the representative
                ("founding", "i8"),  # page id of the cluster's founding sketch, which represents it
                ("founding_at", "i8"),
                ("content_of", "i8"),  # founding page id of the page with the same main content, or NONE
                ("content_of_at", "i8"),
                ("standing_content_of", "i8"),  # `content_of` of the cluster's row, NONE for NO_PAGE; or NO_FIELD
                # evidence
                ("form", "u1"),  # Form
                ("by", "u1"),  # the step that decided, by its place in the table of names
                ("whole", "u1"),  # whether score and demand are integers
                ("kept_apart", "u1"),  # whether `by` alone kept similar texts apart
                ("others", "u1"),  # siblings
                ("alike", "u1"),  # siblings; 0: no field
                ("candidates", "i4"),
                ("score", "f8"),
                ("demand", "f8"),
                ("added", "f8"),  # what the older page adds, as a share of it
                ("pair", "i8"),  # row of `VerdictColumns.numbers`; NONE: no numbers
                ("a_at", "i8"),  # the two pages whose languages and sites are compared: the new page,
                ("b_at", "i8"),  # and the other; NONE: their languages are not named
                ("other", "i8"),  # page id of the page that the evidence names: nearest, holder or former
                ("other_at", "i8"),
                ("keys", "u8"),  # bit k: key k of `families_of` is shared with the best candidate, and not hot
                ("turned", "i8"),  # start in `VerdictColumns.turned` of the keys that turned hot
                ("turned_many", "i8"),
            ],
            align=True,
        ),
    )
)


def blank() -> np.ndarray:
    """Returns VERDICT[1] without any optional field, for kernels to copy."""
    out = np.zeros(1, VERDICT)
    for name in ("at", "replaces", "cluster", "founding", "founding_at", "content_of", "content_of_at", "pair"):
        out[name] = NONE
    for name in ("a_at", "b_at", "other", "other_at"):
        out[name] = NONE
    out["standing_content_of"] = NO_FIELD
    return out


class VerdictColumns(NamedTuple):
    """The verdicts of a batch as arrays.

    rows: VERDICT[verdicts], in order.
    heap: uint8[bytes], the records that the rows name.
    page_ids: page ids of the batch, int64[pages].
    numbers: numbers of pairs, float64[pairs, fields of a Pair].
    turned: keys that turned hot, uint64[keys], as `similarity_columns` has them.
    names: names of steps, by the code in `by`.
    """

    rows: np.ndarray
    heap: np.ndarray
    page_ids: np.ndarray
    numbers: np.ndarray
    turned: np.ndarray
    names: Sequence[str] = BY
