"""Computes signals from two sketch records, and stores a model over them in a decider (ours).

The decider has the deciding part of the model as one line of JSON.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import orjson

from neardup.errors import BadInput
from neardup.pairs.pair import Pair
from neardup.signals.idf import Idf
from neardup.signals.model import Leaf, Model, in_steps, model_of

#: Limit in characters, since the decider is written into every state directory and into the log.
TEXT_MAX = 64_000
#: The model of a decider without one: only equal digests are duplicates.
NO_MODEL = Model((), Leaf(False))
_BITS = 384


def _token_length(pair: Any) -> Any:
    longer = np.maximum(np.maximum(pair.tokens_a, pair.tokens_b), 1)
    return abs(pair.tokens_a - pair.tokens_b) / longer


#: Functions by signal name. Each takes a Pair; `neardup.rules.learned` compiles them for records.
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


def online_text(model: Model, where: str) -> str:
    """Serialises the deciding part; one model has one text.

    Raises BadInput if it uses signals that sketches do not have.
    """
    if unknown := [name for name in model.signals if name not in OF_SKETCHES]:
        raise BadInput(
            f"{where}: decides by {', '.join(unknown)}, which sketches do not have; learn one with "
            "`neardup train --signals sketches`"
        )
    parts = replace(model, rules=()) if model.by == "tree" else replace(model, tree=Leaf(False))
    value = replace(parts, idf=Idf(), measured={}, versions={}).to_json()
    text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    if len(text) > TEXT_MAX:
        raise BadInput(f"{where}: the model has {len(text):,} characters; a decider takes at most {TEXT_MAX:,}")
    return text


@lru_cache(maxsize=64)
def online_model(text: str) -> Model:
    """Parses the model of a decider. Raises BadInput."""
    return model_of(text, "the decider's model") if text else NO_MODEL
