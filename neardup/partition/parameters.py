"""Defines the numbers of the partition, with Huang 2008's values where the paper gives them."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from neardup.errors import BadInput

Method = Literal["tlcs", "cosine"]

#: Limits of the signatures per document: 16 rotations of an MD5, and as many subsets as leave room for the document in
#: a key.
ROTATIONS_MAX, SUBSETS_MAX = 16, 31
#: Longest compared text. The table of a pair of this length takes 200 MB.
COMPARED_BYTES_MAX = 20_000


@dataclass(frozen=True)
class Parameters:
    """The numbers that shape the sets, in the order of the steps in README.md.

    method: what decides a pair. main_content: whether menus and footers are removed first.
    """

    method: Method = "tlcs"
    main_content: bool = True
    content_bytes_min: int = 1000  # all text is compared if the main content is shorter
    compared_bytes: int = 10_000  # from the start of the text
    sentence_bytes: int = 16  # only longer sentences count
    passage_words: int = (
        6  # mean length of a passage, which stands in for a sentence; 0: sentences alone, as in the paper
    )
    rotations: int = 16
    subsets: int = 7
    smallest: int = 4  # fingerprints that make a signature
    uses_max: int = 10_000  # per signature
    site_uses_max: int = 400  # per signature, if more than half of its uses are on one site
    absorbed: int = 1  # levels of lists that a list absorbs
    rounds: int = 16  # representatives per perhaps-similar set at most; 0: until no document is left
    window_bytes: int = 16
    slope_max: float = 0.10
    blocks: int = 16
    regions: int = 2
    resemblance_min: float = 0.28  # a near-duplicate exceeds it
    containment_min: float = 0.70
    removals: int = 0  # position independence: how often the trustable regions are removed
    cosine_min: float = 0.95

    def __post_init__(self) -> None:
        """Raises BadInput for a number outside its range."""
        for name, (least, most) in _RANGES.items():
            value = getattr(self, name)
            if not least <= value <= most:
                raise BadInput(f"{name} is {value}; the range is {least} to {most}")
        if self.method not in ("tlcs", "cosine"):
            raise BadInput(f"no method {self.method!r}; the methods are tlcs and cosine")

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)


_RANGES: dict[str, tuple[float, float]] = {
    "content_bytes_min": (0, COMPARED_BYTES_MAX),
    "compared_bytes": (100, COMPARED_BYTES_MAX),
    "sentence_bytes": (0, 1000),
    "passage_words": (0, 1000),
    "rotations": (1, ROTATIONS_MAX),
    "subsets": (1, SUBSETS_MAX),
    "smallest": (1, 64),
    "uses_max": (2, 10**9),
    "site_uses_max": (2, 10**9),
    "absorbed": (0, 64),
    "rounds": (0, 10**6),
    "window_bytes": (1, 256),
    "slope_max": (0.0, 1.0),
    "blocks": (1, 64),
    "regions": (1, 2),
    "resemblance_min": (0.0, 1.0),
    "containment_min": (0.0, 1.0),
    "removals": (0, 64),
    "cosine_min": (0.0, 1.0),
}


def with_numbers(parameters: Parameters, given: Mapping[str, str]) -> Parameters:
    """Replaces some parameters by numbers given as text. Raises BadInput for an unknown name or an invalid number."""
    values: dict[str, Any] = {}
    kinds = {name: type(value) for name, value in asdict(parameters).items() if name != "method"}
    for name, text in given.items():
        if name not in kinds:
            raise BadInput(f"no parameter {name}; the parameters are {', '.join(sorted(kinds))}")
        try:
            values[name] = _BOOLEANS[text.lower()] if kinds[name] is bool else kinds[name](text)
        except (ValueError, KeyError):
            expected = {bool: "true or false", int: "a whole number", float: "a number"}[kinds[name]]
            raise BadInput(f"{name}={text}: expected {expected}") from None
    return replace(parameters, **values)


_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
