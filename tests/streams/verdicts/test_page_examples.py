"""The pairs in the tables of `default-rule.md` and `limits.md` get the decisions that the tables show."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from neardup import rules
from neardup.page import Page
from neardup.scheme import FIXED_SEED, Scheme
from streams.library.deduplicator import open_index
from streams.verdicts.compare import compare_command, decision_text

RULES = Path(rules.__file__).parent
SYLLABLES = ("ba", "de", "fi", "go", "lu", "ma", "ne", "pi", "ro", "su", "ta", "ve")


def words(count: int, first: int = 0) -> list[str]:
    """Words that differ from each other, from number `first` on."""
    return [
        "".join(SYLLABLES[number // 12**place % 12] for place in (2, 1, 0)) for number in range(first, first + count)
    ]


#: The text of most examples.
TEXT = words(200)
OTHER = words(200, 400)


def replaced(text: Sequence[str], many: int) -> list[str]:
    """The text with so many of its words replaced, evenly spread."""
    step = len(text) // many
    return [OTHER[n // step] if n % step == step // 2 and n // step < many else word for n, word in enumerate(text)]


class Side(NamedTuple):
    """One page: the URL without its scheme, its title, and its text by blocks."""

    url: str
    title: str
    blocks: Sequence[Sequence[str]]
    canonical: str = ""

    def html(self) -> str:
        link = f'<link rel="canonical" href="https://{self.canonical}">' if self.canonical else ""
        return f"<title>{self.title}</title>{link}" + "".join(f"<p>{' '.join(block)}.</p>" for block in self.blocks)

    def cell(self) -> str:
        return f"`{self.url}`" + (f" *{self.title}*" if self.title else "")


class Example(NamedTuple):
    """A pair of a table. texts: how the texts of the two pages differ."""

    step: str
    a: Side
    b: Side
    texts: str


def side(url: str, title: str, *blocks: Sequence[str], canonical: str = "") -> Side:
    return Side(url, title, blocks, canonical)


def compared(example: Example, folder: Path) -> str:
    """The columns numbers, needed and decision of `neardup compare`, for the default rule; and the deciding step."""
    files = []
    for name, page in (("a.html", example.a), ("b.html", example.b)):
        files.append(folder / name)
        files[-1].write_text(page.html())
    result = compare_command(*files, a_url=f"https://{example.a.url}", b_url=f"https://{example.b.url}")
    (one,) = (each for each in result.rules if each.rule == "verified")
    return f"{one.numbers} | {one.needed} | {decision_text(one, result.same_digest)}"


ARTICLE = words(200)
#: The frame of a page: lines of two words.
MENU = [words(2, 500 + 2 * n) for n in range(200)]
NEWS = "Flood closes the bridge"

#: For each step of the default rule a pair that it decides. The step `siblings` has an example of its own.
STEPS = (
    Example(
        "thin",
        side("a.example/1", "", words(15)),
        side("a.example/2", "", words(16)),
        "B has a word more than the 15 of A",
    ),
    Example("names", side("a.example/blue", "Blue socks", TEXT), side("a.example/red", "Red socks", TEXT), "equal"),
    Example("names", side("a.example/rooms/1", "Room 1", TEXT), side("a.example/halls/2", "Room 2", TEXT), "equal"),
    Example(
        "path",
        side("a.example/blue/sock.html", "Socks", [*replaced(TEXT, 6), "blue"]),
        side("a.example/red/sock.html", "Socks", [*TEXT, "red"]),
        "6 words replaced; A ends with *blue*, B with *red*",
    ),
    Example(
        "path",
        side("a.example/owners/17/edit", "Edit an owner", [*TEXT, "anna", "wool"]),
        side("a.example/owners/18/edit", "Edit an owner", [*TEXT, "berta", "silk"]),
        "the last two words differ",
    ),
    Example(
        "elsewhere",
        side("a.example/wool/list", "Prices", TEXT),
        side("a.example/silk/table", "Prices", replaced(TEXT, 10)),
        "10 words replaced",
    ),
    Example(
        "elsewhere",
        side("a.example/1/notes", "Notes", words(60, 1100), *MENU),
        side("a.example/2/notes", "Notes", words(60, 1200), *MENU),
        "other notes of 60 words in a frame of 400",
    ),
    Example(
        "added",
        side("a.example/1", "A story", TEXT),
        side("b.example/2", "A story", TEXT + words(40, 600)),
        "B adds 40 words",
    ),
    Example(
        "added",
        side("a.example/1", "A story", words(100)),
        side("a.example/1?full", "A story", words(100) + ["sale"] * 200),
        "B adds one word 200 times",
    ),
    Example(
        "syndicated",
        side("a.example/news/1", f"{NEWS} - A Times", words(40, 800), ARTICLE, words(40, 850)),
        side("b.example/n/2", f"{NEWS} - B Post", words(60, 900), ARTICLE, words(30, 970)),
        "one article of 200 words in other menus",
    ),
    Example(
        "syndicated",
        side("physics.a.example/news/1", f"{NEWS} - Physics", words(40, 800), ARTICLE, words(40, 850)),
        side("chemistry.a.example/n/2", f"{NEWS} - Chemistry", words(60, 900), ARTICLE, words(30, 970)),
        "the same, of two hosts of one site",
    ),
    Example(
        "tape",
        side("a.example/story", "A story", TEXT),
        side("a.example/print/story", "A story", replaced(TEXT, 20)),
        "20 words replaced",
    ),
    Example(
        "tape",
        side("a.example/find?q=wool", "Results for wool", ["nothing", "for", "wool", "here"], TEXT),
        side("a.example/find?q=silk", "Results for silk", ["nothing", "for", "silk", "here"], TEXT),
        "the words of the queries differ",
    ),
    Example(
        "content",
        side("a.example/story", "A story", TEXT, *(words(2, 600 + 3 * n) for n in range(70))),
        side("a.example/story?print", "A story", TEXT),
        "A has 70 lines of two words after the text",
    ),
    Example(
        "content",
        side("a.example/gauge?day=1", "A gauge", TEXT, *(words(2, 600 + 3 * n) for n in range(70))),
        side("a.example/gauge?day=2", "A gauge", TEXT, *(words(2, 900 + 3 * n) for n in range(70))),
        "each has 70 lines of two words of its own after the text",
    ),
    Example(
        "content",
        side("a.example/story", "A story", TEXT, *(words(2, 600 + 3 * n) for n in range(70))),
        side("a.example/amp/story", "A story by A. Writer", TEXT, canonical="a.example/story"),
        "A has 70 lines of two words after the text; B names A as its canonical URL",
    ),
    Example(
        "unlike",
        side("a.example/story", "A story", TEXT),
        side("a.example/story?p=2", "A story", replaced(TEXT, 40)),
        "40 words replaced",
    ),
)

#: What the pages of limits mean.
LIMITS = (
    Example(
        "figures alone under one title",
        side("a.example/draw/1", "Lottery", [*TEXT, "3", "7", "12"]),
        side("a.example/draw/2", "Lottery", [*TEXT, "1", "9", "44"]),
        "three numbers differ",
    ),
    Example(
        "clocks alone under one title",
        side("a.example/tide/1", "Tides", [*TEXT, "05:12", "17:40"]),
        side("a.example/tide/2", "Tides", [*TEXT, "06:01", "18:25"]),
        "two clocks differ",
    ),
    Example(
        "the same under titles that tell",
        side("a.example/draw/1", "Lottery of 4 May", [*TEXT, "3", "7", "12"]),
        side("a.example/draw/2", "Lottery of 11 May", [*TEXT, "1", "9", "44"]),
        "three numbers differ",
    ),
    Example(
        "two headlines on one site",
        side("a.example/1", "Bridge closed after flood", TEXT),
        side("a.example/2", "River floods old bridge", TEXT),
        "equal",
    ),
    Example(
        "letters of another script",
        side("a.example/1", "A story", TEXT),
        side("b.example/2", "A story", [word.replace("a", "а").replace("e", "е").replace("o", "о") for word in TEXT]),
        "Cyrillic `а`, `е` and `о` in B",
    ),
    Example(
        "users that the URL does not mark",
        side("a.example/ann/post", "A story", TEXT),
        side("a.example/bob/post", "A story", TEXT + words(50, 600)),
        "B adds 50 words",
    ),
    Example(
        "users that the URL marks",
        side("a.example/@ann/post", "A story", TEXT),
        side("a.example/@bob/post", "A story", TEXT + words(50, 600)),
        "B adds 50 words",
    ),
)


def row(example: Example, folder: Path) -> str:
    pages = f"{example.a.cell()} | {example.b.cell()} | {example.texts}"
    return f"| {example.step} | {pages} | {compared(example, folder)} |"


@pytest.mark.parametrize(
    ("page", "examples"), [("rules/default-rule.md", STEPS), ("limits.md", LIMITS)], ids=["default rule", "limits"]
)
def test_page_examples_equal_the_output_of_compare(page: str, examples: Sequence[Example], tmp_path: Path) -> None:
    text = (RULES.parent / page).read_text()
    assert [line for line in (row(each, tmp_path) for each in examples) if line not in text] == []


def test_each_step_of_the_default_rule_has_an_example() -> None:
    named = {example.step for example in STEPS} | {"siblings"}
    assert named == {step.name for step in rules.RULES["verified"].steps}


def test_page_example_of_siblings_equals_the_decision_of_an_index() -> None:
    """Compare has no counts of siblings: `neardup.open_index` has."""
    rooms = [side(f"a.example/room{n}.html", "Room", [*TEXT, "room", str(n)]) for n in (1, 2, 3)]
    with open_index(scheme=Scheme(seed=FIXED_SEED)) as index:
        verdicts = index.add([Page(f"https://{room.url}", room.html().encode()) for room in rooms])
    assert [verdict.verdict for verdict in verdicts] == ["unique", "near_duplicate", "unique"]
    assert verdicts[1].evidence["by"] == "tape"
    nearest = verdicts[2].evidence["nearest"]
    assert (nearest["by"], nearest["url"]) == ("siblings", f"https://{rooms[0].url}")
    texts = "the last word differs, and `/room2.html` came between"
    numbers = f"tape {nearest['score']:.0%} | tape {nearest['demand']:.0%} | no: {rules.why_refused('siblings')}"
    expected = f"| siblings | {rooms[0].cell()} | {rooms[2].cell()} | {texts} | {numbers} |"
    assert expected in (RULES / "default-rule.md").read_text()
