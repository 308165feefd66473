import random
import time
import tracemalloc
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from neardup.kernels import batch as batches
from neardup.kernels.sniffing import is_utf8
from neardup.page import Page
from neardup.scheme import Scheme
from neardup.sketch.make_sketches import sketch_pages
from neardup.text import decoding
from neardup.text.charset import LATE_BYTES
from neardup.text.decoding import HTML, PLAIN, Decoded, decode, decode_into
from tests.neardup.hostile import EXAMPLES, JIT_OFF
from tests.oracle.text import valid_utf8

SCHEME = Scheme(seed=7)


class SimpleBatch(NamedTuple):
    """What `decode_into` needs of a batch."""

    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    modes: npt.NDArray[np.int64]
    buffer: npt.NDArray[np.uint8]


RUSSIAN = "Съешь ещё этих мягких французских булок, да выпей чаю. Мощный толчок подъёму сельского хозяйства. "
FRENCH = "Voilà où les élèves étudiaient déjà à côté de l'hôpital, être ou ne pas être. "
JAPANESE = "日本語の文章を判定するための試験です。これは非常に重要な機能であり、多くのページで使われています。"


def page(text: str, head: str = "") -> str:
    return f"<html><head>{head}<title>{text[:9]}</title></head><body><p>{text}</p></body></html>"


def text_of(body: bytes, content_type: str = "text/html") -> str:
    return decode(body, content_type).utf8.decode("utf-8", "replace")


def test_utf8_and_ascii_pass_unchanged() -> None:
    damaged = b"<p>caf\xc3\xa9 \xff\xfe broken \xe2\x82</p>"
    assert decode(damaged, "text/html; charset=utf-8").utf8 is damaged
    ascii_only = b"<p>plain</p>"
    assert decode(ascii_only, "text/html; charset=windows-1251").utf8 is ascii_only
    assert decode(ascii_only, "text/html").charset == "utf-8"


@pytest.mark.parametrize(
    ("mark", "codec", "charset"),
    [
        (b"\xef\xbb\xbf", "utf-8", "utf-8"),
        (b"\xff\xfe", "utf-16-le", "utf-16le"),
        (b"\xfe\xff", "utf-16-be", "utf-16be"),
    ],
)
def test_a_byte_order_mark_beats_header_and_meta(mark: bytes, codec: str, charset: str) -> None:
    text = page(JAPANESE, '<meta charset="koi8-r">')
    decoded = decode(mark + text.encode(codec), "text/html; charset=windows-1252")
    assert (decoded.charset, decoded.mode, decoded.utf8.decode()) == (charset, HTML, text)


@pytest.mark.parametrize(
    ("header", "head", "codec", "charset"),
    [
        ("text/html; charset=windows-1251", '<meta charset="utf-8">', "cp1251", "windows-1251"),
        ('Text/HTML;level=1;CharSet="KOI8-R"', "", "koi8-r", "koi8-r"),
        ("text/html; charset=no-such-thing", '<meta charset="windows-1251">', "cp1251", "windows-1251"),
        ("text/html", "<META CHARSET=windows-1251>", "cp1251", "windows-1251"),
        ("text/html", "<meta name=x content='a' /><meta\ncharset = 'cp1251'/>", "cp1251", "windows-1251"),
        (
            "text/html",
            '<meta content="text/html; charset=koi8-r" http-equiv=Content-Type>',
            "koi8-r",
            "koi8-r",
        ),
        ("text/html", '<!-- <meta charset="utf-8"> --><meta charset="koi8-r">', "koi8-r", "koi8-r"),
        ("text/html", "<a title='<meta charset=utf-8>'><meta charset=koi8-r>", "koi8-r", "koi8-r"),
        # without the pragma a content attribute claims nothing
        ("text/html", '<meta content="x; charset=utf-8"><meta charset="koi8-r">', "koi8-r", "koi8-r"),
        ("text/html", '<meta charset="no-such"><meta charset="koi8-r">', "koi8-r", "koi8-r"),
        ("text/html", '<meta charset="utf-16">', "utf-8", "utf-8"),
        ("text/html", '<meta charset="x-user-defined">', "cp1251", "windows-1252"),
    ],
)
def test_header_then_meta(header: str, head: str, codec: str, charset: str) -> None:
    text = page(RUSSIAN, head)
    decoded = decode(text.encode(codec), header)
    assert decoded.charset == charset
    if charset != "windows-1252":
        assert decoded.utf8.decode() == text


def test_a_late_meta_counts_where_nothing_else_decides() -> None:
    """Detection cannot know a title of three words; another claim, and UTF-8, come first."""
    head = "<!-- " + "x" * 1024 + " --><meta charset=koi8-r>"
    late = page("Эта и та", head)
    assert decode(late.encode("koi8-r"), "text/html") == Decoded(late.encode(), "koi8-r", HTML)
    assert decode(late.encode("cp1251"), "text/html; charset=cp1251").charset == "windows-1251"
    assert decode(late.encode(), "text/html").charset == "utf-8"
    cut = b"<p>" + b"x" * 1005 + b"<meta charset=koi8-r>"
    assert decode(cut + RUSSIAN.encode("koi8-r"), "text/html").charset == "koi8-r"
    far = b"<p>" + b"x" * LATE_BYTES + b"<meta charset=koi8-r>"
    assert decode(far + RUSSIAN.encode("cp1251"), "text/html").charset == "windows-1251"


@pytest.mark.parametrize("header", ["text/html; charset=utf-8", "text/html", "application/xhtml+xml"])
@pytest.mark.parametrize(
    ("codec", "text", "charset"),
    [
        ("cp1251", RUSSIAN, "windows-1251"),
        ("koi8-r", RUSSIAN, "koi8-r"),
        ("cp1252", FRENCH, "windows-1252"),
        ("cp932", JAPANESE, "shift_jis"),
        ("euc-jp", JAPANESE, "euc-jp"),
    ],
)
def test_a_claim_of_utf8_that_fails_is_none(header: str, codec: str, text: str, charset: str) -> None:
    """As UTF-8, all letters of such a page are one U+FFFD, and two of its pages exact duplicates."""
    body = page(text * 3, '<meta charset="utf-8">').encode(codec)
    decoded = decode(body, header)
    assert decoded.charset == charset
    assert text in decoded.utf8.decode()


def test_short_titles_under_a_wrong_claim_stay_different() -> None:
    for titles in (["Иван", "Пётр", "Олег", "Анна"], ["Лев", "Яна", "Том", "Ида"], ["Ли", "Ян"]):
        texts = {text_of(page(one).encode("cp1251"), "text/html; charset=utf-8") for one in titles}
        assert len(texts) == len(titles)
    assert decode(b"<p>caf\xe9 noir", "text/html; charset=utf-8").utf8 == "<p>café noir".encode()


def test_a_claim_stands_with_a_few_invalid_bytes() -> None:
    for body in ("<p>naïve".encode() + b" one \xe9 two \xff\xfe", page(RUSSIAN * 3).encode() + b"\xff" * 10):
        assert decode(body, "text/html; charset=utf-8") == Decoded(body, "utf-8", HTML)
    cut = page(RUSSIAN * 3).encode("euc-jp", "replace")[:-20] + b"\xff\xff"
    assert decode(cut, "text/html; charset=euc-jp").charset == "euc-jp"


@pytest.mark.parametrize(
    "header", ["charset=iso-8859-1", "charset=us-ascii", "charset=gbk", "charset=koi8-r", "charset=big5"]
)
@pytest.mark.parametrize("text", [RUSSIAN, FRENCH, JAPANESE])
def test_utf8_under_another_claim_is_utf8(header: str, text: str) -> None:
    body = page(text).encode()
    assert decode(body, f"text/html; {header}") == Decoded(body, "utf-8", HTML)
    body = page(text, f"<meta {header}>").encode()
    assert decode(body, "text/html") == Decoded(body, "utf-8", HTML)
    cut = body[: body.rindex(b"\xe2\x80\x99") + 1] if b"\xe2\x80\x99" in body else body
    assert decode(cut, "text/html").charset == "utf-8"


def test_few_characters_are_not_certain_to_be_utf8() -> None:
    """Two of windows-1252 that happen to be valid; two Chinese words of GBK whose bytes are Cyrillic in UTF-8."""
    assert decode("<p>Â«".encode("cp1252"), "text/html; charset=iso-8859-1").charset == "windows-1252"
    chinese = b"<p>" + b"\xd0\xb0" * 5
    assert decode(chinese, "text/html; charset=gbk").charset == "gbk"
    assert decode(chinese, "text/html; charset=koi8-r").charset == "utf-8"


@pytest.mark.parametrize(
    ("claims", "codec", "charset"),
    [
        ("shift_jis", "euc-jp", "euc-jp"),
        ("euc-jp", "cp932", "shift_jis"),
        ("iso-2022-jp", "cp932", "shift_jis"),
        ("euc-kr", "cp932", "shift_jis"),
    ],
)
def test_a_claim_of_a_wide_charset_that_fails_is_none(claims: str, codec: str, charset: str) -> None:
    text = page(JAPANESE * 3)
    assert decode(text.encode(codec), f"text/html; charset={claims}") == Decoded(text.encode(), charset, HTML)


def test_the_next_claim_counts_where_one_fails() -> None:
    text = page("Эта и та, и другая", "<meta charset=koi8-r>")
    body = text.encode("koi8-r")
    for header in ("text/html; charset=utf-8", "text/html; charset=utf-8; charset=koi8-r", "text/html; charset=utf-16"):
        assert decode(body, header) == Decoded(text.encode(), "koi8-r", HTML)
    assert decode(b"\xef\xbb\xbf" + body, "text/html").charset == "koi8-r"
    assert decode(page(RUSSIAN).encode("cp1251"), "text/html; charset=utf-8; charset=euc-jp").charset == "windows-1251"


@pytest.mark.parametrize("mark", [b"\xff\xfe", b"\xfe\xff"])
def test_ascii_behind_a_mark_of_utf16_is_ascii(mark: bytes) -> None:
    body = page("only ascii in this one").encode()
    assert decode(mark + body, "text/html") == Decoded(body, "utf-8", HTML)


PARTS_OF_UTF8 = [
    *(
        b"a",
        "é".encode(),
        "漢".encode(),
        "😀".encode(),
        b"\xe0\xa0\x80",
        b"\xed\x9f\xbf",
        b"\xf0\x90\x80\x80",
        b"\xf4\x8f\xbf\xbf",
    ),
    *(
        b"\xc0\x80",
        b"\xc1\xbf",
        b"\xe0\x9f\xbf",
        b"\xed\xa0\x80",
        b"\xf0\x8f\xbf\xbf",
        b"\xf4\x90\x80\x80",
        b"\xf5\x80\x80\x80",
    ),
    *(b"\xe2\x82", b"\xf0\x9f", b"\x80", b"\xff"),
]


@pytest.mark.kernel
@settings(max_examples=3 * EXAMPLES, deadline=None)
@given(
    st.lists(
        st.sampled_from(PARTS_OF_UTF8[:8]) | st.sampled_from(PARTS_OF_UTF8) | st.binary(max_size=4), max_size=8
    ).map(b"".join),
    st.integers(0, 70),
    st.integers(0, 70),
)
def test_valid_utf8_is_that_of_the_standard(piece: bytes, before: int, after: int) -> None:
    body = b"x" * before + piece + b"y" * after
    buffer = np.frombuffer(b"\xff" + body + b"\x80" * 64, np.uint8)
    assert bool(is_utf8(buffer, 1, 1 + len(body))) == valid_utf8(body)


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    st.lists(
        st.sampled_from(PARTS_OF_UTF8) | st.sampled_from([b"<p>", b"<meta charset=gbk>", RUSSIAN.encode("cp1251")]),
        max_size=9,
    ).map(b"".join),
    st.sampled_from(
        ["text/html; charset=utf-8", "text/html", "text/plain; charset=utf-8", "text/html; charset=gbk", ""]
    ),
)
def test_a_batch_is_decoded_as_each_body(body: bytes, content_type: str) -> None:
    """The kernel finds the bodies that need no decoding; all others take the slow way."""
    batch = SimpleBatch(*(np.zeros(1, np.int64) for _ in range(3)), np.zeros(0, np.uint8))
    made, _ = decode_into(batch, [body], [content_type], 0, 1 << 20)  # type: ignore[arg-type, type-var]
    alone = decode(body, content_type, 1 << 20)
    assert made.buffer[made.starts[0] : made.ends[0]].tobytes() == alone.utf8
    assert (made.modes[0] == batches.OPAQUE) == alone.opaque
    assert alone.opaque or made.modes[0] == alone.mode


def test_xml_declares_its_encoding_or_is_utf8() -> None:
    body = f"<?xml version='1.0' encoding='koi8-r'?><r>{RUSSIAN}</r>".encode("koi8-r")
    assert decode(body, "application/xhtml+xml").charset == "koi8-r"
    assert decode(b"<r>\xc3\xa9\xe9\xe9</r>", "application/rss+xml").charset == "utf-8"
    assert decode(b"<r>\xe9\xe9\xe9\xe9\xe9</r>", "application/rss+xml").charset == "windows-1252"


def test_plain_text_makes_no_claims() -> None:
    decoded = decode(b"<meta charset=koi8-r> caf\xc3\xa9", "text/plain")
    assert (decoded.charset, decoded.mode) == ("utf-8", PLAIN)


@pytest.mark.parametrize(
    ("text", "codec", "charset"),
    [
        (RUSSIAN, "cp1251", "windows-1251"),
        (RUSSIAN, "koi8-r", "koi8-r"),
        (FRENCH, "cp1252", "windows-1252"),
        (JAPANESE, "cp932", "shift_jis"),
        (JAPANESE, "euc-jp", "euc-jp"),
        (JAPANESE, "iso2022_jp", "iso-2022-jp"),
        ("这是一个用于测试字符集检测的中文文档。我们希望它能够正确地识别出来。", "gbk", "gb18030"),
        ("이것은 문자 집합 감지를 시험하기 위한 한국어 문서입니다.", "cp949", "euc-kr"),
    ],
)
def test_detection(text: str, codec: str, charset: str) -> None:
    text = page(text * 3)
    decoded = decode(text.encode(codec), "text/html")
    assert (decoded.charset, decoded.utf8.decode()) == (charset, text)


def test_a_few_bytes_beyond_ascii_are_windows_1252() -> None:
    assert text_of(b"<p>caf\xe9 \x80 5</p>") == "<p>caf\u00e9 \u20ac 5</p>"


def test_utf8_with_a_damaged_place_stays_utf8() -> None:
    body = page(RUSSIAN * 3).encode()
    assert decode(body[:-20] + b"\xff", "text/html").charset == "utf-8"
    cut = body.index("й".encode()) + 1
    assert decode(body[:cut], "text/html").charset == "utf-8"


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("header", ["text/html", "text/html; charset=utf-8", "text/html; charset=utf-16", ""])
def test_utf16_without_a_mark(codec: str, header: str) -> None:
    for text in (page(JAPANESE * 3), page("only ascii in this one")):
        decoded = decode(text.encode(codec), header)
        assert (decoded.utf8.decode(), decoded.mode, decoded.opaque) == (text, HTML, False)


def test_a_lying_utf16_header_is_ignored() -> None:
    assert text_of(b"<p>plain ascii</p>", "text/html; charset=utf-16") == "<p>plain ascii</p>"


def test_lone_surrogates_become_replacement_characters() -> None:
    body = b"\xff\xfe" + b"a\x00\x00\xd8b\x00\x00\xdc\x3d\xd8\x00\xde\x00\xd8z"
    assert text_of(body) == "a\ufffdb\ufffd\U0001f600\ufffd"


@pytest.mark.parametrize("charset", ["shift_jis", "gbk", "big5", "euc-kr", "euc-jp", "gb18030", "iso-2022-jp"])
def test_undecodable_bytes_are_replaced(charset: str) -> None:
    body = b"<p>one \x81\xff\x1b$B two</p><p>\xff"
    text = text_of(body, f"text/html; charset={charset}")
    assert "one" in text
    assert "\ufffd" in text


@pytest.mark.parametrize("content_type", ["application/pdf", "image/png", "application/octet-stream", "video/mp4"])
def test_neither_html_nor_text_is_opaque(content_type: str) -> None:
    body = b"\xef\xbb\xbf<html>looks like HTML</html>"
    decoded = decode(body, content_type)
    assert decoded.opaque
    assert decoded.utf8 is body


@pytest.mark.parametrize(
    "body",
    [
        b"%PDF-1.4 \n1 0 obj",
        b"\x89PNG\r\n\x1a\n",
        b"GIF89a...",
        b"PK\x03\x04....",
        b"\x1f\x8b\x08\x00",
        b"RIFF\x24\x00\x00\x00WEBPVP8 ",
        bytes(range(256)) * 4,
        b"<html>" + bytes(range(32)) * 4,
        b"\xef\xbb\xbf" + bytes(range(256)) * 4,
    ],
)
@pytest.mark.parametrize("content_type", ["text/html", "", "text/plain; charset=utf-16"])
def test_binary_served_as_text_is_opaque(body: bytes, content_type: str) -> None:
    decoded = decode(body, content_type)
    assert decoded.opaque
    assert decoded.utf8 == body


@pytest.mark.parametrize(
    "body",
    [
        b"a\x00b",
        b"\x00<p>x</p>",
        b"<p>padded</p>" + b"\x00" * 1000,
        b"<p>\x01\x02\x03 some \x04 controls</p>",
        b"FWS is no film",
        b"",
        b"\x00" * 100,
    ],
)
def test_stray_control_bytes_are_not_binary(body: bytes) -> None:
    decoded = decode(body, "text/html")
    assert not decoded.opaque
    assert decoded.utf8 == body


@pytest.mark.parametrize(
    ("body", "mode"),
    [
        (b"<!DOCTYPE html><p>x", HTML),
        (b"\n\n <html>", HTML),
        (b"<?xml version='1.0'?><html/>", HTML),
        (b"words before <p>markup</p>", HTML),
        (b"just words, 3 < 4, <someone@example.com>", PLAIN),
        (b"", PLAIN),
    ],
)
@pytest.mark.parametrize("content_type", ["", "*/*", "unknown/unknown", "html", ";charset=utf-8"])
def test_without_a_type_the_bytes_decide(body: bytes, mode: int, content_type: str) -> None:
    assert decode(body, content_type).mode == mode


@given(
    st.binary(max_size=300) | st.text(max_size=100).map(lambda text: text.encode("utf-16", "surrogatepass")),
    st.sampled_from(["", "text/html", "text/xml", "text/plain", "text/html; charset=", "image/png"])
    | st.sampled_from(["utf-16", "gbk", "hz", "iso-2022-kr", "x-user-defined", "utf-7", "ibm866", "big5"]).map(
        "text/html; charset={}".format
    )
    | st.text(max_size=30),
)
def test_never_raises(body: bytes, content_type: str) -> None:
    decoded = decode(body, content_type)
    assert decoded.mode in (HTML, PLAIN)
    assert decoded.opaque == (decoded.charset == "")


@given(st.lists(st.sampled_from([b"<meta ", b"charset=", b"'", b'"', b">", b"<!--", b"-->", b"=", b"/", b"x"])))
def test_prescan_survives_broken_markup(pieces: list[bytes]) -> None:
    assert not decode(b"".join(pieces), "text/html").opaque


@pytest.mark.parametrize("charset", ["windows-1252", "gbk", "big5", "shift_jis", "euc-kr", "utf-16le", "koi8-r", ""])
@pytest.mark.parametrize("unit", [b"\x81", b"\xff", b"\x00\xd8", b"\xe4\xb8", b"\x1b$B"])
def test_hostile_bodies_of_a_megabyte_end(charset: str, unit: bytes) -> None:
    body = b"\xff\xfe" * (charset == "utf-16le") + b"<p>text of a page</p>" * 500 + unit * (1_000_000 // len(unit))
    decoded = decode(body, f"text/html; charset={charset}")
    assert len(decoded.utf8) <= 3 * len(body)


CHARSETS = ["windows-874", "windows-1252", "koi8-r", "shift_jis", "gb18030", "big5", "euc-kr", "euc-jp", "iso-2022-jp"]
PIECES = [
    b"\xa1\xd2",
    b"\x82\xa0",
    b"\xb1",
    b"\xff",
    b"\x81",
    b"\x1b$B0!",
    b"\x1b(B",
    b"\x8f\xb0\xa1",
    b"\x81\x30\x81\x30",
    b"a",
]


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    st.lists(st.sampled_from(PIECES) | st.binary(max_size=3), max_size=30).map(b"".join),
    st.sampled_from(CHARSETS),
    st.integers(0, 120),
    st.sampled_from([2, 4, 14]),
)
@example(b"\x1b$" + b"\xa1\xd2" * 5, "iso-2022-jp", 0, 2)
def test_a_body_is_transcoded_in_pieces_up_to_a_bound(body: bytes, charset: str, bytes_max: int, piece: int) -> None:
    codec = {"gb18030": "gb18030", "shift_jis": "cp932", "euc-kr": "cp949", "big5": "big5hkscs", "windows-874": "cp874"}
    whole = body.decode(codec.get(charset, charset), "replace").encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoding, "_PIECE_BYTES", piece)
        utf8, cut = decoding._transcode(body, charset, bytes_max)
    if body.isascii() and charset != "iso-2022-jp":
        assert (utf8, cut) == (body, False)
        return
    assert cut == (len(whole) > bytes_max)
    assert whole.startswith(utf8)
    assert len(utf8) <= bytes_max or not cut
    assert len(whole) - len(utf8) < 4 or len(utf8) > bytes_max - 4
    utf8.decode()


def test_gbk_has_every_character_of_gb18030() -> None:
    text = "".join(map(chr, [*range(0x80, 0xD800), *range(0xE000, 0x110000, 7)]))
    assert decoding._transcode(text.encode("gb18030"), "gbk", 1 << 24) == (text.encode(), False)


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    st.lists(st.sampled_from([0x41, 0x0E01, 0xD83D, 0xDE00, 0xDC00, 0xFFFF]), max_size=30),
    st.booleans(),
    st.integers(0, 90),
)
def test_utf16_in_pieces_keeps_its_pairs(units: list[int], little: bool, bytes_max: int) -> None:
    order, charset = ("little", "utf-16le") if little else ("big", "utf-16be")
    body = b"".join(unit.to_bytes(2, order) for unit in units)
    whole = decoding._from_utf16(body, charset).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoding, "_PIECE_BYTES", 4)
        utf8, cut = decoding._transcode(body, charset, bytes_max)
    assert (utf8, cut) == (whole, False) if len(whole) <= bytes_max else whole.startswith(utf8) and cut


@pytest.mark.parametrize(
    ("byte", "charset"), [(0xA1, "windows-874"), (0xB1, "shift_jis"), (0xFF, "euc-jp"), (0x80, "windows-1252")]
)
def test_decoding_text_that_triples_as_utf8_has_bounded_memory(byte: int, charset: str) -> None:
    """One byte that becomes three: 10 MB once took 30 MB of UTF-8, of a text of 20 MB, and the tokens of all of it."""
    body = bytes([byte]) * 1_000_000
    decode(body[:1000], f"text/html; charset={charset}", 1000)
    tracemalloc.start()
    try:
        decoded = decode(body, f"text/html; charset={charset}", len(body))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert decoded.cut
    assert len(body) - 3 < len(decoded.utf8) <= len(body)
    assert peak < 3 * len(body)


HIGH = bytes(0x80 | byte for byte in random.Random(1).randbytes(200_000))
#: Random bytes at which each decoder takes its slow paths.
SLOWEST = {
    **{f"text/html; charset={name}": HIGH for name in ("gb18030", "shift_jis", "big5", "euc-jp", "euc-kr", "utf-7")},
    "text/html; charset=iso-2022-jp": b"\x1b$B\x1b(B" * 33_000,
    "text/html; charset=big5": b"\x81a" * 100_000,
    "text/html": b"\xff\xfe" + random.Random(1).randbytes(200_000),
    "text/plain": HIGH,
}


def fastest_s(body: bytes, content_type: str) -> float:
    """CPU seconds of a page's sketch, of five tries."""
    out = []
    for _ in range(5):
        began = time.process_time()
        sketch_pages([Page("http://a.example/", body, content_type)], SCHEME)
        out.append(time.process_time() - began)
    return min(out)


@pytest.mark.skipif(JIT_OFF, reason="compiled kernels are meant")
def test_no_charset_makes_bytes_much_slower_than_the_slowest_of_utf8() -> None:
    """Random Chinese is the slowest of UTF-8, as each character makes a token: legacy charsets took 1.4 of it."""
    chance = random.Random(1)
    chinese = "".join(chr(chance.randrange(0x4E00, 0x9FA5)) for _ in range(66_000)).encode()
    most = fastest_s(chinese, "text/html; charset=utf-8")
    for content_type, body in SLOWEST.items():
        assert fastest_s(body, content_type) < 4 * most, content_type
