"""Rows of texts: to sketches and to verdicts, against peers that start from the same strings."""

import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from neardup import open_index
from neardup.decider import Decider
from neardup.fold import fold
from neardup.index.column_families import Family
from neardup.index.rocks import RocksStore
from neardup.page import Page
from neardup.pairs.scoring import compare
from neardup.scheme import Scheme
from neardup.sketch.make_sketches import sketch_pages
from neardup.sketch.sketch_record import Sketch
from neardup.verdict import Kind, Verdict
from tests.measure.bench.documents import copies, plain_pages, texts
from tests.measure.bench.peers import PACKAGES, Peers
from tests.measure.bench.table import Row, in_turn, seconds

_REACH = {"datasketch": "40 x", "rensa": "25 x", "gaoya": "12 x"}
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


def _stream(pages: Sequence[Page], scheme: Scheme, folder: Path, *, ahead: bool) -> tuple[float, list[Verdict], int]:
    """Seconds, verdicts, and bytes on disk; ahead: a second thread sketches the next batch."""
    parts = [pages[i : i + _BATCH] for i in range(0, len(pages), _BATCH)]
    reported: list[Verdict] = []
    if not ahead:
        index = open_index(folder / "index", scheme=scheme)

        def run() -> None:
            for part in parts:
                reported.extend(index.add(part))
            index.flush()

        taken = seconds(run)
        index.close()
    else:
        store, decider = RocksStore(folder / "index"), Decider(scheme=scheme.digest)

        def run() -> None:
            with ThreadPoolExecutor(1) as pool:
                coming = pool.submit(sketch_pages, parts[0], scheme)
                first = 0
                for number, part in enumerate(parts):
                    records = coming.result()
                    if number + 1 < len(parts):
                        coming = pool.submit(sketch_pages, parts[number + 1], scheme)
                    outcome = fold(list(enumerate(records, first)), store, decider)
                    store.write({**outcome.writes, Family.META: {b"next": b"%d" % (first + len(part))}})
                    reported.extend(outcome.verdicts)
                    first += len(part)
            store.flush()

        taken = seconds(run)
        store.close()
    size = sum(path.stat().st_size for path in (folder / "index").rglob("*.sst"))
    return taken, reported, size


def verdicts(peers: Peers, missing: dict[str, str], scheme: Scheme) -> list[Row]:
    """Texts of 350 words to verdicts: ours with an index on disk, rensa's with one in memory."""
    originals = texts(9_000, seed=5)
    everything = [*originals, *copies(originals[:1_000], seed=6)]
    pages = plain_pages(everything)
    name = "text to verdict, index on disk, against rensa's in memory"
    row = Row(f"{name}, a core", "texts/s", 0.0, reach="1 x")
    both = Row(f"{name}, two threads", "texts/s", 0.0, reach="2 x")
    last: list[tuple[float, list[Verdict], int]] = []

    def ours(ahead: bool) -> float:
        with tempfile.TemporaryDirectory() as folder:
            last.append(_stream(pages, scheme, Path(folder), ahead=ahead))
        return last[-1][0]

    with tempfile.TemporaryDirectory() as folder:
        peers.load(everything, 1_000, Path(folder))
        try:
            if "rensa" in missing:
                raise RuntimeError(missing["rensa"])
            emitted = peers.ask(run="rensa_verdicts")
            one, two, peer = in_turn(
                [lambda: ours(False), lambda: ours(True), lambda: peers.ask(run="rensa_verdicts")["seconds"]], 3
            )
        except RuntimeError as error:
            row.void = both.void = str(error)
            return [row, both]
    check, void = _verdict_of_peer(emitted)
    found = sum(
        verdict.verdict is Kind.NEAR_DUPLICATE and verdict.representative is not None
        and verdict.representative.page_id == verdict.page_id - 9_000
        for verdict in last[-1][1][9_000:]
    )  # fmt: skip
    wrong = sum(verdict.verdict is not Kind.UNIQUE for verdict in last[-1][1][:9_000])
    same = [v.verdict for v in last[-1][1]] == [v.verdict for v in last[-2][1]]
    for line, taken in ((row, one), (both, two)):
        line.ours, line.peer, line.peer_name = len(pages) / taken, len(pages) / peer, "rensa, one thread"
        line.ratio, line.void = peer / taken, void
        line.check = f"ours found {found} of 1,000, wrong {wrong} of 9,000; theirs {check}"
        if found < 950 or wrong > 9:
            line.void = line.check
    row.notes = {"disk bytes a page": last[-1][2] / len(pages), "threads agree": "yes" if same else "no"}
    return [row, both]
