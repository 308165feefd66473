"""Defines the levels of similarity by which Henzinger 2006 samples and tabulates pairs."""

#: The cutoff of C-similarity in the combined algorithm, and the threshold t of algorithm C (bits of 384).
COMBINED_CUTOFF, C_MIN = 355, 372
#: Ranges of C-similarity, both ends included.
C_LEVELS = ((382, 384), (379, 381), (376, 378), (0, 375))


def c_level_name(low: int, high: int) -> str:
    """Returns the name of a range of C-similarity in the paper's table."""
    if high == 384:
        return f"C-similarity >= {low}"
    return f"C-similarity {low}-{high}" if low else f"C-similarity < {high + 1}"
