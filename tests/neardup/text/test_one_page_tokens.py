"""Token strings, fingerprints and flags against plain Python."""

import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.kernels.composition import CLUSTER_POINTS, may_join
from neardup.kernels.fingerprint import KEY_WORDS
from neardup.kernels.html import text_bytes_needed
from neardup.kernels.tokens import tokenise, tokens_needed
from neardup.scheme import Scheme
from neardup.text import unicode
from neardup.text.one_page_html import extract_page
from neardup.text.one_page_tokens import ALL_DIGITS, ANY_DIGIT, IN_LINK, IN_TITLE, TERM, tables, tokens_of, words
from tests.neardup.hostile import EXAMPLES, needs_jit
from tests.oracle import sketches
from tests.oracle import text as oracle

pytestmark = [pytest.mark.kernel, pytest.mark.filterwarnings("ignore:overflow")]

KEY = Scheme(seed=5).constants("token", KEY_WORDS)
ALPHABET = "aZ09 .-_éÉßẞİıΣςЖ漢字々〇ひカーｶﾞไทย๑ລາວខ្មម်မန٣०\u0301\u200d\ufe0f😀ȺȾⱥKÅ𐐀𝟘" + "\u3099\x7f\xa0\x85"
ALPHABET += "\xad\u200b\u2060\u034f\u3164\U000e0100\U000e0041ﬁ½⒇㈠ﻻﷺ㍿ำǅＡ𝐳㋿£´²" + "\0\1\x0b\x9f"
MARKED = "eiouâấǖếạI\u0301\u0302\u0323\u0307\u0308\u0304\u031b\u0344\u0345αάΐᾳ" + "=<\u0338"
MARKED += (
    "ㄱㅏᄀ가각\u1161\u11a8ᅟﾡￂ"
    + "かガｶﾞ\u3099ﾟ"
    + "نरऩ\u093c\u094d\u0947क़ক\u09c7\u09be\u09d7\u0bc6\u0bbe\u0cbf\u0cc6\u0cc2\u0cd5ෙ\u0dca\u0dcf"
)
MARKED += "اأآإٱوؤيئىیكکهہۀەة\u0654\u0653\u0655\u064e\u0651ـ٠۹ﻻﹰﹱﱞ" + "שָׁﬡשׁ\u05c1\u05b8" + "ßẞςΣıİ９१"
letters = st.one_of(st.sampled_from(ALPHABET), st.sampled_from(MARKED), st.sampled_from("ab cd"))
texts = st.text(letters, max_size=200)


def plain_words(text: str) -> list[str]:
    return words(text.encode(), mode=1)


@settings(max_examples=EXAMPLES, deadline=None)
@given(texts)
def test_words_of_any_text(text):
    assert plain_words(text) == oracle.words_of_text(text)


@settings(max_examples=EXAMPLES // 5, deadline=None)
@given(texts, st.integers(0, 140))
def test_words_do_not_depend_on_their_place(text, shift):
    assert plain_words("." * shift + text) == plain_words(text)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.binary(max_size=150))
def test_broken_utf8_separates(data):
    assert words(data, mode=1) == oracle.words_of_text(data.decode("utf-8", "replace"))


def test_may_join_passes_each_mark_and_no_other_first_byte():
    table, joining = unicode.table(), {4: 2, 5: 2, 0x7F: 2}
    for point in (*range(0x80, 0xD800), *range(0xE000, unicode.CODE_POINTS)):
        entry = int(table[int(table[point >> 7]) + (point & 127)])
        if entry >> unicode.CLASS_SHIFT & 15 == unicode.IGNORED or entry >> unicode.RANK_SHIFT:
            first, second, *_ = chr(point).encode()
            joining[first] = max(second, joining.get(first, 0))  # the last that may follow the first byte
    for first in range(256):
        last = joining.get(first, 0) if first == 0xC2 else 255
        for second in (0x80, last, min(last + 1, 255)):
            text = np.array([first, second], np.uint8)
            assert may_join(text, 0, 2) == (first in joining and second <= last), (first, second)
    assert not may_join(np.array([0xCC], np.uint8), 1, 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Quick-brown fox's", ["the", "quick", "brown", "fox", "s"]),
        ("http://a.b/c_d", ["http", "a", "b", "c", "d"]),
        ("漢", ["漢"]),
        ("漢字仮名", ["漢字", "字仮", "仮名"]),
        ("東京タワー2階", ["東京", "タワ", "ワー", "2", "階"]),
        ("ไทย", ["ไท", "ทย"]),
        ("한국어 텍스트", ["한국어", "텍스트"]),
        ("İstanbul I\u0307i\u0307 ısı ISI ȺȾ", ["istanbul", "ii", "isi", "isi", "ⱥⱦ"]),
        ("STRAẞE Straße ΟΔΟΣ οδός Ὀδυσσεύς", ["strasse", "strasse", "οδοσ", "οδόσ", "ὀδυσσεύσ"]),
        ("e\u0301t e\u0301 e \u0301x", ["ét", "é", "e", "x"]),
        ("â\u0323 a\u0323\u0302 a\u0302\u0323 ậ â", ["ậ", "ậ", "ậ", "ậ", "â"]),
        ("e\u200d\u0301 e\u034f\u0302\u0301", ["é", "ế"]),
        ("u\u0308\u0304\u0323 ǖ\u0323", ["ụ\u0308\u0304", "ụ\u0308\u0304"]),
        ("각 가\u11a8 \u1100\u1161\u11a8 ㄱㅏ", ["각", "각", "각", "가"]),
        ("ｶﾞｷﾞﾊﾟ か\u3099漢\u3099", ["ガギ", "ギパ", "が", "漢", "\u3099"]),
        ("الـــمدينة اَلْمَدِينَةُ ﺍﻟﻤﺪﻳﻨﺔ المدینة", ["المدينة"] * 4),
        ("أحمد آحمد ا\u0654حمد ٱحمد \ufe70", ["احمد"] * 4),
        ("مؤمن مو\u0654من مومن", ["مؤمن", "مؤمن", "مومن"]),
        ("کتاب كتاب خانهٔ خانۀ خانه", ["كتاب", "كتاب", "خانه", "خانه", "خانه"]),
        ("שָׁלוֹם שלום שּׁלום", ["שלום"] * 3),
        ("١٢٣ ۱۲۳ १२३ ๑๒๓", ["123"] * 4),
        ("a ≠ b a =\u0338 b", ["a", "b"] * 2),
        ("क़ क\u093c नऩ न\u093c\u094d न\u094d\u093c", ["क\u093c"] * 2 + ["नऩ", "ऩ\u094d", "ऩ\u094d"]),
        ("résumé resume RÉSUMÉ", ["résumé", "resume", "résumé"]),
        ("hy\xadphen\u200bat\ufeffed\u2060 \u200e x\xad \xad\xady", ["hyphenated", "x", "y"]),
        ("e\u034fv\U000e0062i\u3164l\ufe0f\u115f \x00n\x01u\x7fl\x9fl", ["evil", "null"]),
        ("line\x0bline\x85line\u2800end", ["line", "line", "line", "end"]),
        ("Ｆｕｌｌ　ｗｉｄｔｈ ２０ 𝐌𝒶𝔱𝕙 Ⓒircle", ["full", "width", "20", "math", "circle"]),
        ("ﬁn ﬀ ﬃ Ǆ Kelvin ſt", ["fin", "ff", "ffi", "dž", "kelvin", "st"]),
        ("½ a⒇b m² ™ don´t ﻻ", ["1", "2", "a", "20", "b", "m2", "tm", "don", "t", "لا"]),
        ("ﷺ ㍿ ㌖", ["ﷺ"]),
        ("漢\ufe00字 漢\U000e0100 ｶﾅ 令㋿", ["漢字", "漢", "カナ", "令令", "令和"]),
        ("น้ำ", ["น้", "้ํ", "ํา"]),
        ("", []),
        ("a" * 200 + " b", ["a" * 200, "b"]),
    ],
)  # fmt: skip
def test_words_by_hand(text, expected):
    assert plain_words(text) == expected


@pytest.mark.parametrize("grows", ["Ⱥ", "½", "㋿", "ำ", "ﻻ", "㈠", "㍘"])
def test_characters_that_grow_find_room(grows):
    text = grows * 300 + " x漢字 " + grows * 100 + f" END {grows}A, http://s.example/a-{grows}.html"
    assert plain_words(text) == oracle.words_of_text(text)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.text(letters | st.characters(codec="utf-8"), max_size=60))
def test_forms_of_unicode_give_the_same_words(text):
    """NFKC and NFKD only where no fold is too long to be made."""
    found = plain_words(text)
    for form in ("NFC", "NFD"):
        assert plain_words(unicodedata.normalize(form, text)) == found, form


@pytest.mark.parametrize("shift", [0, 1, 30, 58, 62, 63])
def test_marks_beyond_the_window_compose(shift):
    for word in ("e\u0301", "x" * 70 + "e\u0301", "à" * 40 + "e\u0301", "ا\u064e" * 40, "ı" * 70, "\u0301x", "ß" * 40):
        assert plain_words("." * shift + word + " b") == [*oracle.words_of_text(word), "b"]


def test_a_letter_has_a_bounded_number_of_marks():
    for mark in ("\u0301", "\u0323\u0301", "\u064e", "\u1161", "\u09be"):
        words_of = plain_words("a" + mark * 5000)
        assert [len(word) <= 33 or mark in "\u1161\u09be" for word in words_of] == [True]
    assert plain_words("a" + "\u0301" * 5000 + "b") == ["á" + "\u0301" * 30 + "b"]


INVISIBLE = ["\xad", "\u200b", "\u200d", "\ufe0f", "\U000e0061", "\x00", "\x7f"]


@settings(max_examples=EXAMPLES // 3, deadline=None)
@given(st.text("ab c1é漢字ไ", max_size=150), st.lists(st.tuples(st.integers(0, 150), st.sampled_from(INVISIBLE))))
def test_invisible_characters_are_not_there(text, put):
    filled = list(text)
    for place, char in put:
        filled.insert(min(place, len(filled)), char)
    assert plain_words("".join(filled)) == plain_words(text)


@settings(max_examples=EXAMPLES // 3, deadline=None)
@given(
    st.lists(
        st.sampled_from(["<a href=x>", "</a>", "<b>", "<p>", " ", "x", "7", "漢", "字", "é", "É", "ß", "٣"])
        | st.sampled_from(
            ["x" * 66, "7" * 66, "–", "<img src=p7>", "<img src=77>", f"<img src={'P' * 90}>", "<img src=é1>"]
        )
    ),
    st.integers(0, 2**64 - 1),
)
def test_fingerprints_blocks_and_flags(pieces, seed):
    """Characters carry their state along; a token has that of its first character."""
    page = "<title>t 1</title>" + "".join(pieces)
    expected, run = [], []
    state = {"link": False, "block": 0}

    def flush():
        text = "".join(char for char, _ in run)
        at = end = 0
        for word in oracle.words_of_text(text):
            pair = len(word) > 1 and oracle.char_class(word[0]) != "word"
            at = text.index(word, at if pair else end)  # pairs overlap
            end = at + len(word)
            flags = IN_LINK if run[at][1] else 0
            flags |= ANY_DIGIT if any(c.isdigit() for c in word) else 0
            flags |= ALL_DIGITS if word.isdigit() else 0
            expected.append((word, flags, state["block"]))
            at += len(word) if oracle.char_class(word[0]) == "word" else 1
        run.clear()

    for piece in pieces:
        if piece == "<p>":
            flush()
            state["block"] += 1
        elif piece.startswith("<img"):
            flush()
            name = piece[9:-1].lower()
            flags = TERM | (IN_LINK if state["link"] else 0) | (ALL_DIGITS if name.isdigit() else 0)
            flags |= ANY_DIGIT if any(c.isdigit() for c in name) else 0
            expected.append((name, flags, state["block"]))
        elif piece == "<a href=x>":
            state["link"] = True
        elif piece == "</a>":
            state["link"] = False
        elif piece == " ":
            flush()
        elif piece != "<b>":
            run.extend((part, state["link"]) for char in piece for part in oracle.folded(char))
    flush()
    tokens = tokens_of(extract_page(page.encode(), host="own.example"), seed)
    assert tokens.fp.tolist() == sketches.fingerprints(tokens.words, seed)
    assert tokens.words[:2] == ["t", "1"]
    assert tokens.flags[:2].tolist() == [IN_TITLE, IN_TITLE | ANY_DIGIT | ALL_DIGITS]
    found = list(zip(tokens.words[2:], tokens.flags[2:].tolist(), strict=True))
    assert found == [(word, flags) for word, flags, _ in expected]
    ordinals = [block for _, _, block in expected]
    blocks = tokens.block[2:].tolist()
    assert blocks == sorted(blocks)
    for i in range(len(blocks) - 1):
        assert (blocks[i] == blocks[i + 1]) == (ordinals[i] == ordinals[i + 1])


PIECES = [b"ab", b"c" * 70, b" ", b"\x04", b"\x05", b"\x03", b"\x01q\x02", b"\xe6\xbc\xa2", b"\xe6"]


def run_kernel(text: bytes, rest: int) -> list[tuple]:
    """The kernel on a text whose array holds other bytes after it."""
    array = np.full(text_bytes_needed(len(text)), rest, np.uint8)
    array[: len(text)] = np.frombuffer(text, np.uint8)
    room = tokens_needed(len(text))
    out = [np.zeros(room, kind) for kind in (np.uint8, np.int32, np.uint32, np.uint32)]
    out.insert(0, np.zeros(max(room, CLUSTER_POINTS), np.uint64))
    n = tokenise(array, len(text), -1, -1, KEY, tables(), *out)
    return list(zip(*(column[:n].tolist() for column in out), strict=True))


@settings(max_examples=EXAMPLES // 3, deadline=None)
@given(st.lists(st.sampled_from(PIECES)), st.sampled_from([0x61, 0x20, 0x04, 0xBC, 0x01]))
def test_bytes_after_the_text_never_count(pieces, rest):
    text = b"".join(pieces)
    assert run_kernel(text, rest) == run_kernel(text, 0)


def test_output_arrays_without_room_drop_tokens_only():
    text = b"a b c d e f " * 30
    array = np.zeros(text_bytes_needed(len(text)), np.uint8)
    array[: len(text)] = np.frombuffer(text, np.uint8)
    out = [np.zeros(7, kind) for kind in (np.uint8, np.int32, np.uint32, np.uint32)]
    out.insert(0, np.zeros(CLUSTER_POINTS, np.uint64))
    assert tokenise(array, len(text), -1, -1, KEY, tables(), *out) == 7


@pytest.mark.slow
@needs_jit
@pytest.mark.parametrize("unit", ["漢a", "a ", "é ", "\x01a\x02", "x", "1é", "ไ漢", "㍘", "㋿", "½ ", "ำ"])
def test_capacity_holds_the_densest_tokens(unit):
    text = (unit * 10_000).encode()
    expected = len(run_kernel(unit.encode() * 100, 0))
    assert len(run_kernel(text, 0)) >= expected
    whole = oracle.words_of_text(unit * 10_000) if "\x01" not in unit else ["a"] * 10_000
    assert len(run_kernel(text, 0)) == len(whole)
