"""The verdict on a page, and its JSON Schema."""

from enum import StrEnum
from html import escape
from importlib import resources
from typing import Any

import orjson
from msgspec import Struct, convert
from msgspec.json import Decoder, Encoder

#: Version of the verdict's JSON. Fields are only ever added within one version.
VERDICT_VERSION = 1
#: Reason of a verdict `gone` whose page an operator took down. Persisted: it never changes.
TAKEN_DOWN = "taken down"
#: Encodes a verdict. The bytes are those of orjson, but for numbers of 10**16 and more, which no verdict has.
_encode = Encoder().encode


def schema() -> str:
    """Returns the JSON Schema (draft 2020-12) of a verdict of the current version."""
    return resources.files("neardup").joinpath("verdict.schema.json").read_text(encoding="utf-8")


#: Names of what found a page, by the sum of the bits of its keys (`neardup.rules.key_families.INDEX_OF`): neither index
#: (first words or the place alone), one of them, or both. Metrics use these names: they never change.
FOUND_BY = ("neither", "supershingles", "blocks", "both")


class Kind(StrEnum):
    """The kind of a verdict. Values are persisted and published: they never change.

    A search index hides pages with `exact_duplicate` and `near_duplicate`, and drops pages with `gone`. For
    `unchanged`, `edited`, `stale`, and for `rejected` of a URL that was judged before, `Verdict.standing` has the
    verdict that is in force.
    """

    UNIQUE = "unique"
    EXACT_DUPLICATE = "exact_duplicate"
    NEAR_DUPLICATE = "near_duplicate"
    SAME_CONTENT = "same_content"
    UNCHANGED = "unchanged"
    EDITED = "edited"
    STALE = "stale"
    GONE = "gone"
    PROMOTED = "promoted"
    REJECTED = "rejected"


class Disagreement(StrEnum):
    """How the live rule and a shadow differ on one page. Values are persisted and published: they never change."""

    LIVE_MERGES = "live_merges"
    SHADOW_MERGES = "shadow_merges"
    OTHER_REPRESENTATIVE = "other_representative"
    #: Neither merges, and they name different pages with the same main content.
    OTHER_CONTENT = "other_content"


class Coordinates(Struct, gc=False):
    """Where a page was read."""

    #: 32 hex digits: the id of a topic, or the digest of a file.
    source: str = "0" * 32
    #: Number of the topic's partition.
    partition: int = 0
    #: Ordinal of the record in its source.
    offset: int = 0
    #: Byte at which the record starts in its file, or ordinal of the file in the sorted list of its folder.
    position: int = 0


class Representative(Struct, kw_only=True, gc=False):
    """The page that represents a cluster: the first page, against which the duplicates were verified."""

    #: Position of the page in the log.
    page_id: int
    #: URL of the page.
    url: str
    #: Fetch time in milliseconds since 1970.
    fetched_at: int
    #: Where the page was read.
    coordinates: Coordinates


class Verdict(Struct, kw_only=True, omit_defaults=True, tag_field="version", tag=VERDICT_VERSION):
    """One verdict. `(page_id, n)` identifies it.

    The order of the fields is that of the JSON; a field with its default is left out of it. A kernel writes the JSON
    (`neardup.matching.kernels.lines`), and verdicts are decoded from it.

    `n` is 0 for the page's own verdict. From 1 on it counts the verdicts on other pages that the page, or a takedown
    of an operator, causes: `promoted`; `gone` of a takedown (`neardup forget`); and `exact_duplicate` or
    `near_duplicate` of a page that represented its cluster until the former representative returned.

    Times are milliseconds since 1970. `evidence` has the numbers of the pair that decided; `neardup config schema`
    describes them.
    """

    verdict: Kind
    page_id: int
    n: int
    url: str
    fetched_at: int
    coordinates: Coordinates
    scheme: str
    decider: str
    reason: str | None = None  # rejected: why; gone: TAKEN_DOWN if an operator took the page down
    standing: dict[str, Any] | None = None
    representative: Representative | None = None
    cluster: int | None = None
    cluster_size: int | None = None
    canonical: str | None = None
    revision: int | None = None
    content_of: Representative | None = None
    replaces: int | None = None
    evidence: dict[str, Any] = {}
    title: str | None = None
    site: str | None = None
    lang: str | None = None
    thin: bool = False
    opaque: bool = False
    shell: bool = False
    truncated: bool = False
    candidates_cut: bool = False
    rel_canonical: str | None = None  # the URL that the page names as canonical, if it is another than its own
    score: float | None = None  # of the page, as the crawler gave it
    log: str | None = None  # the log that page ids are positions of; None: that of the state directory
    generation: str | None = None  # the generation that judged; None if it has no name

    @classmethod
    def from_json(cls, line: bytes) -> "Verdict":
        """Return the verdict of a line. The line is valid: the bytes of `to_json` or of a kernel."""
        made = _decode(line)
        if standing := made.standing:
            standing["verdict"] = Kind(standing["verdict"])
            if "representative" in standing:
                standing["representative"] = convert(standing["representative"], Representative)
        for name in PLACES_OF_EVIDENCE:
            if name in made.evidence:
                place = made.evidence[name]
                place["coordinates"] = convert(place["coordinates"], Coordinates)
        return made

    def to_json(self) -> bytes:
        """Return the verdict as one line of JSON without newline: fields in a fixed order, without empty fields."""
        return _encode(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of `to_json` as plain values: strings, numbers, lists and dictionaries."""
        value: dict[str, Any] = orjson.loads(self.to_json())
        return value

    def _repr_html_(self) -> str:
        """Render the verdict as a table for notebooks. All text of pages is escaped."""
        fields = self.to_dict()
        evidence = fields.pop("evidence", {})
        shown = {name: fields[name] for name in _SHOWN if fields.get(name) is not None}
        shown |= {f"evidence: {name}": value for name, value in evidence.items() if not isinstance(value, dict)}
        if "nearest" in evidence:
            shown["evidence: nearest"] = evidence["nearest"]
        rows = "".join(f"<tr><th>{_cell(name)}</th><td>{_cell(value)}</td></tr>" for name, value in shown.items())
        return f"<table>{rows}</table>"


#: Fields of the evidence that name a page, with its coordinates.
PLACES_OF_EVIDENCE = ("nearest", "holder", "reclaimed")
_decode = Decoder(Verdict).decode

#: The fields of a verdict that a notebook shows.
_SHOWN = (
    *("verdict", "url", "title", "reason", "representative", "content_of", "canonical", "cluster", "cluster_size"),
    *("standing", "site", "lang", "page_id"),
)


def _cell(value: Any) -> str:
    """Render a value as HTML; for a page, its URL. The cell isolates marks that change the reading direction."""
    text = value["url"] if isinstance(value, dict) and "url" in value else value
    text = text if isinstance(text, str) else orjson.dumps(text).decode()
    return f'<bdi dir="auto">{escape(text)}</bdi>'
