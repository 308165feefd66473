"""`neardup copy`: writes the sources of a scan without duplicates, as WARC, JSON lines or Parquet.

By default the copy holds, of the last fetches of all URLs, those that an index shows.
"""

import base64
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import BinaryIO
from uuid import NAMESPACE_URL, uuid5

from neardup.errors import BadInput
from neardup.page import Page
from neardup.urls import normalise_url
from neardup.wording import counted
from streams.errors import WrongUsage, bad_input, how_to_install
from streams.files.exchanges import with_methods
from streams.files.input_formats import JSON_LINES
from streams.files.jsonl_and_parquet import JsonLines
from streams.files.sources import LocalSource, SourceRecord, line_max, unchanged
from streams.formats.compressed import Damaged
from streams.formats.gzip_members import GzipMembers
from streams.formats.json import encode
from streams.formats.no_page import NoPage
from streams.formats.warc import WarcRecord, contained_page_of
from streams.ports import Progress, silent
from streams.process.disk import whole_file
from streams.state.scan_directory import ScanDirectory
from streams.verdicts.copy_selection import CopySelection, Written, copy_selection

COPY_FORMATS = (".warc", ".warc.gz", ".jsonl", ".parquet")
#: Pages between two reports of progress.
_STEP = 1_000
#: A record is copied as a whole, in memory.
_RECORD_BYTES_MAX = 1 << 30
_IDENTICAL = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"


@dataclass(frozen=True)
class Selection:
    """Which pages a copy holds.

    sources: paths as the scan was given them; empty: all. policy: names of `copy_selection.KEPT_BY` that choose the
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
            copy_selection(state.verdict_fields, lambda read: progress(counted(read, "verdict"), 0, 0)) as selection,
            whole_file(out) as fresh,
        ):
            if given.drop_clusters:
                selection.drop_clusters()
            elif given.policy:
                selection.choose(given.policy, lambda: _lengths(every, state, progress))
            if suffix == ".parquet":
                _copy_rows(sources, selection, fresh, done, lambda share: progress("copy", int(share * total), total))
            else:
                with ExitStack() as held:
                    target = held.enter_context(fresh.open("wb"))
                    file = held.enter_context(GzipMembers(target)) if suffix == ".warc.gz" else target
                    before = 0
                    for record in sources:
                        how = _copy_warc if suffix.startswith(".warc") else _copy_lines
                        with suppress(Damaged):  # the scan has reported it, and judged no page behind it
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


_Output = BinaryIO | GzipMembers


def _fates(record: SourceRecord, selection: CopySelection) -> Callable[[int], tuple[bool, bytes | None]]:
    """Returns a function of a page's offset: whether it is kept, and the key of the URL of the page that it copies.

    Offsets ascend.
    """
    selected = selection.of(record.id)
    nearest = next(selected, None)

    def fate(offset: int) -> tuple[bool, bytes | None]:
        nonlocal nearest
        while nearest is not None and nearest[0] < offset:
            nearest = next(selected, None)
        return (bool(nearest[1]), nearest[2]) if nearest is not None and nearest[0] == offset else (False, None)

    return fate


def _copy_lines(
    record: SourceRecord, state: ScanDirectory, selection: CopySelection, out: _Output, done: CopyCounts
) -> Iterator[int]:
    """Copies the pages of a source as lines, and yields the bytes of the source that were read.

    Lines of JSON are not parsed: they are copied as they are, whole blocks of a file at a time.
    """
    kept, bound = selection.kept(record.id), state.scheme.body_bytes_max
    done.kept += len(kept)
    if record.format is None or record.format.rows is None:
        source = LocalSource(record, bound)
        lines = ((partial(_line_of, sourced.page), source.bytes_read) for sourced in source.read())
    else:
        rows = record.format.rows(Path(record.path), record.fields, line_max(bound))
        if isinstance(rows, JsonLines):
            for _ in rows.copy(kept, out):
                yield rows.bytes_read
            return
        lines = ((partial(_line_of, page) if rows.line is None else partial(bytes, rows.line), rows.bytes_read)
                 for page, _ in rows.read(0))  # fmt: skip
    required = iter(kept.tolist())
    nearest = next(required, None)
    for offset, (line, read) in enumerate(lines):
        if offset % _STEP == 0:
            yield read
        if offset == nearest:
            out.write(line() + b"\n")
            nearest = next(required, None)


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
            digest = _payload_digest(one)
            if kept:
                out.write(_record(one.headers, one.content))
                url = normalise_url(page.url, state.scheme.url_bytes_max)
                selection.add_written(Written(url, digest, one.headers.get("warc-date", "")))
                done.kept += 1
            elif (held := selection.written(copy_of or b"")) is not None and held.digest == digest:
                out.write(_revisit(one, held))
                done.revisits += 1


def _payload_digest(record: WarcRecord) -> str:
    """Digest of the bytes behind the HTTP header. The record's own digest field may be wrong."""
    http = record.headers.get("content-type", "").lower().startswith("application/http")
    payload = record.content.partition(b"\r\n\r\n")[2] if http else record.content
    return "sha1:" + base64.b32encode(hashlib.sha1(payload, usedforsecurity=False).digest()).decode()


def _revisit(record: WarcRecord, held: Written) -> bytes:
    """A revisit record: this page had the payload of another one. Its HTTP header is kept (ISO 28500, 6.7)."""
    http = record.headers.get("content-type", "").lower().startswith("application/http")
    head = record.content.partition(b"\r\n\r\n")[0] + b"\r\n\r\n" if http else b""
    headers = dict(record.headers)
    name = uuid5(NAMESPACE_URL, f"{headers.get('warc-record-id', '')} {headers.get('warc-target-uri', '')} {held.url}")
    headers |= {
        "warc-type": "revisit",
        "warc-record-id": f"<urn:uuid:{name}>",
        "warc-profile": _IDENTICAL,
        "warc-refers-to-target-uri": held.url,
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
    kept = [(Path(one.path), selection.kept(one.id)) for one in sources]
    try:
        done.kept = copy_rows(kept, out, progress)
    except ParquetDamaged as error:
        raise BadInput(f"{out}: {error}") from error
