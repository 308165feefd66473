"""Whether sketches are the same bits on every processor: the same pages under other instruction sets, and without JIT.

`python -m tests.measure.bench.same_bits` prints the digest of the sketches that this process makes.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from neardup.page import Page
from neardup.scheme import Scheme
from neardup.sketch.make_sketches import sketch_pages
from tests.measure.bench.documents import documentation_page, texts, web_page, worst_cases
from tests.measure.bench.table import Row, seconds

#: Without the JIT a byte costs a thousand times as much: short pages only.
_SHORT_BYTES, _LONG_BYTES = 600, 50_000
_CPUS = {
    "this machine": {},
    "AVX2": {"NUMBA_CPU_NAME": "haswell"},
    "SSE 4.2": {"NUMBA_CPU_NAME": "nehalem"},
    "no JIT": {"NUMBA_DISABLE_JIT": "1"},
}


def digests() -> dict[str, str]:
    """Of short pages; and, with the JIT, of long ones."""
    scheme = Scheme(seed=11)
    short = [body[:_SHORT_BYTES] for body in worst_cases(_SHORT_BYTES).values()]
    short += [text.encode()[:_SHORT_BYTES] for text in texts(4)]
    groups = {"short": [*short, web_page(1)[-_SHORT_BYTES:]]}
    if os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0"):
        long = [*worst_cases(_LONG_BYTES).values(), documentation_page(1), web_page(1)]
        groups["long"] = [*long, *(text.encode() for text in texts(40))]
    out = {}
    for name, bodies in groups.items():
        pages = [Page(f"https://s.example/{i}", body, "text/html; charset=utf-8", i) for i, body in enumerate(bodies)]
        out[name] = hashlib.blake2b(b"".join(sketch_pages(pages, scheme)), digest_size=16).hexdigest()
    return out


def same_bits() -> list[Row]:
    """Each instruction set in a process of its own, with an empty cache of compiled code."""
    reported: dict[str, dict[str, str]] = {}

    def run() -> None:
        running = {}
        with tempfile.TemporaryDirectory() as folder, ExitStack() as ends:
            for name, change in _CPUS.items():
                environment = {**os.environ, "NUMBA_CACHE_DIR": str(Path(folder) / name), **change}
                if name == "this machine":
                    environment.pop("NUMBA_CACHE_DIR")
                command = [sys.executable, "-m", "tests.measure.bench.same_bits"]
                running[name] = subprocess.Popen(
                    # numpy warns of the overflows that the kernels are made of
                    command,
                    env=environment,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                )
                ends.callback(running[name].kill)
            for name, process in running.items():
                output, _ = process.communicate()
                reported[name] = dict(line.split() for line in output.splitlines()) if not process.returncode else {}

    taken = seconds(run)
    row = Row("same sketches under every instruction set", "sets", 0.0, reach="all", notes={"seconds": taken})
    own = reported["this machine"]
    alike = [name for name, found in reported.items() if found and found.items() <= own.items()]
    row.ours, row.peer, row.peer_name, row.ratio = len(alike), len(reported), "tried", len(alike) / len(reported)
    row.check = f"alike: {', '.join(alike)}"
    if len(alike) < len(reported):
        row.void = f"others: {', '.join(sorted(set(reported) - set(alike)))}"
    return [row]


def main() -> None:
    for name, digest in digests().items():
        print(name, digest)


if __name__ == "__main__":
    main()
