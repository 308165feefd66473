"""Rows of the `keys` family under owner and naming: counts of siblings. Numbers are little-endian.

+--------+---------------------------------------+----------+-------------+-----------+
| format | four counts of `Siblings` (1 each)    | tail (8) | titling (8) | place (8) |
+--------+---------------------------------------+----------+-------------+-----------+
"""

import hashlib
import struct
from collections.abc import Sequence

from neardup.errors import CorruptRecord
from neardup.rules.key_families import KeyFamily
from neardup.rules.siblings import COUNT_MAX, Siblings
from neardup.sketch.header import Header
from neardup.urls import USER_FOLDERS, owner_of

_ROW = struct.Struct("<BBBBBQQQ")
NAMING_BYTES = _ROW.size
_KEY = struct.Struct("<BQQ")
assert COUNT_MAX < 256
#: Persisted.
FORMAT = 1


def encode(siblings: Siblings) -> bytes:
    return _ROW.pack(FORMAT, *siblings)


def decode(row: bytes) -> Siblings:
    """Decodes a row. Raises CorruptRecord for a row of another format."""
    if len(row) != _ROW.size or row[0] != FORMAT:
        raise CorruptRecord(
            f"not a naming's row of a known format: {row.hex()}; if another version made the index, set it aside: "
            "it is folded again from the log"
        )
    return Siblings(*_ROW.unpack(row)[1:])


#: Fingerprints of owners by site and by what of a URL names one; emptied when there are so many.
_OWNERS: dict[tuple[int, bytes], int] = {}
_OWNERS_MAX = 1 << 16
_USER_FOLDERS = frozenset(folder.encode() for folder in USER_FOLDERS)
_USER_MARKS = (b"@", b"~")


def owner(site: int, url: bytes) -> int:
    """Fingerprints a page's owner (`neardup.urls.owner_of`): 64 bits, keyed by the fingerprint of its site.

    site: the fingerprint in its record. url: normalised.
    """
    host, path = url.split(b"/", 3)[2:]
    known = site, host + b"/" + user if (user := _user(path)) else host
    found = _OWNERS.get(known)
    if found is None:
        if len(_OWNERS) >= _OWNERS_MAX:
            _OWNERS.clear()
        name, key = owner_of(url.decode()).encode(), site.to_bytes(8, "little")
        found = int.from_bytes(hashlib.blake2b(name, digest_size=8, key=key).digest(), "little")
        _OWNERS[known] = found
    return found


def owners(sites: Sequence[int], urls: Sequence[bytes]) -> list[int]:
    """Returns `owner` of many pages. Few URLs name a user, and most hosts are known."""
    out = []
    for site, url in zip(sites, urls, strict=True):
        host, path = url.split(b"/", 3)[2:]
        may_name = path[:1] in _USER_MARKS or path.partition(b"/")[0] in _USER_FOLDERS
        found = None if may_name else _OWNERS.get((site, host))
        out.append(owner(site, url) if found is None else found)
    return out


def _user(path: bytes) -> bytes:
    """Returns what names a user in a path and query without their first slash, as `owner_of` finds it; else b""."""
    path = path.partition(b"#")[0]
    if path[:1] in _USER_MARKS:
        return path.partition(b"/")[0].partition(b"?")[0]
    first, *rest = path.split(b"/", 2)
    if first not in _USER_FOLDERS or len(rest) < 2 or not rest[0] or b"?" in rest[0]:
        return b""
    return first + b"/" + rest[0]


def key_of(header: Header) -> bytes:
    """Returns the key of a page's owner and naming, 17 bytes."""
    return _KEY.pack(KeyFamily.NAMING, owner(header.site, header.url.encode()), header.naming)
