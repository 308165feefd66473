"""What reads bytes, one function each: it raises only where there is a defect.

A page that cannot be read is data, a damaged record is refused with `CorruptRecord`, a file written by hand with
`BadInput`: these are no defects. Anything else that is raised is, and so is a result that its reader does not promise.
"""

import contextlib
import http.client
import os
import socket
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import patch
from urllib.request import HTTPHandler, Request

import xxhash

from neardup.decider import Decider
from neardup.errors import BadInput, BadPage, CorruptRecord, OtherVersion
from neardup.evaluation.labels import read_labels
from neardup.evaluation.runs import read_run
from neardup.fold import fold
from neardup.index import naming_rows, rows
from neardup.index.memory import MemoryStore
from neardup.page import Page
from neardup.rules.siblings import Siblings
from neardup.scheme import Scheme
from neardup.signals.model import model_of
from neardup.sketch.header import Header
from neardup.sketch.make_sketches import sketch_pages
from neardup.sketch.sketch_record import Sketch
from neardup.text.decoding import decode
from neardup.verdict import Coordinates
from streams.config.load import load
from streams.errors import BodiesAway, SourceGap, WrongScheme
from streams.files.exchanges import with_methods
from streams.files.fetching import fetched
from streams.files.jsonl_and_parquet import JsonLines, ParquetRows, columns_named, fitted, names_of_lines
from streams.files.not_read import NotRead
from streams.files.sources import open_sources
from streams.files.warc_reader import WarcReader
from streams.formats import bodies as formats_bodies
from streams.formats.bodies import Bodies
from streams.formats.codecs import Codec
from streams.formats.compressed import Damaged, decode_body
from streams.formats.http_answer import read_answer
from streams.formats.json import Fields
from streams.formats.message import decode_entry, decode_verdicts
from streams.formats.verdict_records import decode_object
from streams.formats.warc import page_of
from streams.kafka.control_topic import _content_of as generations_of
from streams.pipeline import batch_fold
from streams.pipeline.matcher import Matcher
from streams.results.query_results import decode_result
from streams.state.checkpoint_manifest import Manifest
from streams.verdicts.diff import diff
from streams.verdicts.diff_command import history_of
from tests.fuzz.requests import http_request, label_request
from tests.streams.scripted import ScriptedRecord

#: Of bodies here: what is bounded shows with little.
BODY_BYTES_MAX = 1 << 14
SOURCE = b"s" * 16
SCHEME = Scheme(seed=7, body_bytes_max=BODY_BYTES_MAX)
DECIDER = Decider(scheme=SCHEME.digest)
_CODECS = {name: Codec(name, Bodies((), BODY_BYTES_MAX), BODY_BYTES_MAX) for name in ("raw", "json", "warc")}
_FRAMINGS = (
    b"Transfer-Encoding: chunked",
    b"Transfer-Encoding: gzip, chunked",
    b"Transfer-Encoding: chunked\r\nContent-Encoding: gzip",
    b"Transfer-Encoding: chunked\r\nContent-Encoding: br",
    b"Content-Encoding: deflate\r\nContent-Length: 999",
)
_CODINGS = ("gzip", "deflate", "br", "zstd", "identity", "", "utf-8", "x-gzip")


def sketched(page: Page) -> bytes:
    """The page's record, which must be one that the matcher takes. A page rejected by a defect is a finding."""
    assert " failed with " not in page.problem, page.problem
    (record,) = sketch_pages([page], SCHEME, coordinates=[Coordinates("0f" * 16)], log_times=[1])
    assert Header(record).problem() == "", Header(record).problem()
    Sketch(record).to_dict()
    return record


def html(data: bytes) -> None:
    """A body as it is, fetched from two sites."""
    records = [sketched(Page(f"http://{site}.example/1", data, "text/html")) for site in "ab"]
    fold(list(enumerate(records)), MemoryStore(), DECIDER)


def content_type(data: bytes) -> None:
    """The first line is the Content-Type."""
    header, _, body = data.partition(b"\n")
    found = decode(body, header.decode("utf-8", "replace"), BODY_BYTES_MAX)
    assert len(found.utf8) <= max(BODY_BYTES_MAX + 4, len(body))
    sketched(Page("http://a.example/", body, header.decode("utf-8", "replace")))


def warc_file(data: bytes) -> None:
    with _file(data) as path:
        reader = WarcReader(path, BODY_BYTES_MAX)
        for record, method in with_methods(reader.records()):
            assert len(record.content) <= BODY_BYTES_MAX
            page = page_of(record, BODY_BYTES_MAX, converted=True, method=method)
            if isinstance(page, Page):
                sketched(page)
            else:
                assert len(page.kind) < 100, page.kind


def page_message(data: bytes) -> None:
    """The first byte chooses the codec; `raw` has its headers in the next line."""
    codec = list(_CODECS)[data[0] % len(_CODECS)] if data else "raw"
    value, headers = data[1:], list[tuple[str, bytes]]()
    if codec == "raw":
        line, _, value = value.partition(b"\n")
        names = ("content-type", "http-status", "fetched-at", "body-ref", "http-method", "truncated")
        headers = list(zip(names, line.split(b"\t"), strict=False))
    sketched(_CODECS[codec].page(ScriptedRecord((0, 0), b"http://a.example/", value, tuple(headers), 1)))


def http_answer(data: bytes) -> None:
    """In a record of its own: header lines, chunks, encodings of the body."""
    head = (
        b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.example/\r\nContent-Type: application/http\r\n"
    )
    value = head + b"Content-Length: %d\r\n\r\n" % len(data) + data
    sketched(_CODECS["warc"].page(ScriptedRecord((0, 0), b"http://a.example/", value)))


def chunks(data: bytes) -> None:
    """The first byte chooses the header; the body is framed, or begins as if it were."""
    header = _FRAMINGS[data[0] % len(_FRAMINGS)] if data else b""
    answer = read_answer(b"HTTP/1.1 200 OK\r\n" + header + b"\r\n\r\n" + data[1:])
    with contextlib.suppress(BadPage):
        found = answer.decoded(BODY_BYTES_MAX)
        assert len(found) <= BODY_BYTES_MAX
    assert len(answer.missing) < 100


def encoded_body(data: bytes) -> None:
    """The first byte chooses the coding."""
    coding = _CODINGS[data[0] % len(_CODINGS)] if data else ""
    found = decode_body(data[1:], coding, BODY_BYTES_MAX)
    assert found is None or len(found) <= BODY_BYTES_MAX


def log_message(data: bytes) -> None:
    """A message as it is, and with the checksum that its bytes have: what is in it is judged, or refused."""
    head, body = data[:40], data[48:]
    checksum = xxhash.xxh64_intdigest(body, xxhash.xxh64_intdigest(head)).to_bytes(8, "little")
    for message in (data, head + checksum + body):
        with contextlib.suppress(CorruptRecord):
            decode_entry(message, 3)
        with contextlib.suppress(CorruptRecord, WrongScheme, SourceGap):
            Matcher(MemoryStore(), DECIDER).prepare([(3, message)])


def sketch_record(data: bytes) -> None:
    """One that its header passes is judged, alone and beside a page of its kind."""
    try:
        header = Header(data)
    except (ValueError, CorruptRecord):
        return
    if header.problem():
        return
    for each in (DECIDER, Decider(scheme=SCHEME.digest, rule="combined")):
        store = MemoryStore()
        outcome = fold([(1, _PAGE), (2, data), (3, data)], store, each)
        store.write(outcome.writes)
        for verdict in outcome.verdicts:
            verdict.to_json()


def state_rows(data: bytes) -> None:
    for read in (rows.decode_url, rows.decode_cluster, rows.decode_member, rows.decode_digest, naming_rows.decode):
        with contextlib.suppress(CorruptRecord):
            row = read(data)
            assert read(naming_rows.encode(row) if isinstance(row, Siblings) else row.encode()) == row


def lines(data: bytes) -> None:
    """Of verdicts, labels and results of a search, as input."""
    with contextlib.suppress(BadPage):
        decode_result(data)
    with contextlib.suppress(BadInput):
        read_run(data.splitlines(), "a run", "lines")
    with _file(data) as path:
        with contextlib.suppress(BadInput):
            read_labels(path)
        with contextlib.suppress(BadInput):
            history = history_of(str(path))
            diff(history, history).to_json()


def settings_file(data: bytes) -> None:
    with _file(data) as path, contextlib.suppress(BadInput):
        load({"NEARDUP_CONFIG": str(path)}, role="match")
    with _file(data) as path, contextlib.suppress(BadInput):
        load({"NEARDUP_SEED_FILE": str(path)}, role="match")


def json_of_ours(data: bytes) -> None:
    """What is kept beside an index, or in a model."""
    text = data.decode("utf-8", "replace")
    for read in (Decider.from_json, Scheme.from_json):
        with contextlib.suppress(ValueError, OtherVersion):
            read(text)
    with contextlib.suppress(BadInput, OtherVersion):
        model_of(data, "the model")


def body_ref(data: bytes) -> None:
    """A reference below an allowed prefix, and in the next line what its store answers: two errors may come of it."""
    rest, _, answer = data.partition(b"\n")
    bodies = Bodies([_PREFIX], BODY_BYTES_MAX)
    _Answering.answer = answer
    handler = _Handler()
    handler.parent = formats_bodies._OPENER  # type: ignore[attr-defined]
    with patch.dict(formats_bodies._OPENER.handle_open, http=[handler]):
        _read_bodies(bodies, rest)


def _read_bodies(bodies: Bodies, rest: bytes) -> None:
    for url in (_PREFIX + rest.decode("utf-8", "replace"), _SHORT_PREFIX + rest.decode("latin-1")):
        try:
            assert len(bodies.read(url)) <= BODY_BYTES_MAX + 1
        except (BadPage, BodiesAway) as error:
            shown = f"{error} {vars(error)}"
            assert _SECRET not in shown, shown
    bodies.answers(_SHORT_PREFIX)


class _Answering(http.client.HTTPConnection):
    """A connection to a store that answers one thing."""

    answer = b""

    def connect(self) -> None:
        here, there = socket.socketpair()
        with there:
            there.setblocking(False)
            with contextlib.suppress(OSError):
                there.send(self.answer)
        self.sock = here


class _Handler(HTTPHandler):
    def http_open(self, request: Request) -> http.client.HTTPResponse:
        return self.do_open(_Answering, request)


_SECRET = "t3asel w,l"
_PREFIX, _SHORT_PREFIX = f"http://carder:{_SECRET}@store.example/bodies/", "http://store.example/bodies/"


def wacz(data: bytes) -> None:
    """Members are copied, within a bound of what the file has."""
    with tempfile.TemporaryDirectory(dir=_MEMORY) as folder:
        path = Path(folder) / "a.wacz"
        path.write_bytes(data)
        with contextlib.suppress(BadInput):
            copies = fetched([path], Path(folder) / "in", NotRead())
            assert sum(copy.stat().st_size for copy in copies) <= 100 * len(data)


def parquet(data: bytes) -> None:
    """Bytes between the two marks of the format; and with the length of the foot that they have."""
    foot = data.rpartition(b"\n")[2]
    for made in (data, b"PAR1" + data + len(foot).to_bytes(4, "little") + b"PAR1"):
        with _file(made) as path:
            with contextlib.suppress(BadInput):
                fitted(path, columns_named(path), Fields(), needs_text=True)
            with contextlib.suppress(Damaged):
                for page, _ in ParquetRows(path, Fields()).read(0):
                    sketched(page)


def json_lines(data: bytes) -> None:
    with _file(data) as path:
        with contextlib.suppress(BadInput):
            fitted(path, names_of_lines(path, BODY_BYTES_MAX), Fields(), needs_text=False)
        with contextlib.suppress(Damaged):
            for page, _ in JsonLines(path, Fields(), BODY_BYTES_MAX).read(0):
                sketched(page)


def input_file(data: bytes) -> None:
    """A file in each format; from any page on it holds the same pages."""
    with tempfile.TemporaryDirectory(dir=_MEMORY) as folder:
        for name in ("a.arc", "a.json", "a.csv", "a"):
            (Path(folder) / name).write_bytes(data)
            with contextlib.suppress(BadInput):
                (source,) = open_sources(Path(folder) / name, not_read=NotRead(), body_bytes_max=1_000)
                pages = list(source.read())
                for number, one in enumerate(pages[:20]):
                    sketched(one.page)
                    assert list(source.read(number + 1, one.coordinates.position)) == pages[number + 1 :]


def records_of_ours(data: bytes) -> None:
    """What processes leave for each other: manifests, control records, takedowns, verdicts."""
    with contextlib.suppress(CorruptRecord):
        assert Manifest.from_json(Manifest.from_json(data, "a").to_json(), "b").to_json()
    for key in (b"live", b"canonical", b"generation/g", b"takedown/1"):
        with contextlib.suppress(CorruptRecord):
            generations_of({key: data}, "control")
    with contextlib.suppress(CorruptRecord):
        list(decode_verdicts(data, 3))
    with contextlib.suppress(CorruptRecord):
        decode_object(data, "verdicts", 0, 1, "a verdict")
    with contextlib.suppress(CorruptRecord):
        batch_fold.decode_sweep(data)


def article(data: bytes) -> None:
    """A page of some thousand pieces of markup and text: longer than what `html` is given."""
    html(b"".join(_PIECES[byte % len(_PIECES)] for byte in data))


_PIECES = (
    *(b"<p>", b"</p>", b"<div>", b"</div>", b"<a href=/x>", b"</a>", b"<article>", b"</article>", b"<nav>", b"</nav>"),
    *(b"<h1>", b"</h1>", b"<title>", b"</title>", b"<li>", b"<table><tr><td>", b"</table>", b"<br>", b"<b>", b"</b>"),
    *(b"<main>", b"</main>", b"<footer>", b"<!--", b"-->", b"<script>", b"</script>", b"<img src=/a.png>", b"&nbsp;"),
    *(
        b"wool ",
        b"teasel ",
        b"carding of long staple ",
        b"1 ",
        b". ",
        b"\xe7\xbe\x8a\xe6\xaf\x9b",
        b"\xff",
        b"\n\n",
        b"x" * 90,
    ),
    *(b" ".join(b"word%d" % (7 * n) for n in range(60)) + b" ", b" ".join(b"long%d" % n for n in range(400)) + b" "),
)


@contextlib.contextmanager
def _file(data: bytes) -> Iterator[Path]:
    handle, name = tempfile.mkstemp(prefix="neardup-fuzz-", dir=_MEMORY)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        yield Path(name)
    finally:
        os.unlink(name)


_MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None
tempfile.tempdir = _MEMORY  # removing a folder on a disk takes 2.5 ms
_PAGE = sketched(Page("http://a.example/", b"<title>A page</title><p>" + b" ".join(b"w%d" % n for n in range(60))))

TARGETS: dict[str, Callable[[bytes], None]] = {
    target.__name__: target
    for target in (
        html,
        content_type,
        warc_file,
        page_message,
        http_answer,
        chunks,
        encoded_body,
        log_message,
        sketch_record,
        state_rows,
        lines,
        settings_file,
        json_of_ours,
        body_ref,
        wacz,
        parquet,
        json_lines,
        input_file,
        records_of_ours,
        article,
        http_request,
        label_request,
    )
}
