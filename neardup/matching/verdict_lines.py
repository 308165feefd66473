"""Makes lines of verdict columns: what a kernel does not know as text is prepared here, once for many verdicts."""

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from msgspec.json import Encoder

from neardup.decider import Decider
from neardup.errors import CorruptRecord
from neardup.matching.kernels import lines
from neardup.matching.kernels.lines import Lines
from neardup.matching.verdict_columns import Form, VerdictColumns
from neardup.pairs.scoring import pairs_of
from neardup.rules import Ruling, rule_of
from neardup.rules.key_families import key_name
from neardup.rules.posted_keys import families_of, keys_of_columns

_encode = Encoder().encode
#: Forms of evidence with the numbers of a pair.
_OF_PAIRS = [int(form) for form in (Form.NEAREST, Form.BEST, Form.CHECK, Form.CLAIM)]
#: Bytes of a line for which there is room at first.
_LINE_BYTES = 1024


class VerdictLines:
    """The lines of some verdicts. text: all of them, each with its newline. ends: where each ends, a list."""

    def __init__(self, text: bytes, ends: list[int]) -> None:
        self.text, self.ends = text, ends

    def __getitem__(self, number: int) -> bytes:
        """The line of a verdict, without its newline."""
        return self.text[self.ends[number - 1] if number else 0 : self.ends[number] - 1]

    def each(self) -> list[bytes]:
        """Every line, without its newline."""
        return self.text.split(b"\n")[:-1]


def lines_of(columns: VerdictColumns, decider: Decider, log: str | None, generation: str | None) -> VerdictLines:
    """Writes the lines of a batch.

    Args:
        columns: the verdicts.
        decider: the decider that judged, which verdicts name.
        log, generation: the origin that verdicts name; None: none.

    Raises CorruptRecord: a canonical URL is not UTF-8.
    """
    many = len(columns.rows)
    texts = _Texts()
    common = np.zeros(lines.COMMON, np.int64)
    named = f',"scheme":"{decider.scheme}","decider":"{decider.digest}"'.encode()
    origin = b"".join(
        b',"%s":%s' % (name, _encode(value))
        for name, value in ((b"log", log), (b"generation", generation))
        if value is not None
    )
    common[lines.DECIDED], common[lines.DECIDED_BYTES] = texts.add(named)
    common[lines.ORIGIN], common[lines.ORIGIN_BYTES] = texts.add(origin)
    common[lines.THIN_TOKENS] = decider.thin_tokens
    spans = _spans(columns, decider, texts)
    page_ids = columns.page_ids.astype(np.int64)
    given = Lines(columns.rows, columns.heap, page_ids, np.frombuffer(texts.data, np.uint8), spans, common)
    out, ends = np.empty(_LINE_BYTES * (many + 8), np.uint8), np.zeros(many, np.int64)
    first = 0
    while first < many:
        first, why = lines.write_lines(given, first, out, ends)
        if why == lines.NOT_UTF8:
            cluster = int(columns.rows["cluster"][first])
            raise CorruptRecord(f"the canonical URL of cluster {cluster} is not UTF-8")
        if why == lines.FULL:
            longer = np.empty(2 * len(out), np.uint8)
            longer[: len(out)] = out
            out = longer
    return VerdictLines(out[: ends[-1] if many else 0].tobytes(), ends.tolist())


class _Texts:
    """Texts one after another in `data`."""

    def __init__(self) -> None:
        self.data = bytearray()

    def add(self, text: bytes) -> tuple[int, int]:
        """Adds a text -> its place and its bytes."""
        at = len(self.data)
        self.data += text
        return at, len(text)


def _spans(columns: VerdictColumns, decider: Decider, texts: _Texts) -> np.ndarray:
    """`Lines.spans`, whose texts are added."""
    rows = columns.rows
    spans = np.zeros((len(rows), lines.SPANS), np.int64)

    def fill(which: np.ndarray, column: int, found: Sequence[tuple[int, int]]) -> None:
        if found:
            spans[which, column : column + 2] = found

    which = np.flatnonzero(np.isin(rows["form"], _OF_PAIRS))
    fill(which, lines.NUMBERS, [texts.add(text) for text in _numbers(columns, decider, which)])
    which = np.flatnonzero(rows["form"] == Form.BEST)
    families = tuple(families_of(decider)) if len(which) else ()
    fill(which, lines.SHARED, _known(texts, [_shared(families, keys) for keys in rows["keys"][which].tolist()]))
    which = np.flatnonzero(rows["kept_apart"])
    fill(which, lines.BY, _known(texts, [_encode(columns.names[by]) for by in rows["by"][which].tolist()]))
    which = np.flatnonzero(rows["turned_many"])
    fill(which, lines.TURNED, [texts.add(_turned(columns, i)) for i in which.tolist()])
    return spans


def _known(texts: _Texts, found: Sequence[bytes]) -> list[tuple[int, int]]:
    """Adds each of some texts once."""
    places = {text: texts.add(text) for text in set(found)}
    return [places[text] for text in found]


def _numbers(columns: VerdictColumns, decider: Decider, which: np.ndarray) -> list[bytes]:
    """The evidence of pairs. which: the verdicts, int64."""
    rows, names, evidence = columns.rows[which], columns.names, rule_of(decider).evidence
    pairs = pairs_of(columns.numbers[rows["pair"]])
    rulings = zip(*(rows[name].tolist() for name in ("by", "whole", "score", "demand", "added")), strict=True)
    out = []
    for pair, (by, whole, score, demand, added) in zip(pairs, rulings, strict=True):
        if whole:
            score, demand = int(score), int(demand)
        out.append(_encode(evidence(pair, Ruling(None, names[by], score=score, demand=demand, added=added))))
    return out


@lru_cache(maxsize=1 << 14)
def _shared(families: tuple[str, ...], keys: int) -> bytes:
    """Counts keys by family. families: the family of each key of a page. keys: bits, one a key."""
    return _encode(dict(Counter(name for bit, name in enumerate(families) if keys >> bit & 1)))


def _turned(columns: VerdictColumns, i: int) -> bytes:
    """Names of the keys that a page turned hot."""
    first, many = int(columns.rows["turned"][i]), int(columns.rows["turned_many"][i])
    return _encode([key_name(key) for key in keys_of_columns(columns.turned[first : first + many])])
