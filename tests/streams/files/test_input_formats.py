"""Every format of input files: how a file is recognised, and its pages from any position on, also after damage."""

import bz2
import csv
import gzip
import io
import json
import lzma
import re
from pathlib import Path
from typing import Any

import pytest

from neardup.errors import BadInput
from neardup.page import Page
from streams.files.csv_rows import CsvRows
from streams.files.input_formats import FORMATS, MAIN_SUFFIXES, SUFFIXES
from streams.files.not_read import NotRead, is_by_product, why_not_read
from streams.files.sources import LocalSource, ReadOptions, open_sources
from streams.formats.compressed import SUFFIXES as COMPRESSIONS
from streams.formats.json import Fields
from tests.streams.archives import Sample, crawl, date, http

BOUND = 10_000
BASE = "http://a.example/"
DOCUMENTS = [
    {"id": str(number), "text": f'line "{number}", a\nline {{2}}: [\\ \u20ac] {"x" * 50}', "lang": "en"}
    for number in range(8)
]


def source_of(path: Path, fields: Fields | None = None) -> LocalSource:
    (source,) = open_sources(path, ReadOptions(fields=fields or Fields()), not_read=NotRead(), body_bytes_max=BOUND)
    return source


def pages_of(path: Path) -> list[Page]:
    """The pages of a file, which are the same from each position on."""
    source = source_of(path)
    pages = list(source.read())
    for number, page in enumerate(pages):
        assert source.read_at(page.coordinates) == page.page
        assert list(source.read(number + 1, page.coordinates.position)) == pages[number + 1 :]
    assert source.problems == []
    return [page.page for page in pages]


def arc(samples: list[Sample], *, version: int = 1) -> list[bytes]:
    """An ARC file, as its records."""
    fields = "URL IP-address Archive-date Content-type Archive-length"
    more = ""
    if version == 2:
        fields = "URL IP-address Archive-date Content-type Result-code Checksum Location Offset Filename Archive-length"
        more = " 200 - - 0 a.arc"
    block = f"{version} 0 Made-By-Hand\n{fields}\n".encode()
    parts = [b"filedesc://a.arc 0.0.0.0 19970616061332 text/plain%s %d\n%s\n" % (more.encode(), len(block), block)]
    for sample in samples:
        content = http(sample.body, status=sample.status)
        moment = date(sample.ms)[:19].translate(str.maketrans("", "", "-:T"))
        head = f"{BASE}{sample.path} 192.0.2.1 {moment} text/html{more} {len(content)}\n"
        parts.append(head.encode() + content + b"\n")
    return parts


def table(rows: list[dict[str, Any]], separator: str = ",", end: str = "\r\n") -> bytes:
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, list(rows[0]), delimiter=separator, lineterminator=end)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


LINES = "".join(json.dumps(one) + "\n" for one in DOCUMENTS).encode()
FORMS = {
    "lines.jsonl": LINES,
    "lines.jl": LINES,
    "lines.json": LINES,
    "lines.json.gz": gzip.compress(LINES),
    "lines.jsonl.bz2": bz2.compress(LINES[:200]) + bz2.compress(LINES[200:]),
    "lines.jsonl.xz": lzma.compress(LINES),
    "array.json": json.dumps(DOCUMENTS).encode(),
    "pretty.json": b"\xef\xbb\xbf" + json.dumps(DOCUMENTS, indent=2).encode(),
    "pretty.json.gz": gzip.compress(json.dumps(DOCUMENTS, indent="\t", ensure_ascii=False).encode()),
    "line-ends.json": json.dumps(DOCUMENTS, indent=1).replace("\n", "\r\n").encode(),
    "one-a-line.json": b"[\n" + b",\n".join(LINES.splitlines()) + b"\n]\n",
    "objects.json": "\n".join(json.dumps(one, indent=2) for one in DOCUMENTS).encode(),
    "named-as-lines.jsonl": json.dumps(DOCUMENTS, indent=2).encode(),
    "table.csv": table(DOCUMENTS),
    "table.csv.gz": gzip.compress(table(DOCUMENTS, end="\n")),
    "table.tsv": table(DOCUMENTS, "\t"),
    "table-of-excel.csv": b"\xef\xbb\xbf" + table(DOCUMENTS, ";"),
    "no-known-name": table(DOCUMENTS),
}


@pytest.mark.parametrize("name", FORMS)
def test_tables_in_every_format_hold_the_same_documents(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(FORMS[name])
    text = b"\xef\xbb\xbf".join([b"", DOCUMENTS[0]["text"].encode()])
    pages = pages_of(tmp_path / name)
    assert [page.problem for page in pages] == [""] * len(DOCUMENTS)
    assert pages[0].body == text
    assert len({page.url for page in pages}) == len(DOCUMENTS)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("name", ["a.arc", "a.arc.gz", "no-known-name", "one-member.arc.gz"])
def test_an_arc_file_holds_the_pages_of_its_records(tmp_path: Path, name: str, version: int) -> None:
    samples = crawl(5)
    data = arc(samples, version=version)
    if name == "a.arc.gz":
        data = [gzip.compress(part) for part in data]
    joined = b"".join(data)
    (tmp_path / name).write_bytes(gzip.compress(joined) if name.startswith("one") else joined)
    pages = pages_of(tmp_path / name)
    assert [(page.url, page.body) for page in pages] == [(BASE + one.path, one.body) for one in samples]
    assert [page.fetched_at for page in pages] == [one.ms // 1000 * 1000 for one in samples]


@pytest.mark.parametrize("wrong", [-2, -1, 1, 2])
@pytest.mark.parametrize("packed", [False, True])
def test_an_arc_version_block_of_a_miscounted_length_costs_no_page(tmp_path: Path, wrong: int, packed: bool) -> None:
    samples = crawl(3)[:3]
    first, *rest = arc(samples)
    head, _, block = first.partition(b"\n")
    length = int(head.split()[-1]) + wrong
    data = head.rpartition(b" ")[0] + b" %d\n" % length + block + b"".join(rest)
    (tmp_path / "a.arc.gz").write_bytes(gzip.compress(data) if packed else data)
    assert [page.url for page in pages_of(tmp_path / "a.arc.gz")] == [
        page.url for page in pages_of(_good_arc(tmp_path, samples))
    ]


def _good_arc(folder: Path, samples: list[Sample]) -> Path:
    (folder / "good.arc").write_bytes(b"".join(arc(samples)))
    return folder / "good.arc"


def test_arc_records_that_are_no_pages_and_urls_with_spaces(tmp_path: Path) -> None:
    answer = http(b"<p>x")
    parts = [
        b"dns:a.example 192.0.2.1 19970616061332 text/dns 3\nabc\n",
        b"http://a.example/a b\xe9 192.0.2.1 199706160613 text/html; charset=x %d\n%s\n" % (len(answer), answer),
        b"http://a.example/undated 192.0.2.1 19971316061332 text/html %d\n%s\n" % (len(answer), answer),
        b"ftp://a.example/f.txt 192.0.2.1 19970616061332 text/plain 3\nabc\n",
    ]
    (tmp_path / "a.arc").write_bytes(arc([])[0] + b"".join(parts))
    pages = pages_of(tmp_path / "a.arc")
    assert [(page.url, page.body, page.fetched_at) for page in pages] == [
        ("http://a.example/a b%E9", b"<p>x", 866_441_580_000),
        ("http://a.example/undated", b"<p>x", None),
        ("ftp://a.example/f.txt", b"abc", 866_441_612_000),
    ]


@pytest.mark.parametrize("packed", [False, True])
def test_an_arc_file_is_read_on_after_damage(tmp_path: Path, packed: bool) -> None:
    parts = arc(crawl(3)[:3])
    parts[2] = parts[2][:40] + b"\0" * 30 + b"\nNote: no record\n"
    (tmp_path / "a.arc.gz").write_bytes(b"".join(map(gzip.compress, parts)) if packed else b"".join(parts))
    source = source_of(tmp_path / "a.arc.gz")
    assert [page.page.url for page in source.read()] == [f"{BASE}page0.html", f"{BASE}page2.html"]
    assert len(source.problems) == 1
    assert "ARC" in str(source.problems[0])


def test_one_object_over_many_lines_is_one_document(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text(json.dumps(DOCUMENTS[0], indent=2))
    assert len(pages_of(tmp_path / "one.json")) == 1


def test_values_of_an_array_that_are_no_documents_are_rejected_each(tmp_path: Path) -> None:
    values: list[Any] = [DOCUMENTS[0], "text, {", 1, None, ["x"], DOCUMENTS[1]]
    (tmp_path / "a.json").write_text(json.dumps(values))
    pages = [page.page for page in source_of(tmp_path / "a.json").read()]
    assert [bool(page.problem) for page in pages] == [False, True, True, True, True, False]


def test_a_value_of_an_array_is_bounded_and_the_next_one_is_read(tmp_path: Path) -> None:
    long = {"id": "x", "text": '\\"' * 3_000_000}
    for name, indent in (("a.json", None), ("b.json", 1)):
        (tmp_path / name).write_text(json.dumps([DOCUMENTS[0], long, DOCUMENTS[1]], indent=indent))
        pages = [page.page for page in source_of(tmp_path / name).read()]
        assert [page.problem[:7] for page in pages] == ["", "a line ", ""]


@pytest.mark.parametrize("first", [b"{", b"[1", b'{"id": "x",', b"}"])
def test_a_line_that_cannot_be_read_costs_no_other(tmp_path: Path, first: bytes) -> None:
    (tmp_path / "a.jsonl").write_bytes(first + b"\n" + LINES)
    pages = [page.page for page in source_of(tmp_path / "a.jsonl").read()]
    assert [bool(page.problem) for page in pages] == [True] + [False] * len(DOCUMENTS)


@pytest.mark.parametrize("cut", [1, 3, 30, 200])
def test_a_cut_array_gives_the_documents_before_and_a_problem(tmp_path: Path, cut: int) -> None:
    data = json.dumps(DOCUMENTS, indent=2).encode()
    (tmp_path / "a.json").write_bytes(data[:-cut])
    source = source_of(tmp_path / "a.json")
    pages = list(source.read())
    assert len(pages) >= len(DOCUMENTS) - 2
    assert [page.page.problem for page in pages] == [""] * len(pages)
    assert len(source.problems) == (cut > 2)


@pytest.mark.parametrize("data", [b'[1, 2, "x"]', b'["url", {"a"', b"[[1, 2], [3, 4]]"])
def test_a_json_file_without_objects_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.json").write_bytes(data)
    with pytest.raises(BadInput, match=r"a\.json: .*no objects"):
        source_of(tmp_path / "a.json")


def test_fields_of_a_table_are_those_of_json_lines(tmp_path: Path) -> None:
    row = {"url": "http://a/", "body": "x", "http_status": "404", "fetched_at": "2020-01-01T00:00:00Z", "score": ""}
    rows = [row, row | {"http_status": "", "fetched_at": "1577836800000", "score": "0.5"}, row | {"score": "high"}]
    (tmp_path / "a.csv").write_bytes(table(rows))
    pages = [page.page for page in source_of(tmp_path / "a.csv").read()]
    assert [(page.status, page.fetched_at, page.score) for page in pages[:2]] == [
        (404, 1_577_836_800_000, None),
        (200, 1_577_836_800_000, 0.5),
    ]
    assert "score is text, and a number is required" in pages[2].problem


@pytest.mark.parametrize("fields", [Fields("text", None), Fields("text", "id"), Fields(None, "id")])
def test_a_document_has_the_fields_of_the_crawler(tmp_path: Path, fields: Fields) -> None:
    of_crawler: list[dict[str, object]] = [
        {"http_status": 404},
        {"http_status": 503, "score": 0.5},
        {"http_method": "HEAD"},
        {"truncated": "disconnect"},
        {"truncated": "length"},
        # of other programs, which mean other things by these names
        {"score": 2.7, "http_status": "good", "http_method": 7, "truncated": True, "content_type": ["a"]},
        {"score": True, "http_status": 200.0, "truncated": "no"},
        {"score": "high", "http_status": True},
    ]
    text = fields.text or "body"
    rows = [{"url": f"http://a/{n}", "id": f"http://a/{n}", text: "x", **more} for n, more in enumerate(of_crawler)]
    rows += [{"url": "http://a/8", "id": "http://a/8", text: None, "http_status": status} for status in (410, 503)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pages = [page.page for page in source_of(tmp_path / "a.jsonl", fields).read()]
    assert [(page.status, page.score, page.truncated, page.problem) for page in pages] == [
        (404, None, False, ""),
        (503, 0.5, False, ""),
        (200, None, False, "answer to HEAD"),
        (200, None, False, "body cut off: disconnect"),
        (200, None, True, ""),
        *[(200, None, False, "")] * 3,
        (410, None, False, ""),
        (200, None, False, f"no {text}"),
    ]
    assert pages[8].body is None


def test_a_row_that_cannot_be_read_costs_no_other(tmp_path: Path) -> None:
    lines = ["id,text", "1,one", "2,two,more", "", "3", '4,"', "x" * 50_000, '"', "5,five", '6,"open', "7,seven"]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    source = source_of(tmp_path / "a.csv")
    pages = [page.page for page in source.read()]
    assert pages[0].problem == ""
    assert "3 fields" in pages[1].problem
    assert pages[2].problem == "no text"
    assert "x" * 50_000 in (pages[3].body or b"").decode()
    assert pages[4].body is not None
    assert pages[4].body.endswith(b"five")
    assert pages[5].problem == "a quote that is not closed"
    assert (pages[6].body or b"").endswith(b"seven")


@pytest.mark.parametrize("count", [10, 3_000])
def test_a_quote_that_is_not_closed_costs_its_row(tmp_path: Path, count: int) -> None:
    (tmp_path / "a.csv").write_text("\n".join(["id,text", '1,"one', *("2," + "two " * 200 for _ in range(count))]))
    pages = [page.page for page in source_of(tmp_path / "a.csv").read()]
    assert "a quote that is not closed" in pages[0].problem
    assert [page.problem for page in pages[1:]] == [""] * count


def test_quotes_that_are_not_closed_cost_no_quadratic_time(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,text\n" + ('1,"' + "x\n" * 6_000) * 9)
    rows = CsvRows(tmp_path / "a.csv", Fields(), 10_000)
    problems = [page.problem for page, _ in rows.read(0)]
    assert sum("a quote that is not closed" in problem for problem in problems) >= 9


def test_text_of_a_table_that_is_no_utf8_keeps_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("id,text\né,Grüße\n".encode("windows-1252"))
    (page,) = [page.page for page in source_of(tmp_path / "a.csv").read()]
    assert page.body == "Grüße".encode("windows-1252")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"1,some words\n2,other words\n", r"no field .* some words; the first row must name the fields"),
        ("id,text\n1,x\n".encode("utf-16"), "UTF-16"),
        (b"id,text\r1,x\r", "carriage return"),
        (b"a" * 70_000, "too long for a header"),
    ],
)
def test_a_table_without_a_header_is_refused(tmp_path: Path, data: bytes, why: str) -> None:
    (tmp_path / "a.csv").write_bytes(data)
    with pytest.raises(BadInput, match=why):
        source_of(tmp_path / "a.csv")


@pytest.mark.parametrize("compress", [bz2.compress, lzma.compress])
def test_a_compressed_file_that_is_cut_or_damaged_gives_a_problem(tmp_path: Path, compress: Any) -> None:
    data = compress(LINES * 40)
    for name, damaged in (("cut", data[:-20]), ("more", data + b"garbage")):
        (tmp_path / f"{name}.jsonl.gz").write_bytes(damaged)  # by its first bytes, whatever the name
        source = source_of(tmp_path / f"{name}.jsonl.gz")
        pages = list(source.read())
        assert (len(pages) == 320 or name == "cut", len(source.problems)) == (True, 1)


def test_an_xz_file_with_a_dictionary_of_gigabytes_is_not_unpacked(tmp_path: Path) -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 29}]
    (tmp_path / "a.jsonl.xz").write_bytes(lzma.compress(LINES, filters=filters))
    source = source_of(tmp_path / "a.jsonl.xz")
    assert list(source.read()) == []
    assert "xz" in str(source.problems[0])


def test_the_page_names_every_suffix_and_every_by_product() -> None:
    page = (Path(__file__).parents[3] / "streams" / "scan" / "scan-a-crawl.md").read_text()
    assert [suffix for suffix in (*MAIN_SUFFIXES, *COMPRESSIONS) if f"`{suffix}`" not in page] == []
    named = [name for part in page.split("\n### ")[1].split("\n* ")[1:] for name in re.findall("`([^`]+)`", part)]
    for name in named:
        whole = (f"a.warc.gz{name}" if name.startswith(".") else name).replace("*", "md5")
        if not whole.endswith((*MAIN_SUFFIXES, "archive/")) or is_by_product(whole):
            assert is_by_product(whole) or "a crawler still writes" in why_not_read(whole), name


def test_no_two_formats_have_one_suffix() -> None:
    assert len(set(SUFFIXES)) == len(SUFFIXES)
    assert all((each.records is None) != (each.rows is None) for each in FORMATS.values())
    assert all((each.rows is None) == (each.names is None) for each in FORMATS.values())
