"""Sketch: all stored data of a page, as one record of bytes (`neardup.sketch.layout`)."""

from typing import Any, NamedTuple

import numpy as np

from neardup.errors import BadInput, CorruptRecord
from neardup.kernels.record import ARTICLE_HEADER_BYTES
from neardup.scheme import Scheme
from neardup.sketch.addresses import site_digest
from neardup.sketch.layout import (
    HEADER,
    NAME,
    SECTION_LENGTHS,
    SKETCH_VERSION,
    NameFlag,
    RecordFlag,
    RecordKind,
    RecordSection,
    score_of,
    section_starts,
)
from neardup.sketch.texts import RecordTexts
from neardup.verdict import Coordinates


class Name(NamedTuple):
    """A token of title or heading: 48-bit fingerprint, occurrences in the page (at most 255), flags."""

    fingerprint: int
    occurrences: int
    flags: NameFlag


class Sketch(RecordTexts):
    """A read-only view of one record. Fields are decoded on access; the record is not copied."""

    __slots__ = ("_header", "_starts", "record", "scheme")

    def __init__(self, record: bytes, scheme: Scheme | None = None) -> None:
        """Checks and opens a record.

        scheme: the scheme that made it, if known; `compare` refuses sketches of two schemes. Raises CorruptRecord for
        an unknown version or a wrong length, BadInput for a record of another seed.
        """
        self.scheme = scheme
        if len(record) < HEADER.itemsize or record[0] != SKETCH_VERSION:
            version = record[0] if record else "nothing"
            raise CorruptRecord(f"not a sketch record of version {SKETCH_VERSION}: {version}, {len(record)} bytes")
        self.record = record
        self._header = np.frombuffer(record, dtype=HEADER, count=1)[0]
        if int(self._header["size"]) != len(record):
            raise CorruptRecord(f"a sketch record of {len(record)} bytes says it has {self._header['size']}")
        self._starts = section_starts([int(self._header[length]) for length in SECTION_LENGTHS])
        if self._starts[-1] != len(record):
            raise CorruptRecord(f"a sketch record of {len(record)} bytes has sections up to byte {self._starts[-1]}")

        if scheme is not None and not self.is_of(scheme):
            raise BadInput(f"{self.url}: a sketch of another seed than that of the scheme {scheme.digest}")

    def is_of(self, scheme: Scheme) -> bool:
        """Whether the record was made with the scheme's seed, by the fingerprint of its site. Checks no other
        parameter.
        """
        return self.site_fingerprint == int.from_bytes(site_digest(self.site, scheme), "little")

    def _section(self, section: RecordSection) -> bytes:
        return self.record[self._starts[section] : self._starts[section + 1]]

    def _is(self, kind: RecordKind) -> bool:
        return self.kind is kind

    def _text(self, section: RecordSection) -> str:
        return self._section(section).decode("utf-8", "replace")

    def _words(self, name: str) -> tuple[int, ...]:
        return tuple(self._header[name].tolist())

    def _names(self, section: RecordSection) -> list[Name]:
        data = self._section(section)
        return [
            Name(int.from_bytes(data[i : i + 6], "little"), data[i + 6], NameFlag(data[i + 7]))
            for i in range(0, len(data), NAME.itemsize)
        ]

    @property
    def kind(self) -> RecordKind:
        return RecordKind(int(self._header["kind"]))

    @property
    def flags(self) -> RecordFlag:
        return RecordFlag(int(self._header["flags"]))

    @property
    def opaque(self) -> bool:
        """Whether the page is neither HTML nor text. The digest is then that of the body."""
        return RecordFlag.OPAQUE in self.flags

    @property
    def truncated(self) -> bool:
        """Whether only the first body_bytes_max bytes were sketched."""
        return RecordFlag.TRUNCATED in self.flags

    @property
    def own_url(self) -> bool:
        """Whether the text contains the page's own URL. The tape leaves it out."""
        return RecordFlag.OWN_URL in self.flags

    @property
    def score(self) -> float | None:
        """The crawler's score, 0 to 1, in 254 steps; None without a score."""
        return score_of(int(self._header["score"]))

    @property
    def fetched_at(self) -> int:
        """Fetch time by the crawler, or log time if the crawler gave none. Milliseconds since the epoch."""
        return int(self._header["fetched_at"])

    @property
    def log_time(self) -> int:
        """Log time, milliseconds since the epoch."""
        return int(self._header["log_time"])

    @property
    def coordinates(self) -> Coordinates:
        """The source, partition, offset and position from which the page was read."""
        h = self._header
        return Coordinates(bytes(h["source"]).hex(), int(h["partition"]), int(h["offset"]), int(h["position"]))

    @property
    def url_hash(self) -> bytes:
        """128-bit hash of the normalised URL."""
        return bytes(self._header["url_hash"])

    @property
    def site_fingerprint(self) -> int:
        """Fingerprint of the registrable domain."""
        return int(self._header["site"])

    @property
    def hen_site_fingerprint(self) -> int:
        """Fingerprint of the site as Henzinger 2006 defines it."""
        return int(self._header["hen_site"])

    @property
    def tail(self) -> int:
        """Fingerprint of the end of the URL, with its query."""
        return int(self._header["tail"])

    @property
    def titling(self) -> int:
        """Fingerprint of the displayed title, ASCII letters folded; 0 without a title."""
        return int(self._header["titling"])

    @property
    def naming(self) -> int:
        """Fingerprint of the words of title and heading; 0 without any."""
        return int(self._header["naming"])

    @property
    def place(self) -> int:
        """Fingerprint of site, naming and the end of the URL without its query: an index key."""
        return int(self._header["place"])

    @property
    def digest(self) -> bytes:
        """128-bit digest of the token sequence, or of an opaque body. All zero, which equals no other digest, without
        either.
        """
        return bytes(self._header["digest"])

    @property
    def tokens(self) -> int:
        return int(self._header["tokens"])

    @property
    def distinct(self) -> int:
        """Number of distinct tokens."""
        return int(self._header["distinct"])

    @property
    def content_tokens(self) -> int:
        """Number of tokens of the main content."""
        return int(self._header["content_tokens"])

    @property
    def head(self) -> int:
        """Fingerprint of the first 8 tokens."""
        return int(self._header["head"])

    @property
    def supershingles(self) -> tuple[int, ...]:
        """Algorithm B's supershingles: 6 words."""
        return self._words("supershingles")

    @property
    def simhash(self) -> tuple[int, ...]:
        """Algorithm C's simhash: 6 words; bit 0 is the lowest bit of the first."""
        return self._words("simhash")

    @property
    def wide(self) -> tuple[int, ...]:
        """8 supershingles of 3 minvalues each."""
        return self._words("wide")

    @property
    def logtf(self) -> tuple[int, ...]:
        """Simhash by logarithmic term frequencies: 6 blocks of 32 bits."""
        return self._words("logtf")

    @property
    def tape_level(self) -> int:
        return int(self._header["tape_level"])

    @property
    def content_level(self) -> int:
        return int(self._header["content_level"])

    @property
    def tape(self) -> bytes:
        return self._section(RecordSection.TAPE)

    @property
    def content_tape(self) -> bytes:
        return self._section(RecordSection.CONTENT_TAPE)

    @property
    def article_tokens(self) -> int:
        """Number of tokens of the article; 0 without an article, or if it is too short."""
        return int.from_bytes(self._article[:4], "little")

    @property
    def article_level(self) -> int:
        return self._article[4] if self._article else 0

    @property
    def article_tape(self) -> bytes:
        return self._article[ARTICLE_HEADER_BYTES:]

    @property
    def _article(self) -> bytes:
        return self._section(RecordSection.ARTICLE) if self.kind is RecordKind.PAGE else b""

    @property
    def title_names(self) -> list[Name]:
        return self._names(RecordSection.TITLE_NAMES)

    @property
    def head_names(self) -> list[Name]:
        return self._names(RecordSection.HEAD_NAMES)

    @property
    def bloom(self) -> bytes:
        """Bloom filter of the distinct tokens."""
        return self._section(RecordSection.BLOOM)

    @property
    def site(self) -> str:
        """The registrable domain."""
        return self._text(RecordSection.SITE)

    def to_dict(self) -> dict[str, Any]:
        """Converts all fields to JSON values by name: bytes in hex, kind and flags by name."""
        coordinates = self.coordinates
        out: dict[str, Any] = {
            "kind": self.kind.name.lower(),
            "opaque": self.opaque,
            "truncated": self.truncated,
            "own_url": self.own_url,
            "source": coordinates.source,
            "partition": coordinates.partition,
            "offset": coordinates.offset,
            "position": coordinates.position,
        }
        for name in _PLAIN:
            value = getattr(self, name)
            out[name] = value.hex() if isinstance(value, bytes) else value
        if self.score is not None:
            out["score"] = self.score
        if self.article_tokens:
            out["article_tokens"], out["article_level"] = self.article_tokens, self.article_level
            out["article_tape"] = self.article_tape.hex()
        for name in ("title_names", "head_names"):
            out[name] = [[f"{n.fingerprint:012x}", n.occurrences, int(n.flags)] for n in getattr(self, name)]
        return out


_PLAIN = (
    *("fetched_at", "log_time", "url_hash", "site_fingerprint", "hen_site_fingerprint", "digest", "tokens"),
    *("tail", "titling", "naming", "place"),
    *("distinct", "content_tokens", "head", "supershingles", "simhash", "wide", "logtf", "tape_level"),
    *("content_level", "tape", "content_tape", "bloom", "url", "site", "title", "canonical", "lang", "reason"),
)
