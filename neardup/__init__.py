"""Near-duplicate detection for web crawls: sketches, an index, and a verdict with evidence for each page."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neardup.decider import Decider, SiteOverride
    from neardup.deduplicator import Deduplicator, open_index
    from neardup.errors import BadInput, CorruptRecord, InvariantBroken, NeardupError, StateError
    from neardup.page import Page
    from neardup.pairs.pair import Pair
    from neardup.pairs.scoring import compare
    from neardup.scheme import Scheme
    from neardup.sketch.making import sketch_pages
    from neardup.sketch.view import Sketch
    from neardup.verdict import Kind, Verdict

__all__ = [
    "BadInput",
    "CorruptRecord",
    "Decider",
    "Deduplicator",
    "InvariantBroken",
    "Kind",
    "NeardupError",
    "Page",
    "Pair",
    "Scheme",
    "SiteOverride",
    "Sketch",
    "StateError",
    "Verdict",
    "compare",
    "open_index",
    "sketch_pages",
]

_PLACES = {
    "decider": ("Decider", "SiteOverride"),
    "deduplicator": ("Deduplicator", "open_index"),
    "errors": ("BadInput", "CorruptRecord", "InvariantBroken", "NeardupError", "StateError"),
    "page": ("Page",),
    "pairs.pair": ("Pair",),
    "pairs.scoring": ("compare",),
    "scheme": ("Scheme",),
    "sketch.making": ("sketch_pages",),
    "sketch.view": ("Sketch",),
    "verdict": ("Kind", "Verdict"),
}


def __getattr__(name: str) -> Any:
    """Imports when asked: the compiler's half a second is not for `neardup --help`, nor for who wants one module."""
    for place, names in _PLACES.items():
        if name in names:
            found = globals()[name] = getattr(import_module(f"neardup.{place}"), name)
            return found
    raise AttributeError(f"module 'neardup' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
