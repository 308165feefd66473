"""Encodes and decodes messages of the sketch log, and frames of verdicts.

A message, version 1, little-endian: version u8, kind u8, ranges u16, records u32, scheme digest 16 bytes, topic id of
the log that it was meant for 16 bytes, XXH64 of all other bytes u64; the ranges (source 16 bytes, partition u32,
start i64, stop i64), no partition twice; the records' lengths u32 each; the records, back to back. The sketcher
computes the checksum, before any broker or disk has the message.
`page id = (offset of the message << 12) | index of the record in the message`.

* Kind 0 holds sketches.
* Kind 1 is a control record, an operator's decision: no ranges, one record, a JSON object. It has `control` (the
  decision) and `offset` (of the message that it settles); or `control`, `before` and `after`, two deciders; or
  `control`, `what`, `hash` and `length`, a takedown.
* Kind 2 is kind 0, written by a sketcher that found the log empty. One more record, behind the others, is the version
  of that program. So a log names the version that began it, and page ids do not change.

A frame of verdicts: source 16 bytes (of the message that caused them; zeros if it has several, or none), then one zlib
stream of JSON lines.
"""

import re
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from importlib.metadata import version
from typing import Any

import orjson
import xxhash
from msgspec import DecodeError

from neardup.decider import Decider
from neardup.errors import CorruptRecord, OtherVersion
from neardup.limits import PLACE_BITS
from neardup.sketch.takedown_hashes import HASH_BYTES, Named, Takedown
from neardup.standing import VerdictFields, fields_of_lines
from streams.ports import Range

MESSAGE_VERSION = 1
ANY_LOG = bytes(16)
MANY_SOURCES = bytes(16)

_SKETCHES, _CONTROL, _FIRST = 0, 1, 2
_NEW_DECIDER, _FORGET = "new_decider", "forget"
_HEAD = struct.Struct("<BBHI16s16s")
_RANGE = struct.Struct("<16sIqq")
_LENGTH = struct.Struct("<I")
_CHECKSUM = struct.Struct("<Q")
_BODY = _HEAD.size + _CHECKSUM.size
_VERSION = re.compile(r"\d{1,6}\.\d{1,6}[0-9A-Za-z.+-]{0,50}")


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the sketch log.

    scheme: 16 bytes, the digest of the scheme.
    log: topic id of the log for which the message was meant, or ANY_LOG. A message for a topic that was deleted and
        recreated does not count in the new topic.
    program: version of the program that began the log, in the first message; else "".
    """

    scheme: bytes
    ranges: tuple[Range, ...]
    records: tuple[bytes, ...]
    log: bytes = ANY_LOG
    program: str = ""

    def meant_for(self, log: bytes) -> bool:
        return self.log in (log, ANY_LOG) or log == ANY_LOG


def page_id(offset: int, place: int) -> int:
    """Returns the id of the page at index `place` of the message at `offset`."""
    return (offset << PLACE_BITS) | place


def encode_message(message: Message) -> bytes:
    """Encodes a message in the format of the module's docstring."""
    if not message.program:
        return _encode(message, _SKETCHES)
    return _encode(replace(message, records=(*message.records, message.program.encode())), _FIRST)


def as_first(data: bytes) -> bytes:
    """Return a message of sketches as the first of a log, with this program's version."""
    return encode_message(replace(decode_message(data, 0), program=own_version()))


def encode_packed(
    scheme: bytes, ranges: Sequence[Range], lengths: Sequence[int], records: bytes, log: bytes = ANY_LOG
) -> bytes:
    """Encodes a message of sketches. records: the records back to back, with these lengths."""
    return _packed(_SKETCHES, scheme, log, ranges, lengths, records)


def _encode(message: Message, kind: int) -> bytes:
    lengths = list(map(len, message.records))
    return _packed(kind, message.scheme, message.log, message.ranges, lengths, *message.records)


def _packed(
    kind: int, scheme: bytes, log: bytes, ranges: Sequence[Range], lengths: Sequence[int], *records: bytes
) -> bytes:
    assert len(scheme) == 16, "a scheme's digest has 16 bytes"
    assert len(lengths) <= 1 << PLACE_BITS, "a place in a message has 12 bits"
    head = _HEAD.pack(MESSAGE_VERSION, kind, len(ranges), len(lengths), scheme, log)
    body = b"".join(
        [
            *(_RANGE.pack(r.source, r.partition, r.start, r.stop) for r in ranges),
            struct.pack(f"<{len(lengths)}I", *lengths),
            *records,
        ]
    )
    return head + _CHECKSUM.pack(_checksum(head, body)) + body


def _checksum(head: bytes, body: bytes) -> int:
    return xxhash.xxh64_intdigest(body, xxhash.xxh64_intdigest(head))


def decode_message(data: bytes, offset: int) -> Message:
    """Decode a message of the log.

    Raises CorruptRecord, naming the offset, for any bytes that `encode_message` does not make; OtherVersion for a log
    that a later version began, whose bytes may mean something else.
    """
    first = data[1:2] == bytes([_FIRST])
    message = _decode(data, offset, _FIRST if first else _SKETCHES)
    if not first:
        return message
    program = message.records[-1].decode("ascii", "replace") if message.records else ""
    if not _VERSION.fullmatch(program):
        raise CorruptRecord(f"the message at offset {offset} of the sketch log names no version, but {program[:64]!r}")
    check_program(program, f"the sketch log, by its message at offset {offset}")
    return replace(message, records=message.records[:-1], program=program)


@cache
def own_version() -> str:
    """Return the version of this program. To read it from the package's metadata takes milliseconds."""
    return version("neardup")


def check_program(program: str, where: str) -> None:
    """Raise OtherVersion if `program` is later than this version. The third number does not change formats."""
    own = own_version()
    (theirs, ours) = ([int(part) for part in each.split(".")[:2]] for each in (program, own))
    if theirs > ours:
        raise OtherVersion(
            f"{where}, was begun by neardup {program}, and this is {own}, which may read it wrongly: run that version; "
            "or judge its pages anew by this one: neardup backfill --generation NAME --read-pages, or neardup scan "
            "into another directory",
        )


def _decode(data: bytes, offset: int, required: int) -> Message:
    def bad(why: str) -> CorruptRecord:
        return CorruptRecord(f"the message at offset {offset} of the sketch log {why}")

    if len(data) < _BODY:
        raise bad(f"has only {len(data)} bytes")
    form, kind, n_ranges, n_records, scheme, log = _HEAD.unpack_from(data)
    if form != MESSAGE_VERSION or kind != required:
        raise bad(f"has version {form}, kind {kind}; this program reads version {MESSAGE_VERSION}")
    if n_records > 1 << PLACE_BITS:
        raise bad(f"says it has {n_records} records")
    at = _BODY + n_ranges * _RANGE.size
    body = at + n_records * _LENGTH.size
    if body > len(data):
        raise bad("is cut off")
    if _CHECKSUM.unpack_from(data, _HEAD.size) != (_checksum(data[: _HEAD.size], data[_BODY:]),):
        raise bad("is damaged: its checksum is of other bytes")
    ranges = tuple(Range(*_RANGE.unpack_from(data, _BODY + i * _RANGE.size)) for i in range(n_ranges))
    if any(r.start > r.stop or r.start < 0 for r in ranges):
        raise bad("has a range that ends before it starts")
    if len({(r.source, r.partition) for r in ranges}) < n_ranges:
        raise bad("names a partition twice")
    lengths = struct.unpack_from(f"<{n_records}I", data, at)
    if body + sum(lengths) != len(data):
        raise bad(f"has {len(data) - body} bytes of records, and says {sum(lengths)}")
    records = []
    for length in lengths:
        records.append(data[body : body + length])
        body += length
    return Message(scheme, ranges, tuple(records), log)


class Decision(StrEnum):
    """Decisions of an operator about a message. Persisted: values never change."""

    ACCEPT_GAP = "accept_gap"  # fold the message although its ranges leave out positions
    SKIP_RECORD = "skip_record"  # leave out the records of the message that cannot be read


@dataclass(frozen=True, slots=True)
class Control:
    """An operator's decision in the log, which each fold repeats. offset: offset of the message that it settles."""

    scheme: bytes
    decision: Decision
    offset: int


@dataclass(frozen=True, slots=True)
class NewDecider:
    """An operator's decision: behind this message `after` decides.

    It is void if another decider than `before` decides up to here (two operators at once), and if `after` cannot use
    the same index. The first such record of a log names the decider from the log's start on.
    """

    before: Decider
    after: Decider

    @property
    def scheme(self) -> bytes:
        return bytes.fromhex(self.after.scheme)


@dataclass(frozen=True, slots=True)
class Forget:
    """An operator's decision: the index removes these pages at this offset. Hashes name them, not URLs: see
    `neardup.sketch.takedown_hashes`.
    """

    scheme: bytes
    takedown: Takedown


#: The control records.
Word = Control | NewDecider | Forget


def encode_control(control: Word) -> bytes:
    """Encodes a control record, a message of kind 1."""
    if isinstance(control, NewDecider):
        before, after = (orjson.Fragment(each.to_json()) for each in (control.before, control.after))
        record = orjson.dumps({"control": _NEW_DECIDER, "before": before, "after": after})
    elif isinstance(control, Forget):
        named = control.takedown
        record = orjson.dumps(
            {"control": _FORGET, "what": named.what, "hash": named.hash.hex(), "length": named.length}
        )
    else:
        record = orjson.dumps({"control": control.decision, "offset": control.offset})
    return _encode(Message(control.scheme, (), (record,)), _CONTROL)


def is_control(data: bytes) -> bool:
    """Whether a message is a control record. It need not be decodable."""
    return data[1:2] == bytes([_CONTROL])


def decode_entry(data: bytes, offset: int) -> Message | Word:
    """Decodes a message of any kind.

    Raises CorruptRecord that names the offset; OtherVersion for the log or decider of a newer version.
    """
    if not is_control(data):
        return decode_message(data, offset)
    message = _decode(data, offset, _CONTROL)
    try:
        (record,) = message.records
        value = orjson.loads(record)
        if value["control"] == _NEW_DECIDER:
            where = f"the message at offset {offset} of the sketch log"
            texts = [orjson.dumps(value[name]).decode() for name in ("before", "after")]
            before, after = (Decider.from_json(text, where) for text in texts)
            if {before.scheme, after.scheme} != {message.scheme.hex()}:
                raise ValueError("its deciders are of another scheme")
            return NewDecider(before, after)
        if value["control"] == _FORGET:
            return Forget(message.scheme, _takedown(value))
        return Control(message.scheme, Decision(value["control"]), int(value["offset"]))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptRecord(
            f"the message at offset {offset} of the sketch log is no control record that this program knows: {error}"
        ) from error


def _takedown(value: dict[str, Any]) -> Takedown:
    named = Takedown(Named(value["what"]), bytes.fromhex(value["hash"]), int(value["length"]))
    if len(named.hash) != HASH_BYTES or (named.length > 0) != (named.what is Named.PREFIX):
        raise ValueError("its hash has another length, or it is of no prefix")
    return named


def encode_verdicts(source: bytes, lines: bytes) -> bytes:
    """Encodes the verdicts caused by one message as a frame: JSON lines, in order, each with a newline."""
    return source + zlib.compress(lines, 1)


def verdicts_source(frame: bytes) -> bytes:
    """Returns the 16 bytes that name the source of a frame."""
    return frame[:16]


def verdict_lines(frame: bytes, offset: int) -> bytes:
    """Returns the JSON lines of a frame, each with its newline. Raises CorruptRecord."""
    try:
        return zlib.decompress(frame[16:])
    except zlib.error as error:
        raise CorruptRecord(f"the verdicts of offset {offset} do not unpack: {error}") from error


def decode_verdicts(frame: bytes, offset: int) -> Iterator[dict[str, Any]]:
    """Decodes the verdicts of a frame to JSON objects. Raises CorruptRecord."""
    for line in verdict_lines(frame, offset).splitlines():
        try:
            yield orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise CorruptRecord(f"a verdict of offset {offset} is no JSON: {error}") from error


def decode_verdict_fields(frame: bytes, offset: int) -> list[VerdictFields]:
    """Decodes the fields of a frame's verdicts that tables have. Raises CorruptRecord."""
    try:
        return fields_of_lines(verdict_lines(frame, offset))
    except DecodeError as error:
        raise CorruptRecord(f"a verdict of offset {offset} is none: {error}") from error
