"""Two texts by trustable LCS: Huang 2008; README.md, steps 5 to 8."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from rapidfuzz.distance import LCSseq

from neardup.kernels import alignment, straining, trusting
from neardup.partition.parameters import Parameters
from neardup.partition.texts import points, widths

_Points = npt.NDArray[np.uint32]
_Places = npt.NDArray[np.int32]

#: Up to so many edits Myers' algorithm is the faster one; beyond, the library's bits are.
EDITS_MAX = 800


class Likeness(NamedTuple):
    """What was found of a pair. a, b, kept_a, kept_b: characters of the texts and of their filtered sketches.

    trusted: characters of the TLCS. regions: of the shorter text (of equal ones b), start and end. by: the step that
    decided: "length" of the sketches, "edits" that leave too short a common subsequence, or "trustable".
    """

    similar: bool
    by: str
    resemblance: float
    containment: float
    trusted: int
    a: int
    b: int
    kept_a: int
    kept_b: int
    regions: tuple[tuple[int, int], ...]


class _Part(NamedTuple):
    """One run over two texts. partner int32[shorter]: places in the longer one, -1 for what is not matched."""

    by: str
    kept_longer: int
    kept_shorter: int
    partner: _Places
    trusted: int = 0
    regions: tuple[tuple[int, int], ...] = ()


def compare(a: str, b: str, parameters: Parameters) -> Likeness:
    """Whether two compared texts are near-duplicates, and by how much. An empty text is like nothing."""
    sides = points(a), points(b)
    turned = len(sides[0]) < len(sides[1])
    longer, shorter = sides[::-1] if turned else sides
    sizes = len(longer), len(shorter)
    # what position independence adds later cannot be foreseen
    least = 1 if parameters.removals else least_common(*sizes, parameters)
    first = part = _run(longer, shorter, least, parameters)
    trusted = first.trusted
    for _ in range(parameters.removals):
        if not part.trusted:
            break
        longer, shorter = _without(longer, shorter, part)
        part = _run(longer, shorter, 1, parameters)
        trusted += part.trusted
    resemblance = trusted / (sum(sizes) - trusted) if trusted else 0.0
    containment = trusted / sizes[1] if trusted else 0.0
    kept = first.kept_longer, first.kept_shorter
    return Likeness(
        _exceeds(trusted, *sizes, parameters),
        first.by,
        resemblance,
        containment,
        trusted,
        *(sizes[::-1] if turned else sizes),
        *(kept[::-1] if turned else kept),
        first.regions,
    )


def filtered(a: _Points, b: _Points, window: int) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Which characters of each text lie in a window of `window` bytes that the other text holds, too."""
    keep_a, keep_b = np.zeros(len(a), np.uint8), np.zeros(len(b), np.uint8)
    straining.strain(a, b, widths(a), widths(b), window, keep_a, keep_b)
    return keep_a.view(np.bool_), keep_b.view(np.bool_)


def script(a: _Points, b: _Points, least: int = 0) -> _Places | None:
    """int32[len(b)]: the place in a of each character of b that is of their LCS, -1 for the others.

    None if their LCS is shorter than `least`. Of several LCS always the same one is found.
    """
    if len(a) == len(b) >= least and np.array_equal(a, b):  # what is left of near-duplicates often is
        return np.arange(len(b), dtype=np.int32)
    limit = len(a) + len(b) - 2 * least
    partner = np.empty(len(b), np.int32)
    if alignment.align(a, b, min(limit, EDITS_MAX), partner) >= 0:
        return partner
    if limit <= EDITS_MAX:
        return None
    one, other = (side.tobytes().decode("utf-32-le", "surrogatepass") for side in (a, b))
    if LCSseq.similarity(one, other, score_cutoff=least) < least:
        return None
    partner[:] = -1
    for block in LCSseq.editops(one, other).as_matching_blocks():
        partner[block.b : block.b + block.size] = np.arange(block.a, block.a + block.size)
    return partner


def least_common(longer: int, shorter: int, parameters: Parameters) -> int:
    """The least number of common characters, at least 1, with which texts of these lengths exceed a threshold.

    One more than the shorter text has where they never do.
    """
    rate, share = parameters.resemblance_min, parameters.containment_min
    least = max(1, min(int(rate * (longer + shorter) / (1 + rate)), int(share * shorter)) - 1)
    while least <= shorter and not _exceeds(least, longer, shorter, parameters):
        least += 1
    return least


def _exceeds(common: int, longer: int, shorter: int, parameters: Parameters) -> bool:
    if not common:
        return False
    union = longer + shorter - common
    return common / union > parameters.resemblance_min or common / shorter > parameters.containment_min


def _run(longer: _Points, shorter: _Points, least: int, parameters: Parameters) -> _Part:
    nothing = np.full(len(shorter), -1, np.int32)
    keep_longer, keep_shorter = filtered(longer, shorter, parameters.window_bytes)
    in_longer, in_shorter = np.flatnonzero(keep_longer), np.flatnonzero(keep_shorter)
    kept = len(in_longer), len(in_shorter)
    if min(kept) < least:
        return _Part("length", *kept, nothing)
    found = script(longer[in_longer], shorter[in_shorter], least)
    if found is None:
        return _Part("edits", *kept, nothing)
    partner = nothing
    matched = found >= 0
    partner[in_shorter[matched]] = in_longer[found[matched]]
    chosen = np.empty((parameters.regions, 2), np.int32)
    many, trusted = trusting.regions(partner, parameters.slope_max, parameters.blocks, parameters.regions, chosen)
    regions = tuple((int(start), int(end)) for start, end in chosen[:many])
    return _Part("trustable", *kept, partner, int(trusted), regions)


def _without(longer: _Points, shorter: _Points, part: _Part) -> tuple[_Points, _Points]:
    """The texts without what is trusted: the regions of the shorter one, and what they are matched with."""
    rest_longer, rest_shorter = np.ones(len(longer), np.bool_), np.ones(len(shorter), np.bool_)
    for start, end in part.regions:
        rest_shorter[start:end] = False
        places = part.partner[start:end]
        rest_longer[places[places >= 0]] = False
    return longer[rest_longer], shorter[rest_shorter]
