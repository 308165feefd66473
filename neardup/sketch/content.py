"""The main content of a page, told from navigation, advertisements and footers by what its text blocks are worth."""

import numpy as np
import numpy.typing as npt

from neardup.kernels import content as kernels


def main_content(flags: npt.NDArray[np.uint8], block: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """bool[n]: which tokens belong to the main content (Pasternack, Roth 2009, maximum subsequence segmentation).

    flags, block of n tokens, as `neardup.kernels.tokens` gives them. Title tokens never belong to it. A page of one
    block is its own content, unless it consists of links (ours).
    """
    n = len(flags)
    chosen_tokens = np.zeros(n, np.bool_)
    if n == 0:
        return chosen_tokens
    starts, ends, linked = (np.empty(n, np.uint32) for _ in range(3))
    chosen = np.empty(n, np.uint8)
    many, _, _ = kernels.blocks(flags, block, n, starts, ends, linked)
    kernels.choose(many, starts, ends, linked, chosen)
    for j in np.flatnonzero(chosen[:many]):
        chosen_tokens[starts[j] : ends[j]] = True
    return chosen_tokens
