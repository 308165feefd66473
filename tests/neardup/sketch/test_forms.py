"""Figures in forms, relative times, and what tapes and pairs show of them."""

from random import Random

import numpy as np
import pytest

from neardup.kernels.form_words import _WORDS, WORD_BYTES_MAX, kind_of_word
from neardup.kernels.forms import mark_forms
from neardup.kernels.points import IN_FORM, RELATIVE
from neardup.page import Page
from neardup.pairs.pair import Pair
from neardup.pairs.scoring import compare
from neardup.scheme import Scheme
from neardup.sketch.header import Header, headers_of_valid
from neardup.sketch.layout import RecordFlag, field_at
from neardup.sketch.make_sketches import sketch_pages
from neardup.sketch.sketch_record import Sketch
from neardup.text.one_page_html import extract_page
from neardup.text.one_page_tokens import tokens_of
from tests.oracle import forms as oracle

pytestmark = [pytest.mark.kernel, pytest.mark.filterwarnings("ignore:overflow")]

SCHEME = Scheme(seed=7)
FRAME = " ".join(f"w{chr(97 + i % 26) * (1 + i // 26)}" for i in range(60))


def marked(page: str, mode: int = 1) -> list[tuple[str, str]]:
    """The words of a text, each with its mark."""
    tokens = tokens_of(extract_page(page.encode(), mode, ""))
    flags = tokens.flags.copy()
    text = np.concatenate([tokens.text, np.zeros(64, np.uint8)])
    mark_forms(text, len(flags), flags, tokens.start, tokens.end)
    names = {IN_FORM: "form", RELATIVE: "relative", 0: ""}
    return [(word, names[int(flag) & (IN_FORM | RELATIVE)]) for word, flag in zip(tokens.words, flags, strict=True)]


def form_of(text: str, mode: int = 1) -> str:
    """The words in a form, and those of relative times in brackets."""
    return " ".join(f"[{word}]" if mark == "relative" else word for word, mark in marked(text, mode) if mark)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("at 12:05 and 9:07:59", "12 05 9 07 59"),
        ("12:05pm, 9 am, 7pm", "12 05pm 9 am 7pm"),
        ("score 12:5, ratio 1:100, 12:61", ""),
        ("2024-01-31 31-1-2024 1/31/24 31.01.2024", "2024 01 31 31 1 2024 1 31 24 31 01 2024"),
        ("2024-01-31T12:05:00Z", "2024 01 31t12 05 00z"),
        ("version 1.2.30, 10.0.0.12, 2024-13-40, 99.99", ""),
        ("5 June 2024; June 5, 2024; 5th June", "5 june 2024 june 5 2024 5th june"),
        ("Dec 5 and 5 Dec., December 2024", "dec 5 5 dec december 2024"),
        ("it may 5 times", "5 times"),
        ("we may 5; May 5, 2024; 5 March 2024", "may 5 2024 5 march 2024"),
        ("took 12 ms, 0.034 seconds, 15ms", "12 ms 0 034 seconds 15ms"),
        ("session 3f2a9b1c, cabinets, 12345678", "3f2a9b1c"),
        ("session e3f2a9b1, a1b2c3d, i64", "e3f2a9b1"),
        ("1 year 2 days 3 hours ago", "[1] [year] [2] [days] [3] [hours] [ago]"),
        ("4 weeks 1 day 2 hours 3 minutes ago", "[1] [day] [2] [hours] [3] [minutes] [ago]"),
        ("id 123e4567-e89b-12d3-a456-426614174000", "123e4567 e89b 12d3 a456 426614174000"),
        ("1,234 users, 1 reply, views: 12,345", "1 234 users 1 reply views 12 345"),
        ("user 17, room 7, 12 rooms, post 3", ""),
        ("3 hours ago, 2 days, 3 hours ago, 2h ago", "[3] [hours] [ago] [2] [days] [3] [hours] [ago] [2h] [ago]"),
        ("vor 3 Stunden, il y a 5 minutes, hace 2 días", "[vor] [3] [stunden] [y] [a] [5] [minutes] [hace] [2] [días]"),
        ("3 hours later, ago 3 hours, in 2 days", ""),
        ("5月31日, 5 月", "5 月 31 日"),
        ("7 hours ... ago, 7 - - - users", ""),
    ],
)
def test_forms_of_figures(text: str, words: str) -> None:
    assert form_of(text) == words


def test_forms_reach_over_tags_and_lines() -> None:
    assert (
        form_of("<p><b>3</b> <a href=x>replies</a>\n   <p>2<br>\n hours <i>ago</i>", 0) == "3 replies [2] [hours] [ago]"
    )
    assert form_of("<table><tr><td>views<td>12</table>", 0) == "views 12"
    assert form_of("<p>12<b>:</b>05 x 12<p>:05", 0) == "12 05"
    assert form_of("<p>3 <img src=12.jpg> users 12", 0) == "users 12"


def test_random_texts_have_the_oracles_forms() -> None:
    random = Random(11)
    figures = (
        "1",
        "7",
        "05",
        "12",
        "31",
        "45",
        "59",
        "100",
        "1999",
        "2024",
        "03t12",
        "12ms",
        "5th",
        "2h",
        "3f2a9b1c",
        "9pm",
    )
    words = (
        "ago",
        "hours",
        "day",
        "march",
        "may",
        "june",
        "dec",
        "users",
        "user",
        "views",
        "replies",
        "ms",
        "am",
        "wool",
    )
    gaps = (" ", " ", " ", ":", "-", ".", "/", ",", ", ", ". ", " (", " - - ", "\n\n", " " * 66, ":: ")
    seen = {"form": 0, "relative": 0, "": 0}
    for _ in range(1500):
        pieces = random.choices(figures + words[: random.randint(1, len(words))], k=random.randint(1, 12))
        between = random.choices(gaps[: random.randint(1, len(gaps))], k=len(pieces) - 1)
        text = "".join(piece + gap for piece, gap in zip(pieces, [*between, ""], strict=True))
        found = marked(text)
        assert [word for word, _ in found] == pieces
        wanted = oracle.marks(pieces, [gap.replace("\n", " ") for gap in between])
        assert [mark for _, mark in found] == wanted, text
        for mark in wanted:
            seen[mark] += 1
    assert min(seen.values()) > 50, seen


def test_words_of_forms_are_found_and_others_are_not() -> None:
    words = {word for words in _WORDS.values() for word in words.split()}
    encoded = {word.encode() for word in words}
    for word in words:
        data = np.frombuffer(b"x" + word.encode() + b"yz", np.uint8)
        end = 1 + len(word.encode())
        assert kind_of_word(data, 1, end) > 0
        assert kind_of_word(data[:end], 1, end) == kind_of_word(data, 1, end)  # at the end of the text
        assert kind_of_word(data, 1, end + 2) == 0
        assert bool(kind_of_word(data, 1, end - 1) > 0) is (word.encode()[:-1] in encoded)
    assert max(len(word.encode()) for word in words) <= WORD_BYTES_MAX


# what sketches and pairs show


def sketch(text: str, url: str = "http://a.example/1") -> Sketch:
    return Sketch(sketch_pages([Page(url, text.encode(), "text/plain")], SCHEME)[0])


def pair(one: str, other: str) -> Pair:
    return compare(sketch(f"{FRAME} {one} {FRAME}"), sketch(f"{FRAME} {other} {FRAME}"))


@pytest.mark.parametrize(
    ("one", "other", "same_values", "same_rest"),
    [
        ("at 12:05", "at 13:59", 1, True),
        ("on 5 June 2024", "on 17 July 2023", 1, True),
        ("1 reply", "1,234 replies", 1, True),
        ("room 5", "room 7", 0, True),
        ("5 7", "7 5", 0, True),
        ("5 12:00 7", "5 7 12:30", 1, True),
        ("on Monday at 12:05", "on Tuesday at 13:59", 1, False),
        ("12:05", "1,000", 0, True),
        ("12:05", "", 1, True),
        ("3 hours ago", "59 minutes ago", 1, True),
        ("3 hours", "59 minutes", 0, False),
    ],
)
def test_pairs_show_whether_values_and_words_are_equal(one: str, other: str, same_values: int, same_rest: bool) -> None:
    found = pair(one, other)
    assert (found.same_values, found.same_rest) == (same_values, same_rest)


def test_tapes_leave_relative_times_out() -> None:
    plain = sketch("a word or two, and then a word or two more")
    timed = sketch("a word or two 3 hours ago, and then 59 minutes ago a word or two more")
    assert timed.tape == plain.tape
    assert timed.hashes == plain.hashes
    assert timed.digest != plain.digest
    assert timed.tokens == plain.tokens + 6
    again = sketch("hours ago 3 " * 3 + "3 hours ago")  # the same words elsewhere stay
    assert again.tape == sketch("hours ago 3 " * 3).tape


def test_relative_times_are_left_out_of_main_contents_and_long_pages() -> None:
    random = Random(5)
    for many in (300, 3000):
        words = [f"w{random.randrange(700)}" for _ in range(many)]
        times = [
            (f"{word} {random.randint(1, 59)} minutes ago" if i % 9 == 0 else word) for i, word in enumerate(words)
        ]
        one, other = sketch(" ".join(words)), sketch(" ".join(times))
        assert (one.tape, one.tape_level, one.hashes) == (other.tape, other.tape_level, other.hashes)
        assert one.content_tape == other.content_tape
        assert one.article_tape == other.article_tape != b""


def test_a_pages_own_url_is_no_value() -> None:
    one = sketch(f"{FRAME} at http://a.example/rooms/17", "http://a.example/rooms/17")
    other = sketch(f"{FRAME} at http://a.example/rooms/18", "http://a.example/rooms/18")
    assert (compare(one, other).same_values, compare(one, other).same_rest) == (1, True)


def test_sketches_of_earlier_schemes_show_neither() -> None:
    """They have no flag, and nothing behind the tape."""
    one = sketch(f"{FRAME} at 12:05 {FRAME}")
    before = bytearray(one.record)
    before[field_at("flags")] &= ~RecordFlag.FORMS
    assert (Sketch(bytes(before)).hashes, Sketch(bytes(before)).tape) == (b"", one.tape + one.hashes)
    found = compare(Sketch(bytes(before)), Sketch(bytes(before)))
    assert (found.same_values, found.same_rest, found.tape_score) == (-1, False, 1.0)
    assert compare(one, one).same_values == 1


def test_a_record_without_room_for_hashes_is_damaged() -> None:
    record = sketch(f"{FRAME} at 12:05 {FRAME}").record
    assert Header(record).problem() == ""
    assert headers_of_valid([record]) is not None
    short, at = bytearray(record), field_at("tape_bytes")
    tape, content = (int.from_bytes(short[place : place + 2], "little") for place in (at, at + 2))
    short[at : at + 4] = (7).to_bytes(2, "little") + (content + tape - 7).to_bytes(2, "little")
    assert "too short for the hashes" in Header(bytes(short)).problem()
    assert headers_of_valid([bytes(short)]) is None


def test_hashes_are_those_of_the_definition() -> None:
    """A page without forms: figures in their order, and words in any."""
    one, other = sketch("a1 b 22 c d"), sketch("b a1 d 22 c")
    assert one.hashes == other.hashes
    assert one.hashes[:4] != sketch("22 b a1 c d").hashes[:4]
    assert one.hashes[4:] != sketch("a1 b 22 c e").hashes[4:]
    assert sketch("no figures").hashes[:4] == bytes(4)
    assert sketch("").hashes == b""


def test_marks_of_hostile_texts_are_linear() -> None:
    """Each figure looks at a few neighbours, however many there are."""
    many = 20_000
    text = "12 " * many + "3 days " * many + "1,1.1," * many + "1:" * many + "5 " + " " * many + "users"
    assert len(sketch(text).hashes) == 8
