"""Sources of the embedded run: WARC files, folders of HTML, JSON lines and Parquet, as pages with their coordinates.

A source is named by what it holds, so that a moved file is known again: the BLAKE2b-128 of a file (of documents whose
fields have other names than the usual ones, with these names); of a folder, that of its sorted list of (URL,
BLAKE2b-128). A page's offset is its ordinal in the source; its position the byte where its record (or the gzip member
with it) starts, in a folder and in a table its ordinal.
"""

import errno
import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from neardup.errors import BadInput
from neardup.page import CONTENT_TYPES, Page
from neardup.verdict import Coordinates
from streams.files.rows import Lines, Table, fitted
from streams.files.warc import Problem, WarcReader, holds_converted
from streams.formats.compressed import Damaged, Stream
from streams.formats.documents import Fields
from streams.formats.warc import page_of
from streams.ports import SourcedPage

SourceKind = Literal["warc", "wet", "folder", "jsonl", "parquet"]

_ARCHIVES = (".warc", ".warc.gz", ".warc.zst", ".wet", ".wet.gz")
_LINES = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz", ".jsonl.zst", ".ndjson.zst")
_TABLES = (".parquet",)
_PACKED = (".wacz",)
#: For a person whose file is none of it.
ACCEPTED = (
    "WARC and WET (.warc, .wet, also .gz and .zst), WACZ, JSON lines (.jsonl, also .gz and .zst), Parquet, folders of "
    f"these, and folders of pages ({', '.join(CONTENT_TYPES)})"
)
_BESIDE_PAGES = "not scanned, as it lies beside pages; name the file itself to scan it"
_LEADS_OUT = "not scanned, as it is a link that leads out of the folder; --follow-links follows it"
_PACKED_UP = "not scanned here; name the file itself to scan it"
#: HTTP headers in front of a body, and room for a content encoding that enlarges.
_CONTENT_SLACK_BYTES = 1 << 20
#: Of a line: for what stands beside the body.
LINE_SLACK_BYTES = 1 << 20
_DIGEST_PIECE_BYTES = 1 << 20
_TYPES_TOLD_MAX = 10
#: Later dates, in ms since the epoch, do not fit into a record.
_DATE_MAX = (1 << 63) - 1


@dataclass
class SourceRecord:
    """What a state directory remembers of a source. `id` is `content` unless the source was scanned again (`run`)."""

    id: str  # 32 hex digits
    content: str  # digest of what it holds
    path: str
    kind: SourceKind
    run: int = 0
    base_url: str | None = None
    size: int = 0
    mtime_ns: int = 0
    finished: bool = False
    rejected: bool = False  # every page of it: the next scan reads it again
    pages: int = 0
    problems: list[str] = field(default_factory=list)
    problems_total: int = 0
    files: list[tuple[str, str]] = field(default_factory=list)  # a folder's (path below it, digest), sorted
    follow_links: bool = False  # also those that lead out of the folder
    text_field: str | None = None
    id_field: str | None = None

    @property
    def fields(self) -> Fields:
        return Fields(self.text_field, self.id_field)

    @property
    def fields_taken(self) -> str:
        """Which fields of a file hold ids and texts, where these are not `url` and `body`; else empty."""
        if not self.fields:
            return ""
        identity, text = self.id_field or "url", self.text_field or "body"
        return f"{self.path}: the id of a document is its {identity}, the text its {text}"

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "SourceRecord":
        record = cls(**value)
        record.files = [(name, digest) for name, digest in record.files]
        return record


class LocalSource:
    """One file or folder, readable from any of its pages on.

    `problems` collects what could not be read; `bytes_read` of `bytes_total` is for a progress bar.
    """

    def __init__(self, record: SourceRecord, body_bytes_max: int) -> None:
        self.record = record
        self.problems: list[Problem] = []
        self.bytes_total = record.size
        self.bytes_read = 0
        self._bound = body_bytes_max
        self._left_out = ""  # records that are no pages, in words

    def read(self, offset: int = 0, position: int | None = None) -> Iterator[SourcedPage]:
        """Pages from ordinal `offset` on. position: that of the page before `offset`, which saves reading up to it.

        Raises OSError where the file itself cannot be read. `date` is the page's, or else the file's.
        """
        if position is None or offset == 0:
            yield from islice(self._pages(0, 0), offset, None)
            return
        if self._member_shared(position):
            yield from islice(self._pages(0, 0), offset, None)
            return
        yield from islice(self._pages(position, offset - 1), 1, None)

    def read_at(self, coordinates: Coordinates) -> Page | None:
        """The one page at these coordinates, None if the file has none there. Raises OSError."""
        if self._member_shared(coordinates.position):
            found = next(islice(self._pages(0, 0), coordinates.offset, None), None)
        else:
            found = next(self._pages(coordinates.position, coordinates.offset), None)
        return found.page if found else None

    def cannot_go_on(self, error: OSError) -> None:
        """Notes that the file itself failed; what was read of it counts."""
        what = f"cannot be read: {error.strerror or error}"
        self.problems.append(Problem(str(error.filename or self.record.path), self.bytes_read, what))

    def holds(self, path: Path) -> bool:
        """Whether `path` is this source's file, or one of its files, under whatever name."""
        root = Path(self.record.path)
        files = [root / name for name, _ in self.record.files] if self.record.kind == "folder" else [root]
        return path.exists() and any(file.exists() and path.samefile(file) for file in files)

    def _member_shared(self, position: int) -> bool:
        """Whether the record at `position` cannot be told by that alone, as another starts in the same gzip member."""
        if self.record.kind in ("folder", "parquet"):
            return False
        with closing(Stream(Path(self.record.path))) as stream:
            if stream.compression != "gzip" or self.record.kind == "jsonl":
                return stream.compression != "plain"
        reader = WarcReader(Path(self.record.path), 0, position)
        with closing(reader.stream):
            pair = list(islice(reader.records(), 2))
        return bool(reader.problems) or (len(pair) == 2 and pair[1].shared)

    def _pages(self, position: int, ordinal: int) -> Iterator[SourcedPage]:
        readers = {"warc": self._warc, "wet": self._warc, "folder": self._folder}
        for page, at in readers.get(self.record.kind, self._rows)(position):
            date = page.fetched_at if page.fetched_at is not None else self.record.mtime_ns // 1_000_000
            yield SourcedPage(page, Coordinates(self.record.id, 0, ordinal, at), min(max(date, 0), _DATE_MAX))
            ordinal += 1
        if not ordinal and not self.problems:
            nothing = "the file holds no page" if self.record.size else "the file is empty"
            self.problems.append(Problem(self.record.path, 0, nothing + self._left_out))

    def _warc(self, position: int) -> Iterator[tuple[Page, int]]:
        reader = WarcReader(Path(self.record.path), self._bound + _CONTENT_SLACK_BYTES, position, self.problems)
        others: Counter[str] = Counter()
        with closing(reader.stream):
            for record in reader.records():
                self.bytes_read = reader.stream.bytes_read
                page = page_of(record, self._bound, converted=self.record.kind == "wet")
                if page is not None:
                    yield page, record.position
                elif len(others) < _TYPES_TOLD_MAX:
                    others[record.headers["warc-type"][:40].lower()] += 1
        self.bytes_read = self.bytes_total
        counts = [f"{count} {'record' if count == 1 else 'records'} of type {kind}" for kind, count in others.items()]
        self._left_out = f": {', '.join(counts)}" if counts else ""

    def _rows(self, position: int) -> Iterator[tuple[Page, int]]:
        path, fields = Path(self.record.path), self.record.fields
        rows = Lines(path, fields, _line_max(self._bound)) if self.record.kind == "jsonl" else Table(path, fields)
        try:
            for page, at in rows.read(position):
                self.bytes_read = rows.bytes_read
                yield page, at
        except Damaged as damage:
            self.problems.append(Problem(self.record.path, damage.position, f"{damage}; the rest is not read"))
        self.bytes_read = self.bytes_total

    def _folder(self, position: int) -> Iterator[tuple[Page, int]]:
        root = Path(self.record.path)
        base = self.record.base_url or default_base_url(root)
        for ordinal, (name, _) in enumerate(self.record.files[position:], position):
            page = self._file_page(root / name, base + _quoted(name))
            yield page, ordinal

    def _file_page(self, path: Path, url: str) -> Page:
        try:
            if not self.record.follow_links and _leads_out(path, Path(self.record.path)):  # since it was listed
                raise PermissionError(errno.EPERM, "a link that leads out of the folder")
            with path.open("rb") as file:
                body = file.read(self._bound + 1)
                status = os.fstat(file.fileno())
        except OSError as error:
            problem = f"cannot read {path}: {error.strerror}"
            self.problems.append(Problem(str(path), 0, problem))
            return Page(url=url, body=b"", problem=problem)
        self.bytes_read += status.st_size
        content_type = CONTENT_TYPES[path.suffix.lower()]
        return Page(url=url, body=body, content_type=content_type, fetched_at=status.st_mtime_ns // 1_000_000)


def open_sources(
    path: Path,
    *,
    base_url: str | None,
    body_bytes_max: int,
    on_bytes: Callable[[int], None] = lambda count: None,
    follow_links: bool = False,
    fields: Fields | None = None,
) -> list[LocalSource]:
    """The sources that a path names: one, or each archive of a folder that holds archives and no pages.

    base_url: what a folder's file names are appended to; `file://` and the folder's path if None.
    on_bytes: told of each stretch of bytes digested. follow_links: in folders, files that are links to elsewhere count
    too: whoever made the folder may not have been allowed to read them; links to folders never do. fields: of JSON
    lines and Parquet. Raises BadInput for what is not there or is no source.
    """
    fields = fields or Fields()
    try:
        if path.is_dir():
            return _folder_sources(path, base_url, body_bytes_max, on_bytes, follow_links, fields)
        if not path.is_file():
            raise BadInput(f"{path}: no such file or folder" if not path.exists() else f"{path}: not a file or folder")
        if path.suffix.lower() in CONTENT_TYPES:
            return [_folder_source(path.parent, [path.name], base_url, body_bytes_max, on_bytes, True)]
        return [_file_source(path, body_bytes_max, on_bytes, fields)]
    except OSError as error:
        raise BadInput(f"cannot read {error.filename or path}: {error.strerror or error}") from error


def _line_max(body_bytes_max: int) -> int:
    """Bytes of a line of JSON: base64, or text with every character escaped, and what stands beside it."""
    return 4 * body_bytes_max + LINE_SLACK_BYTES


def default_base_url(folder: Path) -> str:
    """`file:///.../`: what a folder's pages are called where nothing better is given."""
    return "file://" + _quoted(os.path.abspath(folder)).rstrip("/") + "/"


def unchanged(record: SourceRecord, name: str | None = None) -> bool:
    """Whether the source (of a folder: its file `name`) still holds what was scanned. Raises OSError if it is gone."""
    path = Path(record.path)
    if name is not None:
        return _digest(path / name) == dict(record.files)[name]
    status = path.stat()
    if (status.st_size, status.st_mtime_ns) == (record.size, record.mtime_ns):
        return True
    return _read_by(record.fields, _digest(path)) == record.content


def _file_source(path: Path, body_bytes_max: int, on_bytes: Callable[[int], None], fields: Fields) -> LocalSource:
    kind = _kind(path)
    if kind == "jsonl" or kind == "parquet":
        fields = fitted(path, kind, fields, _line_max(body_bytes_max))
    else:
        fields = Fields()  # whose records are no rows
    status = path.stat()
    digest = _read_by(fields, _digest(path, on_bytes))
    record = SourceRecord(
        id=digest,
        content=digest,
        path=os.path.abspath(path),
        kind=kind,
        size=status.st_size,
        mtime_ns=status.st_mtime_ns,
        text_field=fields.text,
        id_field=fields.id,
    )
    return LocalSource(record, body_bytes_max)


def _read_by(fields: Fields, digest: str) -> str:
    """The digest of a file whose documents have these fields: read by others, it holds other pages."""
    return digest_of(f"{digest} {fields.text!r} {fields.id!r}".encode()) if fields else digest


def _kind(path: Path) -> SourceKind:
    name = path.name.lower()
    if name.endswith(_LINES):
        return "jsonl"
    if name.endswith(_TABLES):
        return "parquet"
    if not name.endswith(_ARCHIVES):
        with closing(Stream(path)) as stream:
            with suppress(Damaged):
                stream.want(64)
            start = bytes(stream.buffer[:64]).lstrip()
        if start.startswith(b"{"):
            return "jsonl"
        if start.startswith(b"PAR1"):
            return "parquet"
        if not start.startswith(b"WARC/"):
            raise BadInput(f"{path}: none of what can be read: {ACCEPTED}")
    return "wet" if holds_converted(path) else "warc"


def _leads_out(path: Path, folder: Path) -> bool:
    """Whether a file of a folder is a link to something that does not lie in it."""
    return path.is_symlink() and not path.resolve().is_relative_to(folder.resolve())


def _folder_sources(
    folder: Path,
    base_url: str | None,
    body_bytes_max: int,
    on_bytes: Callable[[int], None],
    follow_links: bool,
    fields: Fields,
) -> list[LocalSource]:
    pages, archives = [], []
    problems: list[Problem] = []

    def unreadable(error: OSError) -> None:
        if Path(error.filename) == folder:
            raise error
        what = f"cannot be read: {error.strerror}; nothing in it is scanned"
        problems.append(Problem(str(error.filename), 0, what))

    for directory, folders, names in os.walk(folder, onerror=unreadable):
        folders.sort()
        for name in names:
            path = Path(directory, name)
            page = path.suffix.lower() in CONTENT_TYPES
            if not (page or name.lower().endswith(_ARCHIVES + _LINES + _TABLES + _PACKED)) or not path.is_file():
                continue
            if name.lower().endswith(_PACKED):
                problems.append(Problem(str(path), 0, _PACKED_UP))
            elif not follow_links and _leads_out(path, folder):
                problems.append(Problem(str(path), 0, _LEADS_OUT))
            elif page:
                pages.append(str(path.relative_to(folder)))
            else:
                archives.append(path)
    if pages:
        names = sorted(pages, key=os.fsencode)
        source = _folder_source(folder, names, base_url, body_bytes_max, on_bytes, follow_links)
        source.problems += problems + [Problem(str(path), 0, _BESIDE_PAGES) for path in sorted(archives)]
        return [source]
    if not archives:
        kinds = ", ".join(f"*{suffix}" for suffix in (*CONTENT_TYPES, *_ARCHIVES, *_LINES[:2], *_TABLES))
        others = f"; {problems[0]}" if problems else ""
        raise BadInput(f"{folder}: holds none of {kinds}{others}")
    sources = [_file_source(path, body_bytes_max, on_bytes, fields) for path in sorted(archives)]
    sources[0].problems += problems
    return sources


def _folder_source(
    folder: Path,
    names: list[str],
    base_url: str | None,
    body_bytes_max: int,
    on_bytes: Callable[[int], None],
    follow_links: bool,
) -> LocalSource:
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
        kind="folder",
        base_url=base_url,
        size=size,
        files=files,
        follow_links=follow_links,
    )
    return LocalSource(record, body_bytes_max)


def _quoted(name: str) -> str:
    return quote(os.fsencode(name))


def digest_of(data: bytes) -> str:
    """32 hex digits: an id of a source. Cryptographic, as a source with the id of another one would be skipped."""
    digest = _digester()
    digest.update(data)
    return digest.hexdigest()


def _digester() -> hashlib.blake2b:
    return hashlib.blake2b(digest_size=16)


def _digest(path: Path, on_bytes: Callable[[int], None] = lambda count: None) -> str:
    digest = _digester()
    with path.open("rb") as file:
        while piece := file.read(_DIGEST_PIECE_BYTES):
            digest.update(piece)
            on_bytes(len(piece))
    return digest.hexdigest()
