"""Near-duplicate detection for web crawls: sketches, an index, and a verdict with evidence for each page."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neardup.decider import Decider, SiteOverride
    from neardup.errors import BadInput, CorruptRecord, InvariantBroken, NeardupError, StateError
    from neardup.page import Page
    from neardup.pairs.pair import Pair
    from neardup.pairs.scoring import compare
    from neardup.scheme import Scheme
    from neardup.sketch.make_sketches import sketch_pages
    from neardup.sketch.sketch_record import Sketch
    from neardup.verdict import Kind, Verdict
    from streams.library.deduplicator import Deduplicator, open_index
    from streams.library.tables import dedupe

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
    "dedupe",
    "open_index",
    "sketch_pages",
]

#: Modules of the public names. `open_index` opens state directories, which `streams` reads and writes; `dedupe` builds
#: on it.
_MODULES = {
    "neardup.decider": ("Decider", "SiteOverride"),
    "neardup.errors": ("BadInput", "CorruptRecord", "InvariantBroken", "NeardupError", "StateError"),
    "neardup.page": ("Page",),
    "neardup.pairs.pair": ("Pair",),
    "neardup.pairs.scoring": ("compare",),
    "neardup.scheme": ("Scheme",),
    "neardup.sketch.make_sketches": ("sketch_pages",),
    "neardup.sketch.sketch_record": ("Sketch",),
    "neardup.verdict": ("Kind", "Verdict"),
    "streams.library.deduplicator": ("Deduplicator", "open_index"),
    "streams.library.tables": ("dedupe",),
}


def __getattr__(name: str) -> Any:
    """Imports a public name on first use.

    numba takes half a second to import, and `neardup --help` does not need it.
    """
    for module, names in _MODULES.items():
        if name in names:
            found = globals()[name] = getattr(import_module(module), name)
            return found
    raise AttributeError(f"module 'neardup' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Lists the public names, without what this module imports for itself."""
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
