"""Searches for inputs that break what reads bytes: python -m tests.fuzz [--minutes 10] [--only html,lines]

Each target has a process of its own and its share of the time: libFuzzer's search by coverage, through atheris, over
all Python of `neardup` and `streams`; `tests.fuzz.mutating` where atheris does not install. Where the reading is a
kernel's, the kernel is run as the Python that it is written in; the others are compiled, with their bounds checked, and
a search's corpus is played through those in the end. What is found lies in build/fuzz/TARGET/found; put it into
tests/fuzz/found/TARGET, where `make test` plays it.
"""

import argparse
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "build" / "fuzz"
#: Their kernels are searched, as Python: slow, so with short inputs.
IN_PYTHON = ("html", "content_type")
BYTES_MAX, BYTES_MAX_IN_PYTHON = 4_096, 300
#: One input that takes longer is a finding; as Python, kernels are some hundred times slower.
SECONDS_MAX, SECONDS_MAX_IN_PYTHON = 5, 60
MEGABYTES_MAX = 2_048
_KERNEL = re.compile(r"^@\w*kernel\b", re.MULTILINE)


def search(target: str) -> None:
    """The child process: arguments are libFuzzer's."""
    try:
        import atheris
    except ImportError:
        return search_without(target, sys.argv[1:])

    compiled = [] if os.environ.get("NUMBA_DISABLE_JIT") else modules_of_kernels()
    with atheris.instrument_imports(include=["neardup", "streams"], exclude=compiled, enable_loader_override=False):
        from tests.fuzz.seeds import SEEDS
        from tests.fuzz.targets import TARGETS
    for seed in SEEDS[target]():
        TARGETS[target](seed)  # compiles what it needs: no input is to wait for that
    atheris.Setup(sys.argv, TARGETS[target])
    atheris.Fuzz()
    return None


def modules_of_kernels() -> list[str]:
    """The modules with compiled functions, which bear no probes."""
    files = (path for path in (ROOT / "neardup").rglob("*.py") if _KERNEL.search(path.read_text()))
    return [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in sorted(files)]


def search_without(target: str, arguments: Sequence[str]) -> None:
    """The same, as far as it goes, where there is no atheris."""
    from tests.fuzz.mutating import search as searched
    from tests.fuzz.targets import TARGETS

    *options, corpus = arguments
    given = dict(option.partition("=")[::2] for option in options)
    count = searched(
        TARGETS[target],
        Path(corpus),
        Path(given["-artifact_prefix"]),
        seconds=float(given["-max_total_time"]),
        bytes_max=int(given["-max_len"]),
        input_seconds_max=float(given["-timeout"]),
        chance=random.Random(),
    )
    print(f"stat::number_of_executed_units: {count}", file=sys.stderr)


def play(target: str, folder: Path) -> None:
    """The child process: each file once, as `make test` does."""
    from tests.fuzz.targets import TARGETS

    for path in sorted(folder.iterdir()):
        try:
            TARGETS[target](path.read_bytes())
        except Exception as error:
            raise SystemExit(f"{target}: {path}: {type(error).__name__}: {error}") from error


def run(target: str, seeds: list[bytes], seconds: int, numba: dict[str, str]) -> bool:
    """Whether all went well."""
    corpus, found = OUT / target / "corpus", OUT / target / "found"
    for folder in (corpus, found):
        folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds):
        (corpus / f"seed-{number}").write_bytes(seed)
    slow = target in IN_PYTHON
    options = [
        f"-max_total_time={seconds}",
        f"-max_len={BYTES_MAX_IN_PYTHON if slow else BYTES_MAX}",
        f"-timeout={SECONDS_MAX_IN_PYTHON if slow else SECONDS_MAX}",
        f"-rss_limit_mb={MEGABYTES_MAX}",
        f"-artifact_prefix={found}/",
        "-print_final_stats=1",
        "-verbosity=0",
    ]
    child = [sys.executable, "-m", "tests.fuzz", "--search", target, "--", *options, str(corpus)]
    environment = {**os.environ, **({"NUMBA_DISABLE_JIT": "1"} if slow else numba)}
    searched = subprocess.run(child, cwd=ROOT, env=environment, capture_output=True, text=True)
    output = [line for line in searched.stderr.splitlines() if "number_of_executed_units" in line]
    count = output[0].split()[-1] if output else "?"
    print(f"{target}: {count} inputs, {len(list(corpus.iterdir()))} kept", flush=True)
    if searched.returncode:
        print(searched.stdout[-3_000:])
        print("\n".join(line for line in searched.stderr.splitlines()[-20:] if not line.startswith("INFO")))
        return False
    played = [sys.executable, "-m", "tests.fuzz", "--play", target, str(corpus)]
    return subprocess.run(played, cwd=ROOT, env={**os.environ, **numba}).returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0, help="for all together")
    parser.add_argument("--only", default="", help="targets, by comma")
    given = parser.parse_args()
    from tests.fuzz.seeds import SEEDS  # not where a search is to instrument what this imports

    chosen = [name for name in given.only.split(",") if name] or list(SEEDS)
    began = time.monotonic()
    cache = os.environ.get("NUMBA_CACHE_DIR", str(Path(sys.prefix) / "numba-boundscheck"))
    numba = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": cache}
    good = [run(target, SEEDS[target](), max(1, int(given.minutes * 60 / len(chosen))), numba) for target in chosen]
    print(f"{len(chosen)} targets in {time.monotonic() - began:.0f} s, {good.count(False)} with findings")
    return 0 if all(good) else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--search"]:
        name = sys.argv[2]
        sys.argv = [sys.argv[0], *sys.argv[4:]]
        search(name)
    elif sys.argv[1:2] == ["--play"]:
        play(sys.argv[2], Path(sys.argv[3]))
    else:
        sys.exit(main())
