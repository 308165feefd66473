"""The verdicts of a batch, in order: columns, their lines, and objects where a caller reads single verdicts."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple, overload

import numpy as np

from neardup.decider import Decider
from neardup.limits import PLACE_BITS
from neardup.matching.verdict_columns import KINDS, VerdictColumns
from neardup.matching.verdict_lines import VerdictLines, lines_of
from neardup.sketch.layout import HEADER, HEADER_BYTES, SECTION_LENGTHS, RecordSection, section_starts
from neardup.verdict import Kind, Verdict


class Summary(NamedTuple):
    """A verdict in short. source: 32 hex digits. kept_apart: the step that kept similar pages apart; empty: none.

    reason: why the page was rejected; empty for other verdicts. replaces: whether the page retired an earlier fetch of
    its URL.
    """

    kind: Kind
    n: int
    url: str
    site: str
    source: str
    kept_apart: str
    reason: str
    replaces: bool


class _Part:
    """Verdicts of one decider."""

    def __init__(self, columns: VerdictColumns, decider: Decider) -> None:
        self.columns, self.decider = columns, decider
        self.page_ids = columns.page_ids[columns.rows["i"]]
        self.origin: tuple[str | None, str | None] = None, None

    def __len__(self) -> int:
        return len(self.columns.rows)

    @cached_property
    def lines(self) -> VerdictLines:
        return lines_of(self.columns, self.decider, *self.origin)

    @cached_property
    def headers(self) -> np.ndarray:
        """The headers of the records that the verdicts are about, HEADER[verdicts]."""
        heap, at = self.columns.heap, self.columns.rows["at"]
        windows: np.ndarray = np.ndarray((len(heap) - HEADER.itemsize + 1,), HEADER_BYTES, heap, strides=(1,))
        headers: np.ndarray = windows[at].view(HEADER)
        return headers

    def urls(self) -> list[bytes]:
        """The URLs as they are in the records."""
        return [text.tobytes() for text in self._texts(RecordSection.URL)]

    def texts(self, section: RecordSection) -> list[str]:
        """The texts of a section of the records."""
        return [str(text, "utf-8", "replace") for text in self._texts(section)]

    def _texts(self, section: RecordSection) -> Iterator[memoryview]:
        starts = section_starts([self.headers[name].astype(np.int64) for name in SECTION_LENGTHS])
        at, heap = self.columns.rows["at"], self.columns.heap.data
        bounds = zip((at + starts[section]).tolist(), (at + starts[section + 1]).tolist(), strict=True)
        return (heap[start:end] for start, end in bounds)

    def cut(self, first: int, last: int) -> "_Part":
        """The verdicts first to last - 1."""
        out = _Part(self.columns._replace(rows=self.columns.rows[first:last]), self.decider)
        out.origin = self.origin
        if last > first:
            text, ends = self.lines.text, self.lines.ends
            begin = ends[first - 1] if first else 0
            out.lines = VerdictLines(text[begin : ends[last - 1]], [end - begin for end in ends[first:last]])
        return out


class BatchVerdicts(Sequence[Verdict]):
    """The verdicts of a batch, in the order of its records. Lines and objects are made when they are read."""

    def __init__(self, columns: VerdictColumns | None = None, decider: Decider | None = None) -> None:
        """columns: the verdicts; decider: the decider that judged them; None without verdicts."""
        self._parts: list[_Part] = []
        if columns is not None and len(columns.rows):
            assert decider is not None
            self._parts.append(_Part(columns, decider))

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def __iter__(self) -> Iterator[Verdict]:
        return map(Verdict.from_json, self.lines())

    @overload
    def __getitem__(self, at: int) -> Verdict: ...
    @overload
    def __getitem__(self, at: slice) -> list[Verdict]: ...
    def __getitem__(self, at: int | slice) -> Verdict | list[Verdict]:
        if isinstance(at, slice):
            return list(map(Verdict.from_json, self.lines()[at]))
        left = range(len(self))[at]
        for part in self._parts:
            if left < len(part):
                return Verdict.from_json(part.lines[left])
            left -= len(part)
        raise AssertionError("a verdict lies in a part")

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __iadd__(self, other: "BatchVerdicts") -> "BatchVerdicts":
        self._parts += other._parts
        return self

    def name_origin(self, log: str | None, generation: str | None) -> None:
        """Sets log and generation of all verdicts, before their lines are made."""
        for part in self._parts:
            part.origin = log, generation

    def lines(self) -> list[bytes]:
        """The line of each verdict, without newlines."""
        return [line for part in self._parts for line in part.lines.each()]

    def text(self) -> bytes:
        """The lines of all verdicts, each with a newline."""
        return b"".join(part.lines.text for part in self._parts)

    def page_ids(self) -> list[int]:
        """Page ids of the pages' own verdicts, in order."""
        return [number for part in self._parts for number in part.page_ids[part.columns.rows["n"] == 0].tolist()]

    def urls(self) -> list[bytes]:
        """URL of each verdict, in UTF-8."""
        return [_valid(url) for part in self._parts for url in part.urls()]

    def sources(self) -> set[str]:
        """Sources of the pages' own verdicts."""
        every = (part.headers["source"][part.columns.rows["n"] == 0] for part in self._parts)
        return {source.hex() for sources in every for source in set(sources.tolist())}

    def kinds(self) -> Counter[Kind]:
        """Number of verdicts by kind."""
        codes = Counter(code for part in self._parts for code in part.columns.rows["kind"].tolist())
        return Counter({_kind(code): many for code, many in codes.items()})

    def summaries(self) -> Iterator[Summary]:
        """Each verdict in short."""
        for part in self._parts:
            rows, names = part.columns.rows, part.columns.names
            reasons: list[str] = [""] * len(rows)
            if (rows["kind"] == _REJECTED).any():
                reasons = part.texts(RecordSection.REASON)
            columns = (rows[name].tolist() for name in ("kind", "n", "kept_apart", "by", "replaces"))
            texts = part.texts(RecordSection.URL), part.texts(RecordSection.SITE), part.headers["source"].tolist()
            for kind, n, apart, by, replaces, url, site, source, reason in zip(*columns, *texts, reasons, strict=True):
                yield Summary(
                    *(_kind(kind), n, url, site, source.hex()),
                    *(names[by] if apart else "", reason if kind == _REJECTED else "", replaces >= 0),
                )

    def by_message(self) -> "dict[int, BatchVerdicts]":
        """The verdicts by the offset of the message that caused them."""
        out: dict[int, BatchVerdicts] = {}
        for part in self._parts:
            offsets = part.page_ids >> PLACE_BITS
            bounds = [0, *(np.flatnonzero(np.diff(offsets)) + 1).tolist(), len(part)]
            for first, last in pairwise(bounds):
                out.setdefault(int(offsets[first]), BatchVerdicts())._parts.append(part.cut(first, last))
        return out


_REJECTED = KINDS.index(Kind.REJECTED)


def _kind(code: int) -> Kind:
    kind = KINDS[code]
    assert kind is not None
    return kind


def _valid(text: bytes) -> bytes:
    """The text with U+FFFD for what is not UTF-8."""
    return text if text.isascii() else text.decode("utf-8", "replace").encode()
