"""Computes signals from two sketch records, for models that judge pages of a stream (ours)."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from neardup.pairs.pair import Pair
from neardup.signals.table import STEPS, in_steps

_BITS = 384


def _token_length(pair: Any) -> Any:
    longer = np.maximum(np.maximum(pair.tokens_a, pair.tokens_b), 1)
    return abs(pair.tokens_a - pair.tokens_b) / longer


#: Functions by signal name. Each takes one Pair, or columns with the fields of a Pair.
OF_SKETCHES: Mapping[str, Callable[[Any], Any]] = {
    "same_site": lambda pair: pair.same_site * 1.0,
    "same_title": lambda pair: pair.same_title * 1.0,
    "token_length": _token_length,
    "simhash": lambda pair: 1 - pair.c_similarity / _BITS,
    "tape": lambda pair: 1 - pair.tape_score,
    "content_tape": lambda pair: 1 - pair.content_score,
}


def sketch_signals(pair: Pair) -> dict[str, float]:
    """Computes all sketch signals of one pair, in the steps of `table`."""
    return {name: in_steps(float(of(pair))) for name, of in OF_SKETCHES.items()}


def sketch_columns(pairs: Any, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Computes named sketch signals: float64[pairs] by name. pairs: columns with the fields of a Pair."""
    return {name: np.floor(OF_SKETCHES[name](pairs) * STEPS + 0.5) / STEPS for name in names}
