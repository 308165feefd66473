"""Compares two texts by trustable LCS: Huang 2008; README.md, steps 5 to 8."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.kernels import longest_runs, straining, trusting
from neardup.partition.parameters import Parameters
from neardup.partition.texts import points, widths

_Points = npt.NDArray[np.uint32]
_Positions = npt.NDArray[np.int32]
#: (start, end) of each region.
_Regions = tuple[tuple[int, int], ...]


class Likeness(NamedTuple):
    """The result for a pair.

    by: the step that decided: "length" of the sketches, "edits" that leave too short a common subsequence, or
    "trustable".
    trusted: characters of the TLCS. a, b, kept_a, kept_b: characters of the texts and of their filtered sketches.
    regions: (start, end) in the shorter text; in b if both have the same length.
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
    regions: _Regions


class Alignment(NamedTuple):
    """The result of steps 5 and 6 over two texts.

    by: the step that decided, "trustable" if none did. partner: int32[shorter], positions in the longer text, -1 for
    unmatched characters.
    """

    by: str
    kept_longer: int
    kept_shorter: int
    partner: _Positions


def compare(a: str, b: str, parameters: Parameters) -> Likeness:
    """Decides whether two compared texts are near-duplicates, and how much they share.

    An empty text matches no text.
    """
    sides = points(a), points(b)
    turned = len(sides[0]) < len(sides[1])
    longer, shorter = sides[::-1] if turned else sides
    sizes = len(longer), len(shorter)
    # position independence can add characters later, by an amount not known here
    least = 1 if parameters.removals else least_common(*sizes, parameters)
    first = made = aligned(longer, shorter, least, parameters.window_bytes)
    part, found = _trusted(made.partner, parameters)
    trusted, regions = part, found
    for _ in range(parameters.removals):
        if not part:
            break
        longer, shorter = _without(longer, shorter, made.partner, regions)
        made = aligned(longer, shorter, 1, parameters.window_bytes)
        part, regions = _trusted(made.partner, parameters)
        trusted += part
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
        found,
    )


def filtered(a: _Points, b: _Points, window: int) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Marks the characters of each text that lie in a window of `window` bytes that the other text contains too."""
    keep_a, keep_b = np.zeros(len(a), np.uint8), np.zeros(len(b), np.uint8)
    straining.strain(a, b, widths(a), widths(b), window, keep_a, keep_b)
    return keep_a.view(np.bool_), keep_b.view(np.bool_)


def script(a: _Points, b: _Points, least: int = 0) -> _Positions | None:
    """Aligns b to a: int32[len(b)], the position in a of each character of b in their LCS, -1 for the others.

    Returns None if the LCS is shorter than `least`. Of several LCS it takes the one of step 6.
    """
    if len(a) == len(b) >= least and np.array_equal(a, b):  # filtered near-duplicates often are equal
        return np.arange(len(b), dtype=np.int32)
    # Imported here: a partition by a rule of a scan runs without the packages of this one.
    from rapidfuzz.distance import LCSseq

    one, other = (side.tobytes().decode("utf-32-le", "surrogatepass") for side in (a, b))
    common = LCSseq.similarity(one, other, score_cutoff=least)
    if common < least:
        return None
    partner = np.full(len(b), -1, np.int32)
    if common:
        longest_runs.align(a, b, common, partner)
    return partner


def least_common(longer: int, shorter: int, parameters: Parameters) -> int:
    """Returns the least number of common characters, at least 1, at which texts of these lengths exceed a threshold.

    One more than the length of the shorter text if no number suffices.
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


def aligned(longer: _Points, shorter: _Points, least: int, window: int) -> Alignment:
    """Strains two texts with windows of so many bytes, and aligns the sketches if they can share `least` characters."""
    partner = np.full(len(shorter), -1, np.int32)
    keep_longer, keep_shorter = filtered(longer, shorter, window)
    in_longer, in_shorter = np.flatnonzero(keep_longer), np.flatnonzero(keep_shorter)
    kept = len(in_longer), len(in_shorter)
    if min(kept) < least:
        return Alignment("length", *kept, partner)
    found = script(longer[in_longer], shorter[in_shorter], least)
    if found is None:
        return Alignment("edits", *kept, partner)
    matched = found >= 0
    partner[in_shorter[matched]] = in_longer[found[matched]]
    return Alignment("trustable", *kept, partner)


def resemblance(made: Alignment, longer: _Points, shorter: _Points, parameters: Parameters) -> float:
    """Computes the resemblance of two aligned texts."""
    trusted, _ = _trusted(made.partner, parameters)
    return trusted / (len(longer) + len(shorter) - trusted) if trusted else 0.0


def _trusted(partner: _Positions, parameters: Parameters) -> tuple[int, _Regions]:
    """Makes step 7: (characters of the TLCS, its regions in the shorter text)."""
    chosen = np.empty((parameters.regions, 2), np.int32)
    if not len(partner):
        return 0, ()
    many, trusted = trusting.regions(partner, parameters.slope_max, parameters.blocks, parameters.regions, chosen)
    return int(trusted), tuple((int(start), int(end)) for start, end in chosen[:many])


def _without(longer: _Points, shorter: _Points, partner: _Positions, regions: _Regions) -> tuple[_Points, _Points]:
    """Removes the regions from the shorter text, and their matched characters from the longer one."""
    rest_longer, rest_shorter = np.ones(len(longer), np.bool_), np.ones(len(shorter), np.bool_)
    for start, end in regions:
        rest_shorter[start:end] = False
        places = partner[start:end]
        rest_longer[places[places >= 0]] = False
    return longer[rest_longer], shorter[rest_shorter]
