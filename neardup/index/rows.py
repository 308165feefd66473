"""Rows of the store: URLs, clusters, members and digests. Big-endian, so that byte order is numeric order.

Every row starts with a format byte; an unknown one raises CorruptRecord. Numbers in brackets are sizes in bytes.

    family    key                            row
    urls      URL hash (16)                  | 1 | standing (1) | page id (8) | cluster (8) | member (8) |
                                             | newest (8) | seen (8) |
              the same, with 1 to 4 notes    | 2 | the same | note (104) | ...
    clusters  founder's page id (8)          | 1 | founding (8) | URL hash (16) | current (8) | size (4) |
                                             | revision (4) | content_of (8) | named_canonical (16) | canonical |
              the same, after a promotion    | 2 | the same up to named_canonical | promoted (8) | canonical |
    members   cluster (8), member (8)        | 1 | verified (8) | URL hash (16) |
    keys      digest: see `digest_key`       | 1 | live (4) | rest (8) | refs (4) | check (8) | page id (6) | ...
"""

import struct
from typing import NamedTuple

from neardup.errors import CorruptRecord
from neardup.rules.key_families import KeyFamily
from neardup.sketch.header import Header
from neardup.verdict import Kind

_ID = struct.Struct(">Q")
_PAIR = struct.Struct(">QQ")
NO_PAGE = (1 << 64) - 1

#: Standing of a URL as one byte. Persisted: values never change.
STANDINGS = {
    1: Kind.UNIQUE,
    2: Kind.EXACT_DUPLICATE,
    3: Kind.NEAR_DUPLICATE,
    4: Kind.SAME_CONTENT,
    5: Kind.GONE,
}
_CODES = {kind: code for code, kind in STANDINGS.items()}


def id_key(page_id: int) -> bytes:
    """Returns the key of a sketch or a cluster, which is the prefix of a cluster's members, 8 bytes."""
    return _ID.pack(page_id)


def member_key(cluster: int, member: int) -> bytes:
    return _PAIR.pack(cluster, member)


#: Notes of a URL, at most: one for the page itself, one for an error page, and two for other pages of an outage.
NOTES_MAX = 4


class Note(NamedTuple):
    """A cluster that a URL represented before.

    since: `ClusterRow.promoted` at that time; the earlier of two representatives has the smaller number.
    left: log time in ms at which the URL ceased to represent the cluster.
    shown: time in ms for which the URL represented the cluster.
    digest, naming, simhash: fields of the header of the URL's last sketch in the cluster. digest: zeros if the sketch
        has none.
    """

    cluster: int
    since: int
    left: int
    shown: int
    digest: bytes
    naming: int
    simhash: bytes


_NOTE = struct.Struct(">QQqq16sQ48s")
NOTE_BYTES = _NOTE.size


class UrlRow(NamedTuple):
    """The row of a URL.

    page_id: page id of the latest fetch that was not unchanged, stale or rejected.
    cluster: id of the URL's cluster; 0 without meaning if the URL is gone.
    member: page id with which the URL joined the cluster; 0 for a representative, and if the URL is gone.
    standing: verdict of a member at its last verification (`neardup.matching.kernels.clusters.standing_of`).
    newest: greatest clamped fetch time, ms. seen: log time of the last record, ms.
    notes: clusters that the URL represented before, the oldest first (`neardup.matching.kernels.notes`); only a
        row of format 2 has notes.
    """

    page_id: int
    cluster: int
    member: int
    standing: Kind
    newest: int
    seen: int
    notes: tuple[Note, ...] = ()

    @property
    def live(self) -> bool:
        return self.standing is not Kind.GONE

    def encode(self) -> bytes:
        row = encode_url(*self[:6])
        return b"".join((b"\2", row[1:], *(_NOTE.pack(*note) for note in self.notes))) if self.notes else row


def encode_url(page_id: int, cluster: int, member: int, standing: Kind, newest: int, seen: int) -> bytes:
    """Encodes the fields of a `UrlRow` without notes."""
    return _URL.pack(1, _CODES[standing], page_id, cluster, member, newest, seen)


_URL = struct.Struct(">BBQQQqq")
URL_BYTES = _URL.size
_SEEN = struct.Struct(">q")  # the last of these


def decode_url(row: bytes) -> UrlRow:
    noted, rest = divmod(len(row) - _URL.size, _NOTE.size)
    known = bool(row) and row[0] == (2 if noted else 1) and not rest and 0 <= noted <= NOTES_MAX
    if not known or row[1] not in STANDINGS:
        raise CorruptRecord(f"not a URL row of a known format: {row.hex()}")
    _, code, page_id, cluster, member, newest, seen = _URL.unpack_from(row)
    notes = tuple(map(Note._make, _NOTE.iter_unpack(row[_URL.size :]))) if noted else ()
    return UrlRow(page_id, cluster, member, STANDINGS[code], newest, seen, notes)


def seen_of(row: bytes) -> int:
    """Returns `seen` of a URL's row, ten times faster than decoding the row. Raises CorruptRecord."""
    if len(row) < _URL.size or row[0] not in (1, 2):
        raise CorruptRecord(f"not a URL row of a known format: {row.hex()}")
    (seen,) = _SEEN.unpack_from(row, _URL.size - _SEEN.size)
    return int(seen)


class ClusterRow(NamedTuple):
    """A representative and the size of its cluster.

    founding: page id of the sketch against which members are verified.
    url_hash: hash of the representative's URL.
    current: page id of the representative; differs from `founding` after an edit.
    size: number of live pages, the representative included.
    content_of: founding page id of the representative with the same main content, or NO_PAGE.
    named_canonical: URL hash of the representative's rel=canonical; zeros if the page names none or its own URL.
    canonical: URL of rel=canonical while the URL belongs to a live member, else empty.
    promoted: member id of the last promoted page, less than that of all members; 0 without a promotion. Only a row of
        format 2 has this field.
    """

    founding: int
    url_hash: bytes
    current: int
    size: int
    revision: int
    content_of: int
    named_canonical: bytes
    canonical: str
    promoted: int = 0

    def encode(self) -> bytes:
        canonical = self.canonical.encode("utf-8", "surrogatepass")
        if not self.promoted:
            return _CLUSTER.pack(1, *self[:7]) + canonical
        return _CLUSTER.pack(2, *self[:7]) + _ID.pack(self.promoted) + canonical


_CLUSTER = struct.Struct(">BQ16sQIIQ16s")
CLUSTER_BYTES = _CLUSTER.size


def decode_cluster(row: bytes) -> ClusterRow:
    promoted, end = 0, _CLUSTER.size
    if row[:1] == b"\2" and len(row) >= end + _ID.size:
        (promoted,) = _ID.unpack_from(row, end)
        end += _ID.size
    elif row[:1] != b"\1" or len(row) < end:
        raise CorruptRecord(f"not a cluster row of a known format: {row.hex()}")
    (founding, url_hash, current, size, revision, content_of, named_canonical) = _CLUSTER.unpack_from(row)[1:]
    try:
        canonical = row[end:].decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise CorruptRecord(f"not a cluster row of a known format: {row.hex()}") from error
    return ClusterRow(founding, url_hash, current, size, revision, content_of, named_canonical, canonical, promoted)


class MemberRow(NamedTuple):
    """The row of a member. verified: page id of the founding sketch against which it was verified."""

    verified: int
    url_hash: bytes

    def encode(self) -> bytes:
        return encode_member(*self)


def encode_member(verified: int, url_hash: bytes) -> bytes:
    """Encodes the fields of a `MemberRow`."""
    return _MEMBER.pack(1, verified, url_hash)


_MEMBER = struct.Struct(">BQ16s")
MEMBER_BYTES = _MEMBER.size


def decode_member(row: bytes) -> MemberRow:
    if len(row) != _MEMBER.size or row[0] != 1:
        raise CorruptRecord(f"not a member row of a known format: {row.hex()}")
    return MemberRow(*_MEMBER.unpack(row)[1:])


#: Live pages that a digest's row lists, at most; the others have keys of their own.
DIGEST_PAGES_MAX = 64


def digest_key(header: Header) -> bytes:
    """Key of the row of a page's digest, 17 bytes; b"" without one. Equal keys mean equal pages."""
    if not header.digest:
        return b""
    return bytes([KeyFamily.OPAQUE if header.opaque else KeyFamily.DIGEST]) + header.digest


#: The row of a page under `more_prefix`.
MORE = b"\x01"


def more_prefix(digest: bytes) -> bytes:
    """Prefix of the keys of a digest's further live pages; 8 bytes of page id follow."""
    return bytes([digest[0] + (KeyFamily.DIGEST_MORE - KeyFamily.DIGEST)]) + digest[1:]


class DigestRow(NamedTuple):
    """The live pages of one digest.

    live: number of live pages.
    pages: page ids of the oldest live pages, ascending.
    rest: page id of the sketch row that holds the part which all sketches of the digest share, or NO_PAGE.
    refs: number of rows that use the shared part, the row of `rest` included.
    check: XXH3 of the shared part.
    """

    live: int
    rest: int
    refs: int
    check: int
    pages: tuple[int, ...]

    def encode(self) -> bytes:
        fixed = _DIGEST.pack(1, *self[:4])
        return fixed + b"".join(page.to_bytes(6, "big") for page in self.pages)


_DIGEST = struct.Struct(">BIQIQ")
DIGEST_BYTES = _DIGEST.size


def decode_digest(row: bytes) -> DigestRow:
    if len(row) < _DIGEST.size or row[0] != 1 or (len(row) - _DIGEST.size) % 6:
        raise CorruptRecord(f"not a digest row of a known format: {row.hex()}")
    _, live, rest, refs, check = _DIGEST.unpack_from(row)
    pages = tuple(int.from_bytes(row[at : at + 6], "big") for at in range(_DIGEST.size, len(row), 6))
    return DigestRow(live, rest, refs, check, pages)
