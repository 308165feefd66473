"""How long the partition of a large corpus takes: generated documents of 10 kB, three in ten near-duplicates.

    nice python -m tests.measure.bench.partition build/partition --documents 100000

A document is drawn anew, or is one of the last thousand with some sentences written anew. Told are the seconds of the
whole command, processor seconds of all its processes, the most memory that one of them took, and the load meanwhile.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from random import Random

from tests.measure.gate.language import Language

NEAR, EDITED, RECENT = 0.3, 4, 1000
_SENTENCES = 86  # of some 115 characters


def write_corpus(path: Path, documents: int, seed: int = 1) -> None:
    """The documents as JSON lines, each with its item."""
    random, language = Random(seed), Language(seed)
    recent: list[tuple[int, list[str]]] = []
    with path.open("w") as out:
        for number in range(documents):
            if recent and random.random() < NEAR:
                item, sentences = random.choice(recent)
                sentences = list(sentences)
                for at in random.sample(range(len(sentences)), EDITED):
                    sentences[at] = _sentence(language, random)
            else:
                item, sentences = number, [_sentence(language, random) for _ in range(_SENTENCES)]
                recent = [*recent[-RECENT:], (item, sentences)]
            paragraphs = (" ".join(sentences[at : at + 5]) for at in range(0, len(sentences), 5))
            body = "".join(f"<p>{text}</p>" for text in paragraphs)
            line = {"url": f"http://s{number % 997}.example/{item}/{number}", "body": body, "content_type": "text/html"}
            out.write(json.dumps(line) + "\n")


def _sentence(language: Language, random: Random) -> str:
    return " ".join(language.draw(random, random.randint(9, 19))).capitalize() + "."


def main() -> None:
    options = argparse.ArgumentParser(description="Times the partition of generated documents.")
    options.add_argument("out", type=Path)
    options.add_argument("--documents", type=int, default=100_000)
    options.add_argument("--workers", type=int, default=2)
    given = options.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    corpus = given.out / f"documents-{given.documents}.jsonl"
    if not corpus.exists():
        write_corpus(scratch := corpus.with_suffix(".part"), given.documents)
        scratch.rename(corpus)
    command = [
        sys.executable,
        "-c",
        "from streams.commands import main; main()",
        "partition",
        corpus,
        "--method=tlcs",
        "--again",
        "--json",
    ]
    loads, began = [os.getloadavg()[0]], time.monotonic()
    ended = subprocess.run(
        [*command, "--out", given.out / "sets", "--workers", str(given.workers)], check=True, capture_output=True
    )
    seconds = time.monotonic() - began
    loads.append(os.getloadavg()[0])
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    made = json.loads(ended.stdout)
    print(
        f"{given.documents:,} documents of {corpus.stat().st_size / given.documents / 1000:.1f} kB: {seconds:,.0f} s, "
        f"{used.ru_utime + used.ru_stime:,.0f} s of processors, {used.ru_maxrss / 1024:,.0f} MB in the largest; "
        f"load {loads[0]:.1f} before, {loads[1]:.1f} after; {made['sets']:,} sets"
    )


if __name__ == "__main__":
    main()
