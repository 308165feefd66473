"""Rows of texts: to sketches and to verdicts, against peers that start from the same strings."""

import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from neardup import open_index
from neardup.pairs.scoring import compare
from neardup.scheme import Scheme
from neardup.sketch.make_sketches import sketch_pages
from neardup.sketch.sketch_record import Sketch
from neardup.verdict import Verdict
from tests.measure.bench.crawl import SHARES, Crawl, Found, found, merged_by
from tests.measure.bench.documents import copies, plain_pages, texts
from tests.measure.bench.peers import PACKAGES, Peers
from tests.measure.bench.table import Row, in_turn, seconds

_REACH = {"datasketch": "40 x", "rensa": "25 x", "gaoya": "12 x"}
#: Peers that judge a stream of texts.
STREAMS = ("rensa", "gaoya", "datasketch")
_STREAM_REACH = {("rensa", 0.1): "3 x", ("rensa", 0.3): "2.5 x", ("rensa", 0.5): "2 x"}
_STREAM_TEXTS, _STREAM_ROUNDS = 10_000, 3
_BATCH = 512
#: A peer that finds fewer planted pairs, or calls more unrelated ones similar, does not count.
_FOUND_MIN, _WRONG_MAX = 0.9, 0.02
#: A peer that takes so long for all texts is timed once more, not five times.
_SLOW_S = 4.0


def _verdict_of_peer(peer: dict[str, float]) -> tuple[str, str]:
    check = f"found {peer['found']:.1%}, wrong {peer['wrong']:.1%}"
    good = peer["found"] >= _FOUND_MIN and peer["wrong"] <= _WRONG_MAX
    return check, "" if good else f"peer {check}"


def sketches(peers: Peers, missing: dict[str, str], scheme: Scheme) -> Iterator[Row]:
    """Texts of 350 words to sketches, a core: ours are whole records, theirs 84 minvalues of shingles of 8 words."""
    originals = texts(900)
    planted = copies(originals[:100])
    everything = [*originals, *planted]
    pages = plain_pages(everything)
    records = [Sketch(record) for record in sketch_pages(pages, scheme)]
    pairs = [(i, 900 + i) for i in range(100)]
    found = sum(compare(records[a], records[b]).tape_score >= 0.74 for a, b in pairs)
    wrong = sum(compare(records[a], records[a + 1]).tape_score >= 0.74 for a, _ in pairs)
    ours_check = f"ours found {found}, wrong {wrong} of 100"
    with tempfile.TemporaryDirectory() as folder:
        peers.load(everything, len(planted), Path(folder))
        for name in PACKAGES:
            row = Row(f"text to sketch, a core, against {name}", "us a text", 0.0, reach=_REACH.get(name, ""))
            try:
                if name in missing:
                    raise RuntimeError(missing[name])
                answer = peers.ask(run=name)  # warm, and its check
                ours, peer = in_turn(
                    [
                        lambda: seconds(lambda: sketch_pages(pages, scheme)),
                        lambda name=name: peers.ask(run=name)["seconds"],
                    ],
                    5 if answer["seconds"] < _SLOW_S else 1,
                )
            except RuntimeError as error:
                row.void = str(error)
            else:
                row.ours, row.peer = 1e6 * ours / len(pages), 1e6 * peer / len(pages)
                row.peer_name, row.ratio = name, peer / ours
                check, row.void = _verdict_of_peer(answer)
                row.check = f"{ours_check}; theirs {check}"
                if found < 95 or wrong > 1:
                    row.void = ours_check
            yield row


class _Streams:
    """The texts of a crawl, judged one after another by the library with its index on disk, and by the peers."""

    def __init__(self, peers: Peers, scheme: Scheme, crawl: Crawl, folder: Path) -> None:
        self.crawl, self.scheme, self.folder = crawl, scheme, folder
        self.pages = list(self.crawl.pages(html=False))
        #: The peers cannot be given a page that is gone.
        self.numbers = [number for number, page in enumerate(self.pages) if page.body is not None]
        self.peers, self.found = peers, dict[str, Found]()
        peers.load([self.crawl.text(number) for number in self.numbers], 0, folder)

    def ours(self) -> float:
        """Processor's seconds until all verdicts are on disk."""
        verdicts: list[Verdict] = []
        with tempfile.TemporaryDirectory(dir=self.folder) as folder, open_index(folder, scheme=self.scheme) as index:
            began = time.process_time()
            for first in range(0, len(self.pages), _BATCH):
                verdicts += index.add(self.pages[first : first + _BATCH])
            index.flush()
            spent = time.process_time() - began
        self.found["neardup"] = found(self.crawl, merged_by(json.loads(each.to_json()) for each in verdicts))
        return spent

    def theirs(self, name: str) -> float:
        answer = self.peers.ask(stream=name)
        merged = {self.numbers[number]: self.numbers[other] for number, other in answer["found"]}
        self.found[name] = found(self.crawl, merged)
        return float(answer["seconds"])


def verdicts(
    peers: Peers,
    missing: dict[str, str],
    scheme: Scheme,
    *,
    count: int = _STREAM_TEXTS,
    shares: Sequence[float] = SHARES,
    rounds: int = _STREAM_ROUNDS,
) -> Iterator[Row]:
    """Texts of 350 words to durable verdicts, by processor time: ours on disk, the peers' with an index in memory."""
    present = [name for name in STREAMS if name not in missing]
    for repeats in shares:
        with tempfile.TemporaryDirectory() as folder:
            texts = _Streams(peers, scheme, Crawl(count, repeats=repeats), Path(folder))
            ours, *theirs = in_turn([texts.ours, *(partial(texts.theirs, name) for name in present)], rounds)
        of_ours = texts.found["neardup"]
        for name, peer in zip(present, theirs, strict=True):
            title = f"{count:,} texts to verdicts on disk, {repeats:.0%} repeats, against {name} in memory"
            row = Row(title, "us a text", 1e6 * ours / count, 1e6 * peer / count, name, peer / ours)
            row.reach = _STREAM_REACH.get((name, repeats), "")
            row.check = f"ours found {of_ours}; theirs {texts.found[name]}"
            row.void = f"ours found {of_ours}" if of_ours.share < _FOUND_MIN else ""
            yield row
