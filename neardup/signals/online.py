"""A model as a decider carries it: the part that decides, of signals that sketches tell, as one line of JSON."""

from dataclasses import replace
from functools import lru_cache

import orjson

from neardup.errors import BadInput
from neardup.signals.idf import Idf
from neardup.signals.model import Leaf, Model, model_of
from neardup.signals.of_sketches import OF_SKETCHES

#: Characters: the decider is written with every state directory and into the log.
TEXT_MAX = 64_000
#: In text that has no model: nothing but equal digests is a duplicate.
NO_MODEL = Model((), Leaf(False))


def online_text(model: Model, where: str) -> str:
    """The model in short; one model has one text. Raises BadInput where sketches do not suffice for it."""
    if unknown := [name for name in model.signals if name not in OF_SKETCHES]:
        raise BadInput(
            f"{where}: decides by {', '.join(unknown)}, which sketches do not tell; learn one with "
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
    """The model of a decider. Raises BadInput."""
    return model_of(text, "the decider's model") if text else NO_MODEL
