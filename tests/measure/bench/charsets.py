"""The largest pages, in charsets of one and two bytes, against an ordinary one.

    python -m tests.measure.bench.charsets

One byte of windows-874 or of half-width kana is three of UTF-8 and a token. Each page is sketched in a process of its
own, which says the processor's time and the most memory that it held.
"""

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from time import process_time

from neardup.page import Page
from neardup.scheme import Scheme
from neardup.sketch.make_sketches import sketch_pages
from tests.measure.bench.documents import documentation_page
from tests.measure.bench.table import Row

TIME_MAX, MEMORY_MAX = 6.0, 8.0
_REPEATS = 3
_ORDINARY = "documentation pages in UTF-8"
_SHOWN = 5


def _letters(first: int, last: int, codec: str) -> bytes:
    random = Random(3)
    return "".join(chr(random.randint(first, last)) for _ in range(20_000)).encode(codec, "ignore")


def _documentation() -> bytes:
    return b"".join(documentation_page(seed) for seed in range(20))


#: Of each input what is repeated, made when it is wanted, and the charset; the first is an ordinary page.
CASES: dict[str, tuple[Callable[[], bytes], str]] = {
    _ORDINARY: (_documentation, "utf-8"),
    "documentation pages in windows-1252": (lambda: _documentation().replace(b"public", b"publ\xefc"), "windows-1252"),
    "Thai in windows-874": (lambda: _letters(0x0E01, 0x0E2E, "cp874"), "windows-874"),
    "Thai in UTF-8": (lambda: _letters(0x0E01, 0x0E2E, "utf-8"), "utf-8"),
    "no characters of windows-874": (lambda: b"\xff", "windows-874"),
    "euro signs of windows-1252": (lambda: b"\x80", "windows-1252"),
    "Cyrillic letters in windows-1251": (lambda: b"\xef ", "windows-1251"),
    "Cyrillic letters in koi8-r": (lambda: _letters(0x0430, 0x044F, "koi8-r"), "koi8-r"),
    "any half-width kana in shift_jis": (lambda: _letters(0xFF66, 0xFF9D, "cp932"), "shift_jis"),
    "any Han in gbk": (lambda: _letters(0x4E00, 0x9FA4, "gb18030"), "gbk"),
    "any Han in gb18030, four bytes each": (lambda: _letters(0x3400, 0x4DB5, "gb18030"), "gb18030"),
    "any Han in big5": (lambda: _letters(0x4E00, 0x9FA4, "big5hkscs"), "big5"),
    "any Hangul in euc-kr": (lambda: _letters(0xAC00, 0xD7A3, "cp949"), "euc-kr"),
    "no characters of gbk": (lambda: b"\xff", "gbk"),
    "no characters of euc-jp": (lambda: b"\xff", "euc-jp"),
    "halves of characters of shift_jis": (lambda: b"\x81 ", "shift_jis"),
    "any Han in euc-jp": (lambda: _letters(0x4E00, 0x9FA4, "euc-jp"), "euc-jp"),
    "shifts of iso-2022-jp": (lambda: b"\x1b$B0!\x1b(B", "iso-2022-jp"),
    "any Han in UTF-16": (lambda: "\ufeff".encode("utf-16-le") + _letters(0x4E00, 0x9FA4, "utf-16-le"), ""),
    "halves of pairs in UTF-16": (lambda: b"\xff\xfe" + b"\x00\xd8" * 20_000, ""),
}


def body_of(name: str, size: int) -> bytes:
    """The input, of `size` bytes."""
    unit = CASES[name][0]()
    return (unit * (size // len(unit) + 1))[:size]


def _sketched(name: str, size: int) -> dict[str, float]:
    """ns a byte, and megabytes held beside what a process holds anyway; in this process, which ends then."""
    body, charset = body_of(name, size), CASES[name][1]
    scheme, kind = Scheme(seed=1), f"text/html; charset={charset}" if charset else "text/html"
    sketch_pages([Page("https://w.example/", body[:2000], kind, 0)], scheme)
    Path("/proc/self/clear_refs").write_text("5")  # forget the most that was held so far
    before = _held("VmRSS")
    taken = []
    for _ in range(_REPEATS):
        started = process_time()
        sketch_pages([Page("https://w.example/", body, kind, 0)], scheme)
        taken.append(process_time() - started)
    return {"ns a byte": 1e9 * statistics.median(taken) / size, "MB": _held("VmHWM") - before}


def _held(what: str) -> float:
    """Megabytes, of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith(what))) / 1024


def table(size: int) -> dict[str, dict[str, float]]:
    """Both numbers of every input, and how many times an ordinary page's they are."""
    found = {}
    for name in CASES:
        command = [sys.executable, "-m", "tests.measure.bench.charsets", "--size", str(size), "--one", name]
        found[name] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    ordinary = found[_ORDINARY]
    return {
        name: each | {"time": each["ns a byte"] / ordinary["ns a byte"], "memory": each["MB"] / ordinary["MB"]}
        for name, each in found.items()
    }


def rows(scheme: Scheme) -> list[Row]:
    """The inputs that cost most at the largest size, against an ordinary page of that size."""
    found, out = table(scheme.body_bytes_max), []
    for what, limit in (("time", TIME_MAX), ("memory", MEMORY_MAX)):
        ordered = sorted(found, key=lambda name: -found[name][what])
        worst = found[ordered[0]][what]
        row = Row(f"{what} of the largest page, {ordered[0]}, an ordinary one's", "times", worst)
        row.notes = {name: found[name][what] for name in ordered[1:_SHOWN]}
        row.peer, row.peer_name, row.ratio, row.reach = limit, "limit", limit / worst, "1 x"
        out.append(row)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.measure.bench.charsets", description=__doc__)
    parser.add_argument("--size", type=int, default=Scheme(seed=1).body_bytes_max, help="bytes of each page")
    parser.add_argument("--one", default="", help="one input, as JSON")
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(_sketched(asked.one, asked.size)))
        return
    print(f"| {asked.size:,} bytes | ns a byte | times | MB | times |\n|---|---|---|---|---|")
    for name, each in table(asked.size).items():
        print(f"| {name} | {each['ns a byte']:.1f} | {each['time']:.1f} | {each['MB']:.0f} | {each['memory']:.1f} |")


if __name__ == "__main__":
    main()
