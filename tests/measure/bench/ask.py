"""`neardup ask` beside a writer that is busy: the time of an answer, and the writer's rate with and without questions.

    python -m tests.measure.bench.ask [--pages 20000] [--questions 1000]

The writer adds generated pages of 350 words to an index on disk and flushes it, as a matcher does. One question is open
at a time: half of them about pages that are in the index, half about new ones. Prints Markdown.
"""

import argparse
import http.client
import json
import multiprocessing
import random
import subprocess
import sys
import tempfile
import time
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event
from pathlib import Path
from urllib.parse import urlsplit

import neardup
from neardup.page import Page

BATCH, WORDS, FLUSH_BATCHES = 256, 350, 8
#: The writer alone, before and after the questions.
ALONE_SECONDS = 5.0


def page(number: int) -> Page:
    chance = random.Random(number)
    words = " ".join(f"w{int(chance.paretovariate(0.5)) % 50_000}" for _ in range(WORDS))
    title = f"Page {number} of {chance.randrange(10**9)}"
    body = f"<title>{title}</title><p>{words}".encode()
    return Page(f"http://s{number % 997}.example/{number}", body, "text/html; charset=utf-8")


def write(state: Path, pages: int, written: "Synchronized[int]", filled: Event, stop: Event) -> None:
    """Add pages until `stop`; `filled` is set at the given number."""
    with neardup.open_index(state) as index:
        batches = 0
        while not stop.is_set():
            first = written.value
            index.add([page(number) for number in range(first, first + BATCH)])
            written.value = first + BATCH
            batches += 1
            if batches % FLUSH_BATCHES == 0:
                index.flush()
            if written.value >= pages:
                filled.set()


def rate(written: "Synchronized[int]", seconds: float) -> float:
    before, start = written.value, time.perf_counter()
    time.sleep(seconds)
    return (written.value - before) / (time.perf_counter() - start)


def ask(url: str, questions: int, pages: int) -> list[float]:
    """Milliseconds of each answer."""
    at, taken = urlsplit(url), []
    assert at.hostname is not None
    connection = http.client.HTTPConnection(at.hostname, at.port, timeout=60)
    for n in range(questions):
        asked = page(random.Random(n).randrange(pages)) if n % 2 else page(10**9 + n)
        body = json.dumps({"url": asked.url, "body": (asked.body or b"").decode(), "content_type": "text/html"})
        start = time.perf_counter()
        connection.request("POST", at.path, body)
        answer = connection.getresponse()
        text = answer.read()
        taken.append((time.perf_counter() - start) * 1e3)
        if answer.status != 200:
            sys.exit(f"{answer.status}: {text[:200]!r}")
    return sorted(taken)


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.measure.bench.ask", description=__doc__)
    parser.add_argument("--pages", type=int, default=20_000, help="pages of the index before the first question")
    parser.add_argument("--questions", type=int, default=1_000)
    given = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    written, filled, stop = context.Value("q", 0), context.Event(), context.Event()
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "state"
        writer = context.Process(target=write, args=(state, given.pages, written, filled, stop))
        writer.start()
        command = [str(Path(sys.executable).parent / "neardup"), "ask", str(state), "--port", "0", "--wait"]
        try:
            while not filled.wait(1):
                if not writer.is_alive():
                    sys.exit("the writer ended")
            alone = rate(written, ALONE_SECONDS)
            with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as service:
                assert service.stderr is not None
                try:
                    url = next(line for line in service.stderr if "serving" in line).split()[2].rstrip(",")
                    before, start = written.value, time.perf_counter()
                    taken = ask(url, given.questions, given.pages)
                    beside = (written.value - before) / (time.perf_counter() - start)
                finally:
                    service.terminate()
            alone = (alone + rate(written, ALONE_SECONDS)) / 2
        finally:
            stop.set()
            writer.join()
    print("| questions | p50 | p99 | worst | writer alone | writer beside questions |\n|---|---|---|---|---|---|")
    p50, p99 = (taken[int(share * (len(taken) - 1))] for share in (0.5, 0.99))
    times = f"{p50:.1f} ms | {p99:.1f} ms | {taken[-1]:.1f} ms"
    print(f"| {len(taken):,} | {times} | {alone:,.0f} pages/s | {beside:,.0f} pages/s |")


if __name__ == "__main__":
    main()
