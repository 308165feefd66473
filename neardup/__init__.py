"""Near-duplicate detection for web crawls: sketches, an index, and a verdict with evidence for each page."""

from neardup.decider import Decider, SiteOverride
from neardup.deduplicator import Deduplicator, open_index
from neardup.errors import BadInput, CorruptRecord, InvariantBroken, NeardupError, StateError
from neardup.page import Page
from neardup.rules import Pair
from neardup.scheme import Scheme
from neardup.sketch import Sketch, compare, sketch_pages
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
