"""Inputs made to be slow, of 1, 2, 4 and 8 MB: ns a byte to tokens and to sketches.

    python -m tests.measure.bench.worst

The worst inputs of other charsets than UTF-8 are those of `tests.measure.bench.charsets`.
"""

import argparse
from collections.abc import Callable, Iterator
from random import Random
from time import process_time

from neardup.page import Page
from neardup.scheme import Scheme
from neardup.sketch.make_sketches import sketch_pages
from tests.measure.bench.documents import worst_cases
from tests.measure.bench.stages import to_tokens
from tests.measure.bench.table import Row, in_turn

SIZES = tuple(1_000_000 << i for i in range(4))
_REPEATS = 3
#: Rows of the bench: the slowest so many, and what grows most.
_SHOWN = 5
_LIMIT = 10.0


def more_cases(size: int) -> dict[str, bytes]:
    """Inputs of about `size` bytes besides those of `worst_cases`: each tries another loop."""
    random = Random(3)

    def fill(part: str, before: str = "") -> bytes:
        unit = part.encode()
        return before.encode() + unit * (size // len(unit))

    letters = [chr(97 + i) for i in range(23)]
    han = "".join(chr(random.randint(0x4E00, 0x9FA4)) for _ in range(10_000)).encode()
    tags = ["<p>", "<b>", "</b>", "<a href=x>", "</a>", "<br>", "a ", "&lt;", "<img src=a>", "<!-- -->", "<a b='", "'>"]
    mixed = "".join(random.choice(tags) for _ in range(10_000)).encode()
    return {
        "a title of 23 words": fill(" ".join(letters) + " ", "<title>"),
        "a heading of 23 words": fill(" ".join(letters) + " ", "<h1>") + b"</h1>",
        "any bytes over 127": random.randbytes(size).translate(bytes(range(128, 256)) * 2),
        "any tags": mixed * (size // len(mixed)),
        "any Han": han * (size // len(han)),
        "words of digits": fill("1 "),
        "words in accents": fill("a é "),
        "Cyrillic letters": fill("п "),
        "Thai": fill("ภาษาไทย"),
        "Han and letters": fill("漢a"),
        "characters of 4 bytes": fill("𠀀 "),
        "combining marks": fill("a\u0301 "),
        "lower case is longer": fill("Ⱥ"),
        "lower case is longer, in words": fill("Ⱥ a "),
        "words of 70 letters": fill("a" * 70 + " "),
        "words of 33 letters": fill("a" * 33 + " "),
        "end tags cut off": fill("</a"),
        "tags cut off": fill("<a/"),
        "comments of nothing": fill("<!>"),
        "comments that nearly end": fill("- >", "<!--"),
        "CDATA that nearly ends": fill("]>", "<svg><![CDATA["),
        "styles that nearly end": fill("<", "<style>"),
        "& in a title": fill("&", "<title>"),
        "references without semicolon": fill("&lt"),
        "references of a part of a name": fill("&notit;"),
        "numbers of nothing": fill("&#"),
        "attributes of a link": fill('b="c" ', "<a "),
        "attributes in single quotes": fill("b='c' ", "<img "),
        "image of one long URL": fill("a", "<img src='") + b"'>",
        "image of many dots": fill("a/../", "<img src='//o.example/") + b"'>",
        "images of other hosts": fill("<img src='http://o.example/a/b/c/../d.png?x'>"),
        "rel of many words": fill("a ", "<link href=x rel='") + b"'>",
        "bases": fill("<base href=//o.example/a>"),
        "refreshes": fill("<meta http-equiv=refresh content='0;url=a'>"),
        "a link within a word": fill("a<a href=x>b</a> "),
        "svg and paragraphs": fill("<svg><p>"),
        "math": fill("<math><mi>"),
    }


def _spent(run: Callable[[], object]) -> float:
    """Seconds of the processor: these runs are long, and one thread each."""
    started = process_time()
    run()
    return process_time() - started


def tables(scheme: Scheme, sizes: tuple[int, ...] = SIZES) -> Iterator[tuple[str, dict[str, list[float]]]]:
    """ns a byte of every input, by size: ("to tokens", {input: [...]}), ("to sketch", {...})."""
    inputs = [{**worst_cases(size), **more_cases(size)} for size in sizes]

    def sketched(body: bytes) -> Callable[[], object]:
        page = [Page("https://w.example/", body, "text/html; charset=utf-8", 0)]
        return lambda: sketch_pages(page, scheme)

    for what, make in (("to tokens", to_tokens), ("to sketch", sketched)):
        each = {}
        for name in inputs[0]:
            bodies = [bodies[name] for bodies in inputs]
            runs = [make(body) for body in bodies]
            taken = in_turn([lambda run=run: _spent(run) for run in runs], _REPEATS)
            each[name] = [1e9 * spent / len(body) for spent, body in zip(taken, bodies, strict=True)]
        yield what, each


def rows(scheme: Scheme) -> Iterator[Row]:
    """The slowest inputs of the largest size, and the one that costs most a byte against the smallest size."""
    for what, each in tables(scheme):
        ordered = sorted(each, key=lambda name: -each[name][-1])
        for name in ordered[:_SHOWN]:
            row = Row(f"bytes {what}, input made to be slow: {name}", "ns/byte", each[name][-1])
            row.notes = {f"{size // 1_000_000} MB": value for size, value in zip(SIZES, each[name], strict=True)}
            row.peer, row.peer_name, row.ratio, row.reach = _LIMIT, "limit", _LIMIT / each[name][-1], "1 x"
            yield row
        growth = {name: values[-1] / values[0] for name, values in each.items()}
        crooked = max(growth, key=growth.__getitem__)
        yield Row(f"eight times the bytes {what}, a byte: {crooked}", "times", growth[crooked], reach="1.2 at most")


def main() -> None:
    argparse.ArgumentParser(prog="tests.measure.bench.worst", description=__doc__).parse_args()
    names = " | ".join(f"{size // 1_000_000} MB" for size in SIZES)
    for what, each in tables(Scheme(seed=1)):
        print(f"\n| bytes {what}, ns a byte | {names} |\n|---|" + "---|" * len(SIZES))
        for name in sorted(each, key=lambda name: -each[name][-1]):
            print(f"| {name} | " + " | ".join(f"{value:.1f}" for value in each[name]) + " |")


if __name__ == "__main__":
    main()
