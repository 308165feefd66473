"""Defines the numbers of the partition, with Huang 2008's values where the paper gives them."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Annotated, Any, Literal, get_type_hints

from neardup.errors import BadInput

Method = Literal["tlcs", "cosine"]
Share = Annotated[float, 0.0, 1.0]

#: Limits of the signatures per document: 16 rotations of an MD5, and as many subsets as leave room for the document in
#: a key.
ROTATIONS_MAX, SUBSETS_MAX = 16, 31
#: Longest compared text. The table of a pair of this length takes 200 MB.
COMPARED_BYTES_MAX = 20_000


@dataclass(frozen=True)
class Parameters:
    """The numbers that shape the sets, in the order of the steps in README.md, each with its least and greatest value.

    method: method that decides a pair. main_content: whether menus and footers are removed first.
    """

    method: Method = "tlcs"
    main_content: bool = True
    content_bytes_min: Annotated[int, 0, COMPARED_BYTES_MAX] = 1000  # all text is compared if main content is shorter
    compared_bytes: Annotated[int, 100, COMPARED_BYTES_MAX] = 10_000  # from the start of the text
    sentence_bytes: Annotated[int, 0, 1000] = 16  # only longer sentences count
    # mean length of a passage, which stands in for a sentence; 0: sentences alone, as in the paper
    passage_words: Annotated[int, 0, 1000] = 6
    rotations: Annotated[int, 1, ROTATIONS_MAX] = 16
    subsets: Annotated[int, 1, SUBSETS_MAX] = 7
    smallest: Annotated[int, 1, 64] = 4  # fingerprints that make a signature
    uses_max: Annotated[int, 2, 10**9] = 10_000  # per signature
    site_uses_max: Annotated[int, 2, 10**9] = 400  # per signature, if more than half of its uses are on one site
    absorbed: Annotated[int, 0, 64] = 1  # levels of lists that a list absorbs
    # representatives per perhaps-similar set at most; 0: until no document is left
    rounds: Annotated[int, 0, 10**6] = 16
    window_bytes: Annotated[int, 1, 256] = 16
    slope_max: Share = 0.10
    blocks: Annotated[int, 1, 64] = 16
    regions: Annotated[int, 1, 2] = 2
    resemblance_min: Share = 0.28  # a near-duplicate exceeds it
    containment_min: Share = 0.70
    removals: Annotated[int, 0, 64] = 0  # position independence: how often the trustable regions are removed
    cosine_min: Share = 0.95

    def __post_init__(self) -> None:
        """Raises BadInput for a number outside its range."""
        for name, (least, most) in _ranges().items():
            value = getattr(self, name)
            if not least <= value <= most:
                raise BadInput(f"{name} is {value}; the range is {least} to {most}")
        if self.method not in ("tlcs", "cosine"):
            raise BadInput(f"no method {self.method!r}; the methods are tlcs and cosine")


@cache
def _ranges() -> Mapping[str, tuple[float, float]]:
    """Returns the least and the greatest value of each number, from the annotations of the fields."""
    hints = get_type_hints(Parameters, include_extras=True)
    return {name: hint.__metadata__ for name, hint in hints.items() if hasattr(hint, "__metadata__")}


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
