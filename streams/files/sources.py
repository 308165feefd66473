"""Sources of a scan: files of the formats of `input_formats`, and folders of HTML, as pages with their coordinates.

A source is named by its content, so that a moved file is recognised. The name of a file is its BLAKE2b-128, together
with the names of its fields if they are not the usual ones. The name of a folder is the BLAKE2b-128 of its sorted list
of (URL, BLAKE2b-128 of the file). The offset of a page is its ordinal in the source. The position of a page is the byte
where its record, or the gzip member with the record, starts; in a folder and in a table it is the ordinal.
"""

import errno
import hashlib
import os
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from neardup.errors import BadInput
from neardup.fetch_times import UNDATED
from neardup.page import CONTENT_TYPES, Page
from neardup.urls import document_url, id_of
from neardup.verdict import Coordinates
from neardup.wording import counted
from streams.files.exchanges import with_methods
from streams.files.folder import leads_out, listed
from streams.files.input_formats import ACCEPTED, FORMATS, MAIN_SUFFIXES, PACKED, InputFormat, TableRows, kind_of
from streams.files.jsonl_and_parquet import ParquetRows, fitted
from streams.files.not_read import NotRead
from streams.files.row_ids import Repeat, ids_of_rows
from streams.files.wacz import unpacked
from streams.files.warc_reader import UnreadablePart, WarcReader
from streams.formats.compressed import Damaged, Stream
from streams.formats.containment import contained, contained_reading
from streams.formats.json import ROW, Fields
from streams.formats.warc import CONTENT_SLACK_BYTES, WarcRecord, contained_page_of
from streams.ports import SourcedPage

T = TypeVar("T")

#: Hexadecimal digits of a file's content that name it in the URLs of its ids.
FILE_DIGITS = 16
_READING = ("id_field", "digest", "ids_across_files", "repeats", "ids_refused", "ids_problem")
_ID_CHARS_SHOWN = 100
#: Kind of a folder of pages; the kinds of files are those of `FORMATS`.
FOLDER = "folder"
_PACKED_UP = "a WACZ file, whose archives must be copied out of it first"
#: Bytes of a line besides the body.
LINE_SLACK_BYTES = 1 << 20
_DIGEST_PIECE_BYTES = 1 << 20
#: Kinds of records left out that are counted apart; a file may hold any number of them.
_KINDS_MAX, _OTHER_KINDS = 20, "others"
#: Files that are not read, in an error about an input of which nothing is read.
_REASONS_NAMED = 3
#: Later dates, in ms since the epoch, do not fit into a record.
_DATE_MAX = (1 << 63) - 1


@dataclass
class SourceRecord:
    """A state directory's record of a source. `id` equals `content` unless the source was scanned again (`run`)."""

    id: str  # 32 hex digits
    content: str  # digest of its content
    path: str
    kind: str  # of FORMATS, or FOLDER
    run: int = 0
    base_url: str | None = None
    size: int = 0
    mtime_ns: int = 0
    finished: bool = False
    rejected: bool = False  # all its pages were rejected: the next scan reads it again
    pages: int = 0
    problems: list[str] = field(default_factory=list)
    problems_total: int = 0
    files: list[tuple[str, str]] = field(default_factory=list)  # a folder's (path below it, digest), sorted
    follow_links: bool = False  # including links out of the folder
    text_field: str | None = None
    id_field: str | None = None  # ROW: the number of the row
    digest: str = ""  # of the bytes; `content` also says how they are read
    ids_across_files: bool = True  # an id names one document in all files: as a record without this field, of old
    repeats: list[Repeat] | None = None  # as `RowIds` has them; None: not looked for
    ids_refused: str = ""  # fields that are no ids, and why
    ids_problem: bool = False  # one of them was required, or the only one

    @property
    def file_of_ids(self) -> str:
        """The name of this file in the URLs of its ids; "" if its ids belong to no file."""
        return "" if self.ids_across_files else self.content[:FILE_DIGITS]

    @property
    def files_of_ids(self) -> list[str]:
        """The names of this file in the URLs of its ids, also of those that an earlier row has."""
        own = self.file_of_ids if self.fields else ""
        return [own, *(f"{own}-{row}" for row, _ in self.repeats or ())] if own else []

    @property
    def reading(self) -> dict[str, Any]:
        """The fields of the record that say which URLs the pages have: another scan of the source keeps them."""
        return {name: getattr(self, name) for name in _READING}

    @property
    def format(self) -> InputFormat | None:
        """The format of a file; None for a folder of pages."""
        return None if self.kind == FOLDER else FORMATS[self.kind]

    @property
    def fields(self) -> Fields:
        return Fields(self.text_field, self.id_field)

    @property
    def fields_taken(self) -> str:
        """The fields of ids and texts, if they are not `url` and `body`; else empty."""
        if not self.fields:
            return ""
        identity = "the number of its row" if self.id_field == ROW else f"its {self.id_field or 'url'}"
        across = " in all files" if self.ids_across_files and self.id_field else ""
        refused = f"; {self.ids_refused}" if self.ids_refused else ""
        text = self.text_field or "body"
        return f"{self.path}: the id of a document{across} is {identity}, the text its {text}{refused}"

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "SourceRecord":
        record = cls(**value)
        record.files = [(name, digest) for name, digest in record.files]
        if record.repeats is not None:
            record.repeats = [(row, first) for row, first in record.repeats]
        return record


@dataclass(frozen=True)
class ReadOptions:
    """How files and folders are read.

    base_url: prefix of the file names of a folder; `file://` and the folder's path if None.
    follow_links: whether to include files of folders that are links to files elsewhere. By default such files are left
        out, because the creator of the folder may have had no right to read them. Links to folders are never followed.
    fields: names of the fields of tables.
    copies: folder for the archives of WACZ files in folders; without a folder, such files are not read.
    ids_across_files: whether an id names one document in all files; by default one document in each file.
    """

    base_url: str | None = None
    follow_links: bool = False
    fields: Fields = field(default_factory=Fields)
    copies: Path | None = None
    ids_across_files: bool = False


BY_DEFAULT = ReadOptions()


class LocalSource:
    """A file or folder, readable from any of its pages on.

    problems: unreadable parts so far. bytes_read, bytes_total: progress in bytes. also_known_as: the `content` of the
    same file where its ids belong to no file, or may.
    """

    _kinds_max = _KINDS_MAX

    def __init__(self, record: SourceRecord, body_bytes_max: int, also_known_as: str = "") -> None:
        self.record, self.also_known_as = record, also_known_as
        self.problems: list[UnreadablePart] = []
        self.bytes_total = record.size
        self.bytes_read = 0
        self._bound = body_bytes_max
        self._times: Counter[str] = Counter()  # pages by how their fetch time was read; "" for milliseconds
        #: Records of an archive that are no pages, by kind: those of archivers, and fetches that brought no page.
        self.left_out: Counter[str] = Counter()
        #: Whether the rest is not read, because of damage or of a defect.
        self.damaged = False

    def read(self, offset: int = 0, position: int | None = None) -> Iterator[SourcedPage]:
        """Yield pages from ordinal `offset` on. position: position of the page before `offset`, where reading begins.

        Raises OSError if the file itself cannot be read. `date` is the page's, or else the file's. Archives are read
        from their start: an answer may depend on a request before it, and all records left out are counted.
        """
        start, ordinal = self.start_of(offset, position)
        for page in islice(self._pages(start, ordinal), offset - ordinal, None):
            self.note_time(page.page)
            yield page

    def start_of(self, offset: int, position: int | None) -> tuple[int, int]:
        """Returns where reading begins for the page of ordinal `offset`: a position, and the ordinal of its page.

        position: position of the page before `offset`.
        """
        form = self.record.format
        archive = form is not None and form.records is not None
        if archive or position is None or offset == 0 or self._member_shared(position):
            return 0, 0
        return position, offset - 1

    def note_time(self, page: Page) -> None:
        """Counts a page by how its fetch time was read."""
        self._times[UNDATED if page.fetched_at is None else page.time_read_as] += not page.problem

    @property
    def counts(self) -> tuple[dict[str, int], dict[str, int]]:
        """Counts of all pages by how their fetch times were read, and of records left out by kind, for `add`."""
        return dict(self._times), dict(self.left_out)

    def add(self, times: Mapping[str, int], left_out: Mapping[str, int]) -> None:
        """Adds `counts` of a part of this source."""
        self._times.update(times)
        for kind, count in left_out.items():
            self._leave_out(kind, count)

    @property
    def times(self) -> dict[str, int]:
        """Pages read so far by how their fetch times were read (`neardup.fetch_times`), without the usual ones.

        A table whose rows have no fetch times has only usual ones.
        """
        form = self.record.format
        usual = {""} if form is None or form.records is not None or len(self._times) > 1 else {"", UNDATED}
        return {name: count for name, count in self._times.items() if name not in usual and count}

    def read_at(self, coordinates: Coordinates) -> Page | None:
        """The page at these coordinates, None if the file has none there. Raises OSError."""
        if self._member_shared(coordinates.position):
            found = next(islice(self._pages(0, 0), coordinates.offset, None), None)
        else:
            found = next(self._pages(coordinates.position, coordinates.offset, alone=True), None)
        return found.page if found else None

    def read_many(self, places: Collection[Coordinates]) -> Iterator[tuple[Coordinates, Page]]:
        """Yields pages at these coordinates for which `read_at` reads much else: a row group, or the file up to there.

        The file, or each row group, is read once for all of them. Raises OSError.
        """
        form = self.record.format
        shared = {place.offset: place for place in places if self._member_shared(place.position)}
        if shared:
            for at, found in enumerate(islice(self._pages(0, 0), max(shared) + 1)):
                if at in shared:
                    yield shared[at], found.page
        if form is None or not form.ordinals:
            return
        by_row = {place.position: place for place in places}
        self.settle_ids()
        rows = self._rows()
        assert isinstance(rows, ParquetRows), "positions that are numbers of rows"
        for page, at in self._up_to_damage(rows.read(min(by_row), max(by_row) + 1, sorted(by_row))):
            sourced = next(self._sourced(iter([(page, at)]), by_row[at].offset))
            yield by_row[at], sourced.page

    def cannot_go_on(self, error: OSError) -> None:
        """Records that the file itself failed. Pages that were read before count."""
        what = f"cannot be read: {error.strerror or error}"
        self.problems.append(UnreadablePart(str(error.filename or self.record.path), self.bytes_read, what))

    def holds(self, path: Path) -> bool:
        """Whether `path` is a file of this source, also by another name."""
        root = Path(self.record.path)
        files = [root / name for name, _ in self.record.files] if self.record.format is None else [root]
        return path.exists() and any(file.exists() and path.samefile(file) for file in files)

    def _member_shared(self, position: int) -> bool:
        """Whether `position` does not identify a record, because another one starts in the same gzip member."""
        form = self.record.format
        if form is None or form.ordinals:
            return False
        with closing(Stream(Path(self.record.path))) as stream:
            if stream.compression != "gzip" or form.records is None:
                return stream.compression != "plain"
        reader = form.records(Path(self.record.path), 0, position)
        with closing(reader.stream):
            pair = list(islice(reader.records(), 2))
        return bool(reader.problems) or (len(pair) == 2 and pair[1].shared)

    def settle_ids(self) -> None:
        """Finds the ids of a table's rows, which reads the file once. Raises OSError. Done once a record."""
        record, form = self.record, self.record.format
        if record.ids_across_files or record.repeats is not None or form is None or form.names is None:
            return
        path, row_max = Path(record.path), line_max(self._bound)

        def read(fields: Fields) -> Iterator[Page]:
            assert form.rows is not None
            pages = form.rows(path, fields, row_max).read(0)
            with suppress(Damaged):  # it is reported when the pages are read
                for page, _ in contained_reading(pages, lambda reason: None, file=record.path):
                    yield page

        found = ids_of_rows(record.fields, form.names(path, row_max), read)
        record.id_field, record.repeats = found.id, found.repeats
        record.ids_refused, record.ids_problem = found.refused, found.problem

    def _named(self, page: Page, ordinal: int, at: int) -> Page:
        """The page under the URL that its id has in this file."""
        record, file = self.record, self.record.file_of_ids
        if record.id_field == ROW:
            if not ordinal and record.ids_problem:
                what = f"{record.ids_refused}; the id of a document is the number of its row"
                self.problems.append(UnreadablePart(record.path, at, what))
            return replace(page, url=document_url(str(ordinal), file))
        given = id_of(page.url) if file and record.fields else None
        if given is None:
            return page
        first = self._repeats.get(ordinal)
        if first is None:
            return replace(page, url=document_url(given, file))
        what = (
            f"row {ordinal} has the id {given[:_ID_CHARS_SHOWN]!r} of row {first} and another text: both are kept, as "
            "documents of their own"
        )
        self.problems.append(UnreadablePart(record.path, at, what))
        return replace(page, url=document_url(given, file, ordinal))

    def _pages(self, position: int, ordinal: int, *, alone: bool = False) -> Iterator[SourcedPage]:
        """alone: the record at `position` is known to be a page, and its request is not looked for."""
        self.settle_ids()
        for page in self._sourced(self._read(position, alone), ordinal):
            yield page
            ordinal += 1
        self.note_if_empty(ordinal)

    def _sourced(self, found: Iterator[tuple[Page, int]], ordinal: int) -> Iterator[SourcedPage]:
        """The pages that a reader finds, with their URLs and coordinates. ordinal: number of the first one."""
        self._repeats = dict(self.record.repeats or ())
        for page, at in contained_reading(found, self._ended_by_defect, file=self.record.path):
            page = self._named(page, ordinal, at)
            date = page.fetched_at if page.fetched_at is not None else self.record.mtime_ns // 1_000_000
            yield SourcedPage(page, Coordinates(self.record.id, 0, ordinal, at), min(max(date, 0), _DATE_MAX))
            ordinal += 1

    def note_if_empty(self, pages: int) -> None:
        """Records a problem of a file without pages, unless others explain it. pages: number of its pages."""
        if not pages and not self.problems:
            nothing = "the file holds no page" if self.record.size else "the file is empty"
            others = f": {kinds_text(self.left_out)}" if self.left_out else ""
            self.problems.append(UnreadablePart(self.record.path, 0, nothing + others))

    def _ended_by_defect(self, reason: str) -> None:
        self.problems.append(UnreadablePart(self.record.path, self.bytes_read, reason))
        self.damaged = True

    def _read(self, position: int, alone: bool) -> Iterator[tuple[Page, int]]:
        form = self.record.format
        if form is None:
            return self._folder(position, None)
        if form.records is not None:
            return self._archive(self._reader(position), form.converted, alone)
        # Of a file that is read by ordinals, all rows of a batch are read for one, unless the reader is told to stop.
        return self._table(self._rows(), position, position + 1 if alone and form.ordinals else None)

    def _reader(self, position: int) -> WarcReader:
        """A reader of an archive's records."""
        form = self.record.format
        assert form is not None
        assert form.records is not None
        bound = self._bound + 1 + CONTENT_SLACK_BYTES
        return form.records(Path(self.record.path), bound, position, self.problems)

    def _rows(self) -> TableRows:
        """A reader of a table's rows."""
        form = self.record.format
        assert form is not None
        assert form.rows is not None
        return form.rows(Path(self.record.path), self.record.fields, line_max(self._bound))

    def _archive(self, reader: WarcReader, converted: bool, alone: bool) -> Iterator[tuple[Page, int]]:
        self.left_out.clear()
        with closing(reader.stream):
            records = reader.records()
            for record, method in ((each, "") for each in records) if alone else with_methods(records):
                self.bytes_read = reader.stream.bytes_read
                yield from self._page_of(record, method, converted)
        self.bytes_read = self.bytes_total

    def _page_of(self, record: WarcRecord, method: str, converted: bool) -> Iterator[tuple[Page, int]]:
        """Yields the page of a record with its position, or counts a record that is none."""
        found = contained_page_of(record, self._bound, converted=converted, file=self.record.path, method=method)
        if isinstance(found, Page):
            yield found, record.position
        else:
            self._leave_out(found.kind, 1)

    def _leave_out(self, kind: str, count: int) -> None:
        known = kind in self.left_out or len(self.left_out) < self._kinds_max
        self.left_out[kind if known else _OTHER_KINDS] += count

    def _table(self, rows: TableRows, position: int, stop: int | None = None) -> Iterator[tuple[Page, int]]:
        for page, at in self._up_to_damage(rows.read(position, stop)):
            self.bytes_read = rows.bytes_read
            yield page, at
        if stop is None:
            self.bytes_read = self.bytes_total

    def _up_to_damage(self, rows: Iterator[T]) -> Iterator[T]:
        """Yields rows. Damage of the file ends them, and is a problem."""
        try:
            yield from rows
        except Damaged as damage:
            self.problems.append(UnreadablePart(self.record.path, damage.position, f"{damage}; the rest is not read"))
            self.damaged = True

    def _folder(self, position: int, stop: int | None) -> Iterator[tuple[Page, int]]:
        root = Path(self.record.path)
        base = self.record.base_url or default_base_url(root)
        for ordinal, (name, _) in enumerate(self.record.files[position:stop], position):
            path, url = root / name, base + _quoted(name)
            page = contained(partial(self._file_page, path, url), partial(_rejected, url), file=path, position=0)
            yield page, ordinal

    def _file_page(self, path: Path, url: str) -> Page:
        try:
            if not self.record.follow_links and leads_out(path, Path(self.record.path)):  # since it was listed
                raise PermissionError(errno.EPERM, "a link that leads out of the folder")
            with path.open("rb") as file:
                body = file.read(self._bound + 1)
                status = os.fstat(file.fileno())
        except OSError as error:
            problem = f"cannot read {path}: {error.strerror}"
            self.problems.append(UnreadablePart(str(path), 0, problem))
            return Page(url=url, body=b"", problem=problem)
        self.bytes_read += status.st_size
        content_type = CONTENT_TYPES[path.suffix.lower()]
        return Page(url=url, body=body, content_type=content_type).dated(status.st_mtime_ns // 1_000_000)


def times_text(counts: Mapping[str, int]) -> str:
    """Returns a sentence about fetch times that were not in milliseconds. counts: pages by `read_as`, and UNDATED."""
    read = [f"{name} ({counted(count, 'page')})" for name, count in sorted(counts.items()) if name != UNDATED]
    out = [f"fetch times read as {', as '.join(read)}"] if read else []
    if undated := counts.get(UNDATED):
        out.append(f"{counted(undated, 'page')} without a readable fetch time, for which that of the file counts")
    return "; ".join(out)


def open_sources(
    path: Path,
    options: ReadOptions = BY_DEFAULT,
    *,
    body_bytes_max: int,
    not_read: NotRead,
    on_bytes: Callable[[int], None] = lambda count: None,
) -> list[LocalSource]:
    """The sources of a path: one, or each archive of a folder with archives and without pages.

    not_read: gets the files of a folder that are not read. on_bytes: called with the length of each piece that was
    digested. Raises BadInput for a path that does not exist or is no source.
    """
    try:
        if path.is_dir():
            return _folder_sources(path, options, body_bytes_max, not_read, on_bytes)
        if not path.is_file():
            raise BadInput(f"{path}: no such file or folder" if not path.exists() else f"{path}: not a file or folder")
        if path.suffix.lower() in CONTENT_TYPES:
            options = replace(options, follow_links=True)
            return [_folder_source(path.parent, [path.name], options, body_bytes_max, on_bytes)]
        return [_file_source(path, options, body_bytes_max, on_bytes)]
    except OSError as error:
        raise BadInput(f"cannot read {error.filename or path}: {error.strerror or error}") from error


def line_max(body_bytes_max: int) -> int:
    """Greatest size of a row: a body in base64, or with every character escaped, and other fields."""
    return 4 * body_bytes_max + LINE_SLACK_BYTES


def kinds_text(counts: Mapping[str, int]) -> str:
    """Formats counts by kind, the most frequent first."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{kind} ({count:,})" for kind, count in ordered)


def left_out_text(counts: Mapping[str, int]) -> str:
    """Formats the line for the records of archives that are no pages."""
    return f"left out, as no pages: {counted(sum(counts.values()), 'record')}: {kinds_text(counts)}"


def default_base_url(folder: Path) -> str:
    """`file:///.../`: the default prefix of a folder's URLs."""
    return "file://" + _quoted(os.path.abspath(folder)).rstrip("/") + "/"


def unchanged(record: SourceRecord, name: str | None = None) -> bool:
    """Whether the source (in a folder: its file `name`) is unchanged since the scan. Raises OSError if it is gone."""
    path = Path(record.path)
    if name is not None:
        return _digest(path / name) == dict(record.files)[name]
    status = path.stat()
    if (status.st_size, status.st_mtime_ns) == (record.size, record.mtime_ns):
        return True
    digest = _digest(path)
    return digest == record.digest if record.digest else _read_by(record.fields, digest) == record.content


def _file_source(path: Path, options: ReadOptions, body_bytes_max: int, on_bytes: Callable[[int], None]) -> LocalSource:
    kind = kind_of(path)
    if kind is None:
        raise BadInput(f"{path}: none of what can be read: {ACCEPTED}")
    form = FORMATS[kind]
    fields = options.fields
    if form.names is None:
        fields = Fields()  # archives have no fields
    else:
        names = form.names(path, line_max(body_bytes_max))
        fields = fitted(path, names, fields, needs_text=form.needs_text, hint=form.hint)
    status = path.stat()
    digest = _digest(path, on_bytes)
    by_file = _read_by(fields, digest)
    across = digest_of(f"{by_file} ids across files".encode())
    is_across = options.ids_across_files and bool(fields.id)
    content, other = (across, by_file) if is_across else (by_file, across)
    record = SourceRecord(
        id=content,
        content=content,
        path=os.path.abspath(path),
        kind=kind,
        size=status.st_size,
        mtime_ns=status.st_mtime_ns,
        text_field=fields.text,
        id_field=fields.id if is_across else options.fields.id if form.names else None,
        digest=digest,
        ids_across_files=form.names is None or is_across or (options.ids_across_files and fields.id is None),
    )
    return LocalSource(record, body_bytes_max, other)


def _read_by(fields: Fields, digest: str) -> str:
    """The name of a file that is read by these fields: with other fields it has other pages."""
    return digest_of(f"{digest} {fields.text!r} {fields.id!r}".encode()) if fields else digest


def open_all(
    paths: Sequence[Path],
    options: ReadOptions = BY_DEFAULT,
    *,
    body_bytes_max: int,
    not_read: NotRead,
    threads: int = 1,
    on_bytes: Callable[[Path, int], None] = lambda path, count: None,
) -> list[LocalSource]:
    """Opens the sources of several paths, in their order, and digests their bytes in some threads.

    Of several paths, those that exist and are no sources are noted in `not_read`. on_bytes: called in these threads
    with a path and the size of each piece. Raises BadInput for a path that does not exist, and if no path is a source.
    """
    stopped = threading.Event()

    def read(path: Path, count: int) -> None:
        if stopped.is_set():
            raise CancelledError
        on_bytes(path, count)

    def opened(path: Path) -> tuple[list[LocalSource], NotRead]:
        noted = NotRead()
        try:
            return open_sources(
                path, options, body_bytes_max=body_bytes_max, not_read=noted, on_bytes=partial(read, path)
            ), noted
        except BadInput as error:
            if (len(paths) == 1 and not not_read.lines) or not path.exists():
                raise
            noted.add(path, str(error))
            return [], noted

    with ThreadPoolExecutor(threads, thread_name_prefix="neardup-digest") as pool:
        futures = [pool.submit(opened, path) for path in paths]
        found: list[LocalSource] = []
        try:
            for each in futures:
                sources, noted = each.result()
                found += sources
                not_read.merge(noted)
        finally:
            stopped.set()  # after an error or an interrupt the others end at their next piece
            pool.shutdown(cancel_futures=True)
    if paths and not found:
        raise BadInput("; ".join(not_read.lines[:_REASONS_NAMED]) or "nothing to read")
    return found


def _folder_sources(
    folder: Path, options: ReadOptions, body_bytes_max: int, not_read: NotRead, on_bytes: Callable[[int], None]
) -> list[LocalSource]:
    found = listed(folder, not_read, follow_links=options.follow_links)
    if found.pages:
        return [_folder_source(folder, found.pages, options, body_bytes_max, on_bytes)]
    sources: list[LocalSource] = []
    for path in found.files:
        try:
            for file in _unpacked(path, options, not_read, on_bytes):
                sources.append(_file_source(file, options, body_bytes_max, on_bytes))
        except BadInput as error:
            not_read.add(path, str(error))
        except OSError as error:
            not_read.add(path, f"cannot be read: {error.strerror or error}")
    if not sources:
        kinds = ", ".join(f"*{suffix}" for suffix in (*CONTENT_TYPES, *MAIN_SUFFIXES))
        others = "".join(f"; {line}" for line in not_read.lines[:_REASONS_NAMED])
        raise BadInput(f"{folder}: holds none of {kinds} that can be read{others}")
    return sources


def _unpacked(path: Path, options: ReadOptions, not_read: NotRead, on_bytes: Callable[[int], None]) -> list[Path]:
    """The file, or copies of the archives in a WACZ file. Raises BadInput, OSError."""
    if not path.name.lower().endswith(PACKED):
        return [path]
    if options.copies is None:
        raise BadInput(f"{path}: {_PACKED_UP}; name the file itself")
    return unpacked(path, options.copies, not_read, on_bytes)


def _folder_source(
    folder: Path, names: list[str], options: ReadOptions, body_bytes_max: int, on_bytes: Callable[[int], None]
) -> LocalSource:
    base_url = options.base_url
    if base_url is not None and not base_url.endswith(("/", "=", "?")):
        base_url += "/"
    base = base_url or default_base_url(folder)
    digest, size, files = _digester(), 0, []
    for name in names:
        try:
            one = _digest(folder / name, on_bytes)
            size += (folder / name).stat().st_size
        except OSError:
            one = "unreadable"  # becomes a rejected page
        files.append((name, one))
        digest.update(f"{base}{_quoted(name)}\0{one}\n".encode())
    record = SourceRecord(
        id=digest.hexdigest(),
        content=digest.hexdigest(),
        path=os.path.abspath(folder),
        kind=FOLDER,
        base_url=base_url,
        size=size,
        files=files,
        follow_links=options.follow_links,
    )
    return LocalSource(record, body_bytes_max)


def _rejected(url: str, reason: str) -> Page:
    return Page(url=url, body=b"", problem=reason)


def _quoted(name: str) -> str:
    return quote(os.fsencode(name))


def digest_of(data: bytes) -> str:
    """The id of a source: 32 hex digits.

    Cryptographic, because a source with the id of another one would be skipped.
    """
    return _digester(data).hexdigest()


def _digester(data: bytes = b"") -> hashlib.blake2b:
    return hashlib.blake2b(data, digest_size=16)


def _digest(path: Path, on_bytes: Callable[[int], None] = lambda count: None) -> str:
    digest = _digester()
    with path.open("rb") as file:
        while piece := file.read(_DIGEST_PIECE_BYTES):
            digest.update(piece)
            on_bytes(len(piece))
    return digest.hexdigest()
