"""Records that rules read and write, as structured arrays: kernels and Python share them.

Fields are attributes of an element (`pairs[i].tape_score`), compiled and as plain Python. A rule compares numbers only;
names of steps are positions in `BY`.
"""

from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from neardup.decider import Decider, numbers
from neardup.pairs.pair import Pair
from neardup.rules.siblings import Siblings
from neardup.verdict import Kind

#: Names of steps and refusals, `Ruling.by`. Not persisted as numbers: a new name may stand anywhere.
BY = (
    "digest",
    # of the papers
    *("shingling", "simhash", "combined", "combined: B", "combined: C", "simhash64"),
    # of tapes
    *("thin", "title veto", "head veto", "tape", "unproved veto", "short tape", "content", "content: too short"),
    # of the default rule
    *("content: syndicated", "retitled", "heading veto", "record", "path", "siblings", "elsewhere", "length", "added"),
    *("adds", "renamed", "canonical", "own query"),
    # of a learned model
    "signals",
    # of numbers that are set for sites
    *("site", "never_merge"),
)
#: Names of steps that compare counts. Their scores and demands are integers in the evidence.
COUNTED = frozenset({"shingling", "simhash", "combined", "combined: B", "combined: C", "simhash64", "thin"})
#: Kinds of a ruling by number: those of `neardup.index.rows`.
KINDS: dict[int, Kind | None] = {
    0: None,
    2: Kind.EXACT_DUPLICATE,
    3: Kind.NEAR_DUPLICATE,
    4: Kind.SAME_CONTENT,
}
NO_KIND, EXACT_DUPLICATE, NEAR_DUPLICATE, SAME_CONTENT = KINDS


def _records(fields: Any) -> np.dtype[Any]:
    """A dtype whose elements have the fields as attributes, with the JIT off, too."""
    out = np.dtype((np.record, np.dtype(fields, align=True)))
    assert not set(out.names or ()) & set(dir(np.record)), "numpy's own attributes come first"
    return out


#: The numbers of a pair, float64 each: a view of what `neardup.kernels.pairs` computes.
PAIR = _records([(name, "f8") for name in Pair._fields])
#: Counts of `Siblings` that rulings depend on.
SIBLINGS = _records([(name, "i8") for name in ("others", "alike", "retitled", "moved")])
_NUMBERS = tuple(name for name, number in numbers().items() if number.kind in (int, float))
#: The numbers of a decider. rule: position in `RULE_NAMES`. left_out: steps that are left out, as bits by position.
#: tells_equal_pages: as of `neardup.rules.base.Rule`.
DECIDER = _records(
    [
        *((name, "f8") for name in _NUMBERS),
        *((name, "i8") for name in ("rule", "rule_version", "left_out", "tells_equal_pages")),
    ]
)
#: The numbers that are set for a site: 0 where none is. start, end: its name in `RuleTables.names`. raised: row of
#: `RuleTables.numbers` with its tape_min.
SITE = _records([("start", "i8"), ("end", "i8"), ("tape_min", "f8"), ("raised", "i8"), ("never_merge", "i8")])
#: A node of a learned model. signal: position in `OF_SKETCHES`, or -1 of a leaf. then, otherwise: the next node if the
#: signal is at most the bound, or above it. duplicate, score: of a leaf.
NODE = _records(
    [("signal", "i8"), ("bound", "f8"), ("then", "i8"), ("otherwise", "i8"), ("duplicate", "i8"), ("score", "f8")]
)
#: What a rule decides about a pair; see `neardup.rules.base.Ruling`.
RULING = _records(
    [
        ("kind", "u1"),  # key of KINDS
        ("by", "u1"),  # position in BY
        ("rank", "u1"),
        ("whole", "u1"),  # score and demand are counts
        ("kept_apart", "u1"),
        ("rank_score", "f8"),
        ("score", "f8"),
        ("demand", "f8"),
        ("plain_demand", "f8"),
        ("nearness", "f8"),
        ("added", "f8"),
    ]
)
#: A code point behind all letters and digits.
_ALNUM_END = 0x40000
#: Types of elements in annotations: numba's records have none that mypy knows.
PairRow: TypeAlias = Any
SiblingsRow: TypeAlias = Any
DeciderRow: TypeAlias = Any
RulingRow: TypeAlias = Any


class RuleTables(NamedTuple):
    """A decider as arrays, for kernels.

    numbers: DECIDER[1 + raised]. Row 0 has the decider's numbers; the others have a higher tape_min of a site.
    sites: SITE[1 + sites], ordered by the bytes of their names. Row 0 stands for all sites without numbers.
    names: uint8[bytes], the names of the sites in UTF-8.
    model: NODE[nodes], the learned model of the rule `signals`. It begins at node 0.
    alnum: uint8, a bit for each code point: whether it is a letter or a digit.
    """

    numbers: np.ndarray
    sites: np.ndarray
    names: np.ndarray
    model: np.ndarray
    alnum: np.ndarray


@cache
def alnum_bits() -> np.ndarray:
    """A bit for each code point, the highest of a byte first: whether it is a letter or a digit. No later one is."""
    characters = np.arange(_ALNUM_END, dtype=np.uint32).view("U1")
    return np.packbits(np.char.isalnum(characters))


def pairs_view(numbers: np.ndarray) -> np.ndarray:
    """The numbers of pairs, float64[pairs, fields of a Pair], as PAIR[pairs] in the same memory."""
    pairs: np.ndarray = np.ascontiguousarray(numbers).view(PAIR)[:, 0]
    return pairs


def siblings_array(siblings: Siblings) -> np.ndarray:
    """The counts as SIBLINGS[1]."""
    return np.array([siblings[:4]], SIBLINGS)


def decider_numbers(decider: Decider, rule: int, left_out: int, tells_equal_pages: bool) -> np.ndarray:
    """The numbers of a decider as DECIDER[1]."""
    values = (float(getattr(decider, name)) for name in _NUMBERS)
    return np.array([(*values, rule, decider.rule_version, left_out, tells_equal_pages)], DECIDER)
