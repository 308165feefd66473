"""Inputs to begin a search with: what each target reads, well made."""

import bz2
import gzip
import io
import json
import lzma
import random
import tempfile
import zipfile
import zlib
from functools import cache
from pathlib import Path

import duckdb

from neardup.decider import Decider
from neardup.index.rows import ClusterRow, DigestRow, MemberRow, Note, UrlRow
from neardup.page import Page
from neardup.sketch.make_sketches import sketch_pages
from neardup.verdict import Coordinates, Kind, Verdict
from streams.formats.message import (
    Control,
    Decision,
    Message,
    NewDecider,
    encode_control,
    encode_message,
    encode_verdicts,
)
from streams.formats.warc import encode
from streams.ports import Range
from streams.state.checkpoint_manifest import Manifest, StoredFile
from tests.fuzz.targets import DECIDER, SCHEME, SOURCE, TARGETS

_HTML = (
    b"<!doctype html><html lang=en><head><base href='/b/'><title>Wool &amp; silk</title><link rel=canonical href=/c>"
    b"<meta charset=utf-8><meta http-equiv=refresh content='0;url=/x'></head><body><p>Some <b>w</b>ords, caf\xc3\xa9"
    b"<script>if(a<b){}</script><style>p{}</style><!-- no --><img src=a.png><svg><style>x</style></svg><table><tr><td>1"
    b"<template>t</template><textarea>&lt;</textarea><iframe src=//h/x></iframe>\xe4\xb8\xad\xe6\x96\x87 &#x41;&copy;"
)
_HTTP = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=koi8-r\r\n"


def html() -> list[bytes]:
    plain = " ".join(f"word{number}" for number in range(40)).encode()
    return [
        *(_HTML, plain, b"<plaintext>" + plain, b"<p>" * 40, b"&" * 20 + b"<" * 20, b"%PDF-1.4\n\x00\x01", b""),
        b"<base href=//b.example/x/><a href='?q=1&#38;r=&notit;'>&ampx;&#x110000;&#0;&#x80;&NotEqualTilde;</a>",
        b"<frameset><frame src='a.html'><noframes>none</frameset><meta http-equiv='Refresh' content='3; URL=\"/y\"'>",
        b"<title>a</title><svg><title>b</title><![CDATA[ c ]]></svg><math><mi>d</mi></math><xmp><b></xmp><noscript>e",
        b"<!--><!--->x--!><!doctype html><?php ?><!x><a b=c d='e\"f' g>h</a/><br/ i></p x=y><\x00><a\x00b>",
        "<h1>مرحبا\u202eabc\u200b</h1><p>日本語ｶﾅ カナ ไทย \ufeff".encode() + b"\xed\xa0\x80\xf4\x90\x80\x80\xc0\x80",
        b"<meta charset=x-user-defined><meta content='text/html; charset=utf-16' http-equiv=content-type>\x80\xff",
        b"<script><!--<script></script>--></script><style></styl</style><textarea></textare></textarea><select><b>",
    ]


def content_type() -> list[bytes]:
    kinds = [b"text/html; charset=", b"text/plain;charset=", b"application/xhtml+xml; charset="]
    charsets = [
        b"utf-16le",
        b"gb18030",
        b"shift_jis",
        b"big5",
        b"euc-kr",
        b"iso-2022-jp",
        b"windows-874",
        b"koi8-r",
        b"",
    ]
    bodies = [
        _HTML,
        "中文 ไทย привет".encode("gb18030", "replace"),
        b"\xff\xfe<\0p\0>\0",
        b"\x1b$B0!\x1b(B",
        b"\x81\x30\x81\x30",
    ]
    return [kinds[at % 3] + charset + b"\n" + bodies[at % 5] for at, charset in enumerate(charsets)]


def http_answer() -> list[bytes]:
    gzipped = gzip.compress(_HTML, mtime=0)
    return [
        _HTTP + b"Content-Length: 9\r\n\r\n<p>hello\n",
        _HTTP + b"Transfer-Encoding: chunked\r\n\r\n5;a=b\r\n<p>he\r\n4 \r\nllo\n\r\n0\r\nT: x\r\n\r\n",
        _HTTP + b"Content-Encoding: gzip\r\n\r\n" + gzipped,
        _HTTP
        + b"Content-Encoding: deflate, gzip\r\nX:\r\n folded\r\n\tagain\r\n\r\n"
        + gzip.compress(zlib.compress(_HTML), mtime=0),
        _HTTP + b"Transfer-Encoding: gzip, chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(gzipped), gzipped),
        _HTTP + b"Transfer-Encoding: chunked\r\n\r\n1\r\nChapter of wool\r\nmore",
        _HTTP + b"Transfer-Encoding: chunked\r\n\r\n7fffffffffffffff\r\nwool",
        _HTTP + b"Content-Encoding: deflate\r\nContent-Length: 99\r\n\r\nwool</html>",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP 206 Part\r\nContent-Range: bytes 0-3/4\r\n\r\nwool",
        b"ICY 200 OK\r\n\r\nwool",
        b"<p>wool",
        b"HTTP/1.0 404 \r\n\r\n",
        b"HTTP/1.1 301 Moved\nLocation: /x\n\n",
    ]


def warc_file() -> list[bytes]:
    page = Page("http://a.example/", _HTML, "text/html", 1_700_000_000_000)
    record = encode(page, page.url.encode(), False, "").value or b""
    info = b"WARC/1.0\r\nWARC-Type: warcinfo\r\nContent-Length: 3\r\n\r\na:b\r\n\r\n"
    members = gzip.compress(info, mtime=0) + gzip.compress(record, mtime=0)
    return [
        exchanges(),
        info + record,
        record + record,
        members,
        members[:-9] + members,
        record[:200] + b"\r\n\r\n" + info,
    ]


def exchanges() -> bytes:
    """Records of exchanges that name each other, and of an archiver."""
    made = b""
    for number, (kind, content, other) in enumerate(
        (
            ("request", b"HEAD / HTTP/1.1\r\n\r\n", 9),
            ("response", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", 0),
            ("response", b"HTTP/1.1 200 OK\r\n\r\n<p>wool", 3),
            ("request", b"POST / HTTP/1.1\r\n\r\n", 2),
            ("revisit", b"HTTP/1.1 304 Not modified\r\n\r\n", 2),
        )
    ):
        fields = f"WARC-Type: {kind}\r\nWARC-Target-URI: http://a.example/\r\nWARC-Record-ID: <urn:{number}>\r\n"
        fields += f"WARC-Concurrent-To: <urn:{other}>\r\nContent-Type: application/http\r\nWARC-Truncated: length\r\n"
        made += f"WARC/1.1\r\n{fields}Content-Length: {len(content)}\r\n\r\n".encode() + content + b"\r\n\r\n"
    own = (
        b"WARC/1.1\r\nWARC-Type: resource\r\nWARC-Target-URI: urn:text:http://a.example/\r\nContent-Length: 1\r\n\r\nx"
    )
    return made + own


def chunks() -> list[bytes]:
    whole = b"5;a=b\r\n<p>he\r\n4 \r\nllo\n\r\n0\r\nT: x\r\n\r\n"
    packed = gzip.compress(_HTML, mtime=0)
    return [
        *(b"\0" + body for body in (whole, whole[:-9], b"2024\r\nwool", b"1\na\n2\nbc\n", b"f" * 16 + b"\r\n<")),
        *(bytes([first]) + b"%x\r\n%s\r\n0\r\n\r\n" % (len(packed), packed) for first in (1, 2, 3)),
        b"\4" + zlib.compress(_HTML),
    ]


def page_message() -> list[bytes]:
    fields = {"url": "http://a.example/", "content_type": "text/html", "fetched_at": 5, "http_status": 200}
    texts = [
        {**fields, "body": "<p>x"},
        {**fields, "body": {"base64": "PHA+"}},
        {"url": "u", "body": None},
        {"body_ref": "file:///a"},
    ]
    raw = b"\0text/html; charset=utf-8\t200\t5\t\n" + _HTML
    return [
        raw,
        b"\0\t404\n",
        b"\0text/html\t200\t5\t\tHEAD\tlength\n<p>wool",
        *[b"\1" + json.dumps(text).encode() for text in texts],
        *[b"\2" + each for each in warc_file()[:3]],
    ]


def encoded_body() -> list[bytes]:
    raw = zlib.compressobj(wbits=-15)
    deflated = raw.compress(_HTML) + raw.flush()
    zstd = bytes.fromhex("28b52ffd200421000061626364")
    return [
        b"\0" + gzip.compress(_HTML, mtime=0) * 2,
        b"\1" + zlib.compress(_HTML),
        b"\1" + deflated,
        b"\2\x0b\x02\x80<p>x\n\x03",
        b"\3" + zstd,
        b"\6" + _HTML,
    ]


@cache
def sketch_record() -> list[bytes]:
    pages = [Page("http://a.example/", body, fetched_at=5) for body in (*html(), *[None])]
    pages += [Page("http://a.example/b", b"x", status=500), Page("no url", b"", problem="unreadable")]
    at = [Coordinates(SOURCE.hex(), 0, place) for place in range(len(pages))]
    return sketch_pages(pages, SCHEME, coordinates=at, log_times=[9] * len(pages))


def log_message() -> list[bytes]:
    records = sketch_record()
    scheme = bytes.fromhex(SCHEME.digest)
    other = Decider(scheme=SCHEME.digest, tape_min=0.8)
    return [
        encode_message(Message(scheme, (Range(SOURCE, 0, 0, len(records)),), tuple(records))),
        encode_message(Message(scheme, (Range(SOURCE, 0, 0, 4), Range(SOURCE, 1, 0, 2)), ())),
        encode_control(Control(scheme, Decision.ACCEPT_GAP, 2)),
        encode_control(NewDecider(DECIDER, other)),
    ]


def state_rows() -> list[bytes]:
    return [
        UrlRow(1, 1, 1, Kind.UNIQUE, 5, 5).encode(),
        UrlRow(1, 0, 0, Kind.GONE, 5, 5, (Note(1, 0, 5, 6, b"d" * 16, 7, b"c" * 48),) * 2).encode(),
        ClusterRow(1, b"u" * 16, 1, 2, 3, 0, bytes(16), "http://a.example/é").encode(),
        ClusterRow(1, b"u" * 16, 1, 2, 3, 0, bytes(16), "", 7).encode(),
        MemberRow(1, b"u" * 16).encode(),
        DigestRow(2, 1, 2, 9, (1, 2)).encode(),
    ]


def _verdict() -> bytes:
    return Verdict(
        verdict=Kind.UNIQUE,
        page_id=1,
        n=0,
        url="http://a.example/",
        fetched_at=5,
        coordinates=Coordinates(SOURCE.hex(), 0, 1),
        scheme=SCHEME.digest,
        decider=DECIDER.digest,
    ).to_json()


def lines() -> list[bytes]:
    verdict = _verdict()
    other = verdict.replace(b'"offset":1', b'"offset":2')
    label = b'{"a": "http://a.example/", "b": "http://b.example/", "label": "duplicate"}'
    result = b'{"url": "http://a.example/", "body": "<p>x", "query": "wool", "lang": "en", "rendered": "<p>y"}'
    return [verdict + b"\n" + other, label, result, b'{"verdict": "unique"}']


def settings_file() -> list[bytes]:
    return [
        b'bootstrap = "b:9092"\nbatch_pages = 5\n[kafka]\n"security.protocol" = "SSL"\n[decider]\ntape_min = 0.8\n',
        b"0x0123456789abcdef\n",
        b"18446744073709551615",
        b'seed_file = "/dev/null"\nsites = {"a.example" = {never_merge = true}}\n',
    ]


def json_of_ours() -> list[bytes]:
    model = b'{"version": 1, "signals": ["b"], "tree": {"duplicate": true}, "rules": [], "idf": {}, "by": "tree"}'
    return [DECIDER.to_json().encode(), SCHEME.to_json().encode(), model]


def body_ref() -> list[bytes]:
    ok = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwool"
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4;x=y\r\nwool\r\n0\r\nT: x\r\n\r\n"
    statuses = [b"HTTP/1.0 %d Some words\r\nLocation: /x\r\n\r\n" % status for status in (100, 302, 404, 429, 500)]
    return [
        *(b"a/b.html\n" + answer for answer in (ok, chunked, *statuses, b"", b"wool\r\n", ok[:-2])),
        *(rest + b"\n" + ok for rest in (b"a b", b"%2e%2e/x", b"a%00", b"..\\x", b"a?b#c", b"\xff@x:y@z/", b"")),
        b"a\nHTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 101 + b"\r\n",
    ]


def wacz() -> list[bytes]:
    out = []
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w", method) as packed:
            for folder in "ab":
                packed.writestr(f"archive/{folder}/x.warc", warc_file()[0])
            packed.writestr("datapackage.json", "{}")
        out.append(made.getvalue())
    return out


def parquet() -> list[bytes]:
    with duckdb.connect() as database, tempfile.TemporaryDirectory() as folder:
        columns = "'http://a.example/' || i AS url, '<p>wool ' || i AS body, 200 AS http_status, i * 1000 AS fetched_at"
        out = []
        for codec in ("snappy", "zstd", "uncompressed"):
            path = Path(folder) / codec
            how = f"(FORMAT parquet, COMPRESSION {codec})"
            database.execute(f"COPY (SELECT {columns} FROM range(5) rows(i)) TO '{path}' {how}")
            out.append(path.read_bytes())
    return out


def json_lines() -> list[bytes]:
    return [b"\n".join(one[1:] for one in page_message() if one[:1] == b"\1"), b'{"id": 5, "text": "<p>"}\n\n[]\n{']


def input_file() -> list[bytes]:
    rows = [{"id": number, "text": f'<p> "{number}", {{\n[é\\'} for number in range(3)]
    table = b'id,text\r\n1,"a ""b"",\r\nc"\r\n2,\xff\r\n\r\n3,"open\r\n4,x,y\r\n'
    answer = b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n<p>x"
    head = b"filedesc://a.arc 0.0.0.0 19970616061332 text/plain 12\n1 0 By-Hand\n\n\n"
    arc = b"http://a.example/%d b 192.0.2.1 19970616061332 text/html %d\n%s\n"
    records = [head, *(arc % (number, len(answer), answer) for number in range(3))]
    plain = [json.dumps(rows, indent=2).encode(), json.dumps(rows[0], indent=1).encode(), table, b"".join(records)]
    return [
        *(plain + json_lines()),
        *(compress(plain[0]) for compress in (gzip.compress, bz2.compress, lzma.compress)),
        b"".join(map(gzip.compress, records)),
    ]


def records_of_ours() -> list[bytes]:
    manifest = Manifest(5, 6, "s", "d", "l", "1.0", (StoredFile("index/1.sst", 3, "00"),))
    verdict = _verdict()
    values: list[dict[str, object]] = [
        {"format": 1, "generation": "g", "before": None, "since_ms": 5},
        {"format": 1, "policy": "shortest"},
        {"format": 1, "what": "url", "hash": "00" * 16, "length": 16},
        {"format": 1, "name": "g", "archives": [], "stage": "filling", "scheme": "s", "decider": "d"},
    ]
    return [
        manifest.to_json(),
        encode_verdicts(SOURCE, verdict + b"\n"),
        verdict,
        *(json.dumps(one).encode() for one in values),
    ]


def article() -> list[bytes]:
    chance = random.Random(1)
    return [chance.randbytes(size) for size in (40, 200, 1_000, 4_000)]


def http_request() -> list[bytes]:
    url = b"https://www.site1.example/1"
    pages = (
        b"",
        b"overview.json",
        b"views.css",
        b"sites?from=5",
        b"rejects",
        b"health",
        b"audits.json",
    )
    asked = (b"url?url=" + url, b"cluster?id=3", b"site?name=site1.example&count=5", b"close?below=0.9&from=1")
    return [
        *(b"\0" + page for page in (*pages, *asked, b"compare?a=" + url + b"&b=" + url, b"own.json")),
        *(b"\0own-rows.json?table=" + table + b"&key=x" for table in (b"urls", b"none")),
        b"\3send-again\nform_token=x&reason=y&page_id=5",
        b"\3label/say\npair=x",
        b'\3send-again\n\3--b\r\nContent-Disposition: form-data; name="reason"\r\n\r\nx\r\n--b--\r\n',
    ]


def label_request() -> list[bytes]:
    values = b"token=TOKEN&labeller=ana&place=0&judgement="
    return [
        *(
            b"\0" + page
            for page in (b"", b"pair?labeller=ana", b"pair?labeller=ana&place=2", b"page?place=0&of=b", b"label.js")
        ),
        *(b"\3label\n" + values + judgement for judgement in (b"duplicate&reasons=title", b"distinct", b"none")),
        *(b"\3undo\ntoken=TOKEN&labeller=" + who for who in (b"ana", b"%00", b"", b"%ff")),
    ]


SEEDS = {name: globals()[name] for name in TARGETS}
