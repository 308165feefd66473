"""The rules that are compared, and the forms of the default rule: each maps a stream to the pages that it hides."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numba import njit

from neardup.decider import Decider
from neardup.page import Page
from neardup.scheme import Scheme
from neardup.sketch.make_sketches import sketch_pages
from neardup.verdict import Coordinates
from tests.measure.commons.packages import cache_folder
from tests.measure.gate.ablation import STEPS, Step, lacking
from tests.measure.gate.measure import SEED, behind, verdicts_of

#: Rules of this project, side by side.
RULES = ("verified", "tape", "shingling", "simhash", "combined", "site-split", "simhash64")
DEFAULT = RULES[0]
#: The default rule without each of its steps.
DROPPED = tuple(step for step in STEPS if step.name != "nothing")


class Number(NamedTuple):
    """A number of the decider, and values beside its usual one."""

    name: str
    values: tuple[float, ...]


#: The numbers that leave-one-generator-out chooses again.
NUMBERS = (
    Number("tape_min", (0.66, 0.7, 0.78, 0.82)),
    Number("strict_tape_min", (0.85, 0.9, 0.97)),
    Number("path_tape_max", (0.95, 0.99)),
    Number("length_share_min", (0.3, 0.7)),
    Number("content_tape_min", (0.65, 0.85)),
    Number("noise_gaps_max", (1, 4)),
    Number("stamp_words_max", (2, 8)),
    Number("alike_min", (2, 16)),
)


def forms() -> dict[str, Step]:
    """What is run on each stream of one site: name -> numbers of the decider, or a step that is left out."""
    steps = {rule: Step(rule, {"rule": rule}) for rule in RULES}  # type: ignore[dict-item]
    steps |= {f"without {step.name}": step for step in DROPPED}
    for number in NUMBERS:
        steps |= {f"{number.name}={value}": Step(number.name, {number.name: value}) for value in number.values}
    return steps


def sketched(pages: Sequence[Page]) -> list[bytes]:
    """Sketch records of pages in their order."""
    places = [Coordinates(offset=place) for place in range(len(pages))]
    return sketch_pages(pages, Scheme(seed=SEED), coordinates=places, log_times=[0] * len(pages))


class Hidden(NamedTuple):
    """The page behind which a rule hides a page, and the name of the step that decided (`by` of the evidence)."""

    behind: int
    by: str


def decided(records: Sequence[bytes], form: Step) -> dict[int, Hidden]:
    """Page -> how a form of a rule hides it."""
    decider = Decider(Scheme(seed=SEED).digest, **form.numbers)  # type: ignore[arg-type]
    with lacking(form.left_out):
        found = {
            verdict.page_id: Hidden(other, str(verdict.evidence.get("by", "")))
            for verdict in verdicts_of(records, decider)
            if (other := behind(verdict)) is not None
        }
    return found


def hidden(records: Sequence[bytes], form: Step) -> dict[int, int]:
    """Page -> the page behind which a form of a rule hides it."""
    return {page: how.behind for page, how in decided(records, form).items()}


def jaccard(tokens: Sequence[Sequence[int]], size: int = 5, least: float = 0.8) -> dict[int, int]:
    """Exact Jaccard of the sets of shingles: a page is hidden behind the most alike page that is not hidden."""
    names: dict[tuple[int, ...], int] = {}
    sets = []
    for page in tokens:
        shingles = {tuple(page[i : i + size]) for i in range(max(1, len(page) - size + 1))} if len(page) else set()
        sets.append(np.array(sorted({names.setdefault(one, len(names)) for one in shingles}), np.int64))
    ends = np.cumsum([len(one) for one in sets])
    found = _nearest(np.concatenate([*sets, np.zeros(0, np.int64)]), ends, len(names), least)
    return {page: other for page, other in enumerate(found.tolist()) if other >= 0}


@njit
def _nearest(flat, ends, names, least):  # type: ignore[no-untyped-def]
    """Postings of shown pages as linked lists; counts of common shingles by one pass over a page's postings."""
    n = len(ends)
    head = np.full(names, -1, np.int64)
    following = np.full(len(flat), -1, np.int64)
    owner = np.empty(len(flat), np.int64)
    common = np.zeros(n, np.int64)
    out = np.full(n, -1, np.int64)
    for page in range(n):
        start = ends[page - 1] if page else 0
        common[:page] = 0
        for i in range(start, ends[page]):
            at = head[flat[i]]
            while at >= 0:
                common[owner[at]] += 1
                at = following[at]
        best, score = -1, least
        for other in range(page):
            size = ends[other] - (ends[other - 1] if other else 0)
            both = common[other]
            alike = both / (size + ends[page] - start - both) if both else 0.0
            if alike >= score and (best < 0 or alike > score):
                best, score = other, alike
        out[page] = best
        if best < 0:
            for i in range(start, ends[page]):
                owner[i] = page
                following[i] = head[flat[i]]
                head[flat[i]] = i
    return out


#: Installed by `fetch`, in an environment of their own.
PEER_PACKAGES = ("datasketch==2.0.0",)
_PEERS_S_MAX = 1800


def peers(tokens: Sequence[Sequence[int]]) -> dict[str, dict[int, int]]:
    """What the peers hide; nothing where their environment is missing."""
    if not (python := peers_folder() / "bin" / "python").exists():
        return {}
    command = [str(python), "-P", str(Path(__file__).with_name("peer.py"))]
    done = subprocess.run(
        command, input=json.dumps(tokens), capture_output=True, text=True, timeout=_PEERS_S_MAX, check=True
    )
    return {
        PEERS[name]: {int(page): other for page, other in found.items()}
        for name, found in json.loads(done.stdout).items()
    }


def peers_folder() -> Path:
    return cache_folder() / "peers"


PEERS = {"datasketch": "datasketch MinHash LSH", "text_dedup": "text-dedup's method"}
#: Rules that read texts instead of sketches.
TEXT_RULES = ("exact Jaccard", *PEERS.values())


def of_texts(tokens: Sequence[Sequence[int]]) -> dict[str, dict[int, int]]:
    """What each of TEXT_RULES hides that can be run here."""
    return {TEXT_RULES[0]: jaccard(tokens), **peers(tokens)}
