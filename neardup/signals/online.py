"""Stores a model in a decider: the deciding part, over sketch signals only, as one line of JSON."""

from dataclasses import replace
from functools import lru_cache

import orjson

from neardup.errors import BadInput
from neardup.signals.idf import Idf
from neardup.signals.model import Leaf, Model, model_of
from neardup.signals.of_sketches import OF_SKETCHES

#: Limit in characters, since the decider is written into every state directory and into the log.
TEXT_MAX = 64_000
#: The model of a decider without one: only equal digests are duplicates.
NO_MODEL = Model((), Leaf(False))


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
