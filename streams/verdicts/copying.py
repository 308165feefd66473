"""`neardup copy`: writes the sources of a scan without duplicates, as WARC, JSON lines or Parquet.

By default the copy holds, of the last fetches of all URLs, those that an index shows.
"""

import base64
import gzip
import hashlib
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import BinaryIO, NamedTuple
from uuid import NAMESPACE_URL, uuid5

from neardup.canonical import CRITERIA, Criterion, Member, choose
from neardup.errors import BadInput
from neardup.page import Page
from neardup.standing import DUPLICATES, VerdictFields
from neardup.urls import normalise_url
from neardup.verdict import Kind
from neardup.wording import counted
from streams.errors import WrongUsage, bad_input, how_to_install
from streams.files.exchanges import with_methods
from streams.files.input_formats import JSON_LINES
from streams.files.jsonl_and_parquet import Lines
from streams.files.sources import LocalSource, SourceRecord, line_max, unchanged
from streams.formats.json import encode
from streams.formats.no_page import NoPage
from streams.formats.warc import WarcRecord, contained_page_of
from streams.ports import Progress, silent
from streams.process.disk import whole_file
from streams.state.scan_directory import ScanDirectory
from streams.verdicts.export import STANDING, Given, fields_of, fill_standing
from streams.verdicts.shared_rows import scratch_table

_SCHEMA = """
CREATE TABLE pages (source TEXT, "offset" INT, kept INT, copy_of TEXT, cluster INT, url TEXT, site TEXT, fetched_at INT,
    length INT, PRIMARY KEY (source, "offset")) WITHOUT ROWID;
CREATE TABLE fetches (url TEXT PRIMARY KEY, first INT, rel_canonical TEXT, score REAL) WITHOUT ROWID;
CREATE TABLE written (url TEXT PRIMARY KEY, digest TEXT, date TEXT) WITHOUT ROWID;
"""
#: Of two URLs that one page had, one after the other, the later one counts.
_PUT_PAGES = f"""
REPLACE INTO pages SELECT source, "offset", shown, iif(verdict = '{Kind.EXACT_DUPLICATE.value}', representative, NULL),
    iif(verdict IN {(Kind.UNIQUE.value, *DUPLICATES)}, cluster, NULL), url, site, fetched_at, NULL
FROM standing ORDER BY first, url
"""
_PUT_FETCH = """
INSERT INTO fetches VALUES (?, ?, ?, ?) ON CONFLICT (url) DO UPDATE SET first = min(first, excluded.first),
    rel_canonical = excluded.rel_canonical, score = excluded.score
"""
#: The criterion that `CRITERIA` lacks: the length of a page is in its source, not in its verdict.
LONGEST = "longest"
KEPT_BY = (*CRITERIA, LONGEST)
#: Yields (source, offset, bytes of the body) of pages.
Lengths = Callable[[], Iterable[tuple[str, int, int]]]
COPY_FORMATS = (".warc", ".warc.gz", ".jsonl", ".parquet")
#: Pages between two reports of progress.
_STEP = 1_000
#: A record is copied as a whole, in memory.
_RECORD_BYTES_MAX = 1 << 30
_IDENTICAL = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"


class Written(NamedTuple):
    """A page that a copy contains. digest: digest of the page's payload. date: WARC-Date of the page."""

    digest: str
    date: str


class CopySelection:
    """The pages of the verdicts, and those that the copy holds so far."""

    def __init__(self, table: sqlite3.Connection) -> None:
        self._table = table

    def drop_clusters(self) -> None:
        """Keeps no page of a cluster of two or more pages."""
        self._table.execute(
            "UPDATE pages SET kept = 0, copy_of = NULL WHERE cluster IN"
            " (SELECT cluster FROM pages GROUP BY cluster HAVING count(*) > 1)"
        )

    def choose(self, policy: Sequence[str], lengths: Lengths) -> None:
        """Keeps the page of each cluster that a policy prefers. policy: names of KEPT_BY."""
        self._table.execute("BEGIN")
        if LONGEST in policy:
            put = 'UPDATE pages SET length = ? WHERE source = ? AND "offset" = ?'
            self._table.executemany(put, ((length, source, offset) for source, offset, length in lengths()))
        found = self._table.execute(
            "SELECT cluster, url, first, site, rel_canonical, score, fetched_at, length"
            " FROM pages JOIN fetches USING (url) WHERE cluster NOT NULL ORDER BY cluster"
        )
        kept: list[tuple[str, int]] = []
        for cluster, some in groupby(found, key=lambda row: int(row[0])):
            members: list[Member] = []
            sizes: dict[str, int] = {}
            for _, url, first, site, rel, score, fetched_at, length in some:
                members.append(Member(url, first, site or "", rel, score, fetched_at))
                sizes[url] = length or 0
            choice = choose(members, policy, {**CRITERIA, LONGEST: _longest(sizes)})
            if choice is not None and len(members) > 1:
                kept.append((choice.url, cluster))
        # Which pages are exact copies of the chosen one is decided where their bytes are read.
        self._table.executemany(
            "UPDATE pages SET kept = (url = ?1), copy_of = iif(url = ?1, NULL, ?1) WHERE cluster = ?2", kept
        )
        self._table.execute("COMMIT")

    def of(self, source: str) -> Iterator[tuple[int, bool, str | None]]:
        """Yields (offset, whether it is kept, URL of the page that it may copy exactly), by offset.

        Pages that are neither, such as former fetches, are left out.
        """
        yield from self._table.execute(
            'SELECT "offset", kept, copy_of FROM pages WHERE source = ? AND (kept OR copy_of NOT NULL)'
            ' ORDER BY "offset"',
            (source,),
        )

    def add_written(self, url: str, page: Written) -> None:
        """Records that the copy holds a page."""
        self._table.execute("REPLACE INTO written VALUES (?, ?, ?)", (url, *page))

    def written(self, url: str) -> Written | None:
        """Returns the page of a URL that the copy holds so far."""
        found = self._table.execute("SELECT digest, date FROM written WHERE url = ?", (url,)).fetchone()
        return Written(*found) if found else None


@contextmanager
def copy_selection(
    verdicts: Iterable[Given], progress: Callable[[int], None], *, fetches: bool = True
) -> Iterator[CopySelection]:
    """Reads all verdicts.

    Args:
        verdicts: the verdicts of a scan.
        progress: receives the number of verdicts that were read.
        fetches: whether to keep what `CopySelection.choose` needs.

    Raises BadInput for lines that are no verdicts.
    """
    with scratch_table(STANDING + _SCHEMA) as table:
        fill_standing(table, _with_fetches(verdicts, table) if fetches else verdicts, progress)
        table.execute(_PUT_PAGES)
        table.execute("CREATE INDEX pages_of_clusters ON pages (cluster)")
        yield CopySelection(table)


def _with_fetches(verdicts: Iterable[Given], table: sqlite3.Connection) -> Iterator[VerdictFields]:
    for verdict in map(fields_of, verdicts):
        if not verdict.n:
            table.execute(_PUT_FETCH, (verdict.url, verdict.page_id, verdict.rel_canonical, verdict.score))
        yield verdict


def _longest(bytes_of: Mapping[str, int]) -> Criterion:
    return Criterion("it is the longest", lambda members: [-bytes_of[member.url] for member in members])


@dataclass(frozen=True)
class Selection:
    """Which pages a copy holds.

    sources: paths as the scan was given them; empty: all. policy: names of KEPT_BY that choose the
    page of a cluster; empty: the representative. drop_clusters: leave out all pages of clusters of two or more.
    """

    sources: Sequence[str] = ()
    policy: Sequence[str] = ()
    drop_clusters: bool = False


_SHOWN = Selection()


@dataclass
class CopyCounts:
    """kept: pages. revisits: records of pages with the payload of another. left_out: other pages. unfinished: paths of
    sources whose scan has not ended; no page of theirs is copied.
    """

    kept: int = 0
    revisits: int = 0
    left_out: int = 0
    unfinished: list[str] = field(default_factory=list)


def copy_command(state: ScanDirectory, out: Path, given: Selection = _SHOWN, progress: Progress = silent) -> CopyCounts:
    """Writes the pages that an index shows, or that `given` selects, to one file, whole or not at all.

    WARC to WARC: records as they are, and a revisit record for each page whose payload equals that of an earlier kept
    page. Of records that are no pages, only warcinfo is kept. JSON lines: lines as they are; pages of other sources in
    the form that `neardup scan` reads. Parquet to Parquet: rows as they are. Raises WrongUsage for sources that do not
    fit `out` or are unknown, BadInput for sources that are gone or have changed.
    """
    suffix = next((one for one in COPY_FORMATS if out.name.endswith(one)), None)
    if suffix is None:
        raise WrongUsage(f"--out {out}: the name must end in {', '.join(COPY_FORMATS)}")
    every = [record for record in state.sources.values() if record.finished]
    sources = _selected(every, given.sources)
    _must_fit(sources, suffix)
    total = sum(record.size for record in sources)
    done = CopyCounts(unfinished=sorted(record.path for record in state.sources.values() if not record.finished))
    try:
        with (
            copy_selection(
                state.verdict_fields(),
                lambda read: progress(counted(read, "verdict"), 0, 0),
                fetches=bool(given.policy),
            ) as selection,
            whole_file(out) as fresh,
        ):
            if given.drop_clusters:
                selection.drop_clusters()
            elif given.policy:
                selection.choose(given.policy, lambda: _lengths(every, state, progress))
            if suffix == ".parquet":
                _copy_rows(sources, selection, fresh, done, lambda share: progress("copy", int(share * total), total))
            else:
                with fresh.open("wb") as target:
                    file = _GzipMembers(target) if suffix == ".warc.gz" else target
                    before = 0
                    for record in sources:
                        how = _copy_warc if suffix.startswith(".warc") else _copy_lines
                        for read in how(record, state, selection, file, done):
                            progress("copy", before + read, total)
                        before += record.size
    except OSError as error:
        raise BadInput(f"{error.filename or out}: {error.strerror or error}") from error
    done.left_out = sum(record.pages for record in sources) - done.kept - done.revisits
    return done


def _selected(sources: list[SourceRecord], paths: Sequence[str]) -> list[SourceRecord]:
    required = {os.path.abspath(path) for path in paths}
    found = [record for record in sources if not required or os.path.abspath(record.path) in required]
    if missing := required - {os.path.abspath(record.path) for record in found}:
        known = ", ".join(record.path for record in sources[:10])
        raise WrongUsage(f"--only {min(missing)}: the scan has no such source; it has {known}")
    return found


def _lengths(sources: list[SourceRecord], state: ScanDirectory, progress: Progress) -> Iterator[tuple[str, int, int]]:
    for number, record in enumerate(sources):
        progress("lengths", number, len(sources))
        _must_be_unchanged(record)
        for offset, sourced in enumerate(LocalSource(record, state.scheme.body_bytes_max).read()):
            yield record.id, offset, len(sourced.page.body or b"")


def _must_fit(sources: list[SourceRecord], suffix: str) -> None:
    for record in sources:
        if suffix not in (JSON_LINES if record.format is None else record.format.copies_to):
            raise WrongUsage(
                f"{record.path}: is no {suffix[1:]} file, so it cannot be copied into one; an --out that ends in "
                ".jsonl takes pages of all sources"
            )
        _must_be_unchanged(record)


def _must_be_unchanged(record: SourceRecord) -> None:
    with bad_input(f"{record.path}: cannot be read any more"):
        same = unchanged(record) if record.format is not None else True
    if not same:
        raise BadInput(f"{record.path}: has changed since it was scanned")


class _GzipMembers:
    """A gzip file with a member for each record, as archives have them."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, data: bytes) -> None:
        self._file.write(gzip.compress(data, mtime=0))


_Output = BinaryIO | _GzipMembers


def _fates(record: SourceRecord, selection: CopySelection) -> Callable[[int], tuple[bool, str | None]]:
    """Returns a function of a page's offset: whether it is kept, and the page that it copies. Offsets ascend."""
    selected = selection.of(record.id)
    nearest = next(selected, None)

    def fate(offset: int) -> tuple[bool, str | None]:
        nonlocal nearest
        while nearest is not None and nearest[0] < offset:
            nearest = next(selected, None)
        return (bool(nearest[1]), nearest[2]) if nearest is not None and nearest[0] == offset else (False, None)

    return fate


def _copy_lines(
    record: SourceRecord, state: ScanDirectory, selection: CopySelection, out: _Output, done: CopyCounts
) -> Iterator[int]:
    """Copies the pages of a source as lines, and yields the bytes of the source that were read."""
    fate = _fates(record, selection)
    for offset, (line, read) in enumerate(_lines_of(record, state)):
        if offset % _STEP == 0:
            yield read
        if fate(offset)[0]:
            done.kept += 1
            out.write(line() + b"\n")


def _lines_of(record: SourceRecord, state: ScanDirectory) -> Iterator[tuple[Callable[[], bytes], int]]:
    """Yields a function that makes the line of each page, and the bytes of the source that were read.

    Lines of JSON are not parsed: they are copied as they are.
    """
    bound = state.scheme.body_bytes_max
    if record.format is not None and record.format.rows is not None:
        rows = record.format.rows(Path(record.path), record.fields, line_max(bound))
        if isinstance(rows, Lines):
            for _ in rows.lines(0):
                yield lambda: rows.line or b"", rows.bytes_read
            return
        for page, _ in rows.read(0):
            line = rows.line
            yield partial(_line_of, page) if line is None else partial(bytes, line), rows.bytes_read
        return
    source = LocalSource(record, bound)
    for sourced in source.read():
        yield partial(_line_of, sourced.page), source.bytes_read


def _line_of(page: Page) -> bytes:
    return encode(page, page.url.encode(), False, "").value or b""


def _copy_warc(
    record: SourceRecord, state: ScanDirectory, selection: CopySelection, out: _Output, done: CopyCounts
) -> Iterator[int]:
    """Copies the records of an archive, and yields the bytes of it that were read."""
    fate, offset = _fates(record, selection), 0
    form = record.format
    assert form is not None
    assert form.records is not None  # `_must_fit` refuses other sources
    reader = form.records(Path(record.path), _RECORD_BYTES_MAX)
    with closing(reader.stream):
        for one, method in with_methods(reader.records()):
            bound = state.scheme.body_bytes_max
            page = contained_page_of(one, bound, converted=form.converted, file=record.path, method=method)
            if isinstance(page, NoPage):
                if one.headers.get("warc-type", "").lower() == "warcinfo":
                    out.write(_record(one.headers, one.content))
                continue
            if offset % _STEP == 0:
                yield reader.stream.bytes_read
            kept, copy_of = fate(offset)
            offset += 1
            if not kept and copy_of is None:
                continue
            if len(one.content) >= _RECORD_BYTES_MAX:
                raise BadInput(f"{record.path}: byte {one.position}: a record of more than {_RECORD_BYTES_MAX:,} bytes")
            written = Written(_payload_digest(one), one.headers.get("warc-date", ""))
            if kept:
                out.write(_record(one.headers, one.content))
                selection.add_written(normalise_url(page.url, state.scheme.url_bytes_max), written)
                done.kept += 1
            elif (held := selection.written(copy_of or "")) is not None and held.digest == written.digest:
                out.write(_revisit(one, copy_of or "", held))
                done.revisits += 1


def _payload_digest(record: WarcRecord) -> str:
    """Digest of the bytes behind the HTTP header. The record's own digest field may be wrong."""
    http = record.headers.get("content-type", "").lower().startswith("application/http")
    payload = record.content.partition(b"\r\n\r\n")[2] if http else record.content
    return "sha1:" + base64.b32encode(hashlib.sha1(payload, usedforsecurity=False).digest()).decode()


def _revisit(record: WarcRecord, url: str, held: Written) -> bytes:
    """A revisit record: this page had the payload of another one. Its HTTP header is kept (ISO 28500, 6.7)."""
    http = record.headers.get("content-type", "").lower().startswith("application/http")
    head = record.content.partition(b"\r\n\r\n")[0] + b"\r\n\r\n" if http else b""
    headers = dict(record.headers)
    name = uuid5(NAMESPACE_URL, f"{headers.get('warc-record-id', '')} {headers.get('warc-target-uri', '')} {url}")
    headers |= {
        "warc-type": "revisit",
        "warc-record-id": f"<urn:uuid:{name}>",
        "warc-profile": _IDENTICAL,
        "warc-refers-to-target-uri": url,
        "warc-refers-to-date": held.date,
        "warc-payload-digest": held.digest,
    }
    headers.pop("warc-block-digest", None)
    return _record(headers, head)


def _record(headers: dict[str, str], content: bytes) -> bytes:
    """A record with these fields and the length of the content."""
    fields = headers | {"content-length": str(len(content))}
    lines = "".join(f"{_name(name)}: {value}\r\n" for name, value in fields.items())
    return b"WARC/1.1\r\n" + lines.encode("utf-8", "replace") + b"\r\n" + content + b"\r\n\r\n"


def _name(field: str) -> str:
    parts = ["WARC" if part == "warc" else part.upper() if part in ("id", "uri", "ip") else part.capitalize()
             for part in field.split("-")]  # fmt: skip
    return "-".join(parts)


def _copy_rows(
    sources: list[SourceRecord],
    selection: CopySelection,
    out: Path,
    done: CopyCounts,
    progress: Callable[[float], None],
) -> None:
    try:
        from streams.formats.parquet import ParquetDamaged, copy_rows
    except ImportError as error:
        raise BadInput(f"Parquet is written by DuckDB: {how_to_install('batch')}") from error
    kept = [(Path(one.path), (offset for offset, shown, _ in selection.of(one.id) if shown)) for one in sources]
    try:
        done.kept = copy_rows(kept, out, progress)
    except ParquetDamaged as error:
        raise BadInput(f"{out}: {error}") from error
