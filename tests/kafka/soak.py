"""Exactly once for minutes: publishes a large corpus while killing sketchers, matcher and broker, and compares all.

This is the third of three levels: `tests/streams/roles/test_schedules.py`, `tests/kafka/test_roles.py`, and this one,
where the machine chooses the instruction at which a process dies.

    python tests/kafka/soak.py [--minutes 5] [--seed N] [--driver kills|siege] [--pages ARCHIVE.tar.xz ...]

The seed chooses the corpus, the faults with their targets, and after how many pages they come; run it again with the
seed that is printed. At what instruction a process dies is up to the machine. About two thirds of the time go to the
damage, the rest to the
comparison: of all pages with those published, of all sketches with those of the pages, of all verdicts as an indexer
read them with a fold of the log in memory. Ends with 1 and says what differs. All processes end with it. A second
driver, siege.py, does what this one does not.
"""

import argparse
import logging
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import chain, count, islice
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = map(str, (ROOT, Path(__file__).parent))  # before a package `tests` of another distribution

from broker import kafka  # noqa: E402
from corpus import Corpus, Event, real_pages  # noqa: E402
from line import Line  # noqa: E402
from supervised import Keeper, Publisher, Watch, check, judged_all  # noqa: E402

from streams.config.settings import Topics  # noqa: E402

PARTITIONS = 4
#: Pages published ahead of the verdicts; then publishing waits.
AHEAD_MAX = 6_000
#: A deleted index is folded again from the log's start, in silence: only while that is short.
FOLD_AGAIN_MAX = 30_000
#: Of the whole time; the rest is for settling and comparing.
DAMAGE_SHARE = 0.6
#: A line on which nothing moves for so long is stuck. Longer than the watchdog of a hanging transaction.
STUCK_SECONDS = 180.0
#: After so many seconds the state of all roles is printed.
STILL_SECONDS = 25.0

SKETCHERS = ("sketch-static", "sketch-dynamic")
SETTINGS: Mapping[str, Any] = {
    "batch_pages": 128,
    "batch_ms": 20,
    "match_messages": 8,
    "flush_ms": 2_000,
    "transaction_deadline_ms": 20_000,
}


#: Pages between two damages, at most.
PAGES_MAX = 2_500


class Soak:
    """One run. settings: of all roles."""

    settings: Mapping[str, Any] = SETTINGS

    def __init__(self, cluster: Any, folder: Path, seed: int, archives: list[Path], say: Callable[[str], None]) -> None:
        self.chance = random.Random(seed)
        self._cluster, self._say = cluster, say
        prefix = uuid.uuid4().hex[:12]
        names = Topics(f"{prefix}.pages", f"{prefix}.rejected", f"{prefix}.sketches", f"{prefix}.verdicts")
        self.line = Line(cluster.bootstrap, names, folder, partitions=PARTITIONS, **self.settings)
        del self.line._client  # unused here, and it would tell of each outage on stderr
        Line.open.remove(self.line)  # which a test that fails would describe by that client
        self.keeper = Keeper(self.line)
        self.publisher = self.producers()
        self.watch = Watch(self.line)
        self.done: Counter[str] = Counter()
        self._events = _events(seed, archives)

    def producers(self) -> Publisher:
        return Publisher(self.line)

    def actions(self) -> dict[Callable[[], None], int]:
        """What may be done, each as often as its number says."""
        return {
            self.kill_sketcher: 4,
            self.kill_matcher: 4,
            self.stop_sketcher: 2,
            self.stop_matcher: 2,
            self.freeze_sketcher: 2,
            self.freeze_matcher: 2,
            self.kill_broker: 2,
            self.kill_everything: 1,
            self.crash_indexer: 2,
            self.lose_index: 1,
            self.second_matcher: 1,
        }

    def run(self, seconds: float, actions: range) -> dict[str, int]:
        """Damage for a share of the time, so many times or fewer, then the comparison. Raises AssertionError."""
        began = time.monotonic()
        self.keeper.start(SKETCHERS[0], member="static")
        self.keeper.start(SKETCHERS[1])
        self.keeper.start("match")
        while self.done.total() < actions.start or (
            time.monotonic() - began < seconds * DAMAGE_SHARE and self.done.total() < actions.stop
        ):
            self._publish(self.chance.randrange(100, PAGES_MAX))
            possible = self.actions()
            (action,) = self.chance.choices(list(possible), list(possible.values()))
            self._do(action)
        self._publish(500)
        self.publisher.flush()
        damaged = time.monotonic()
        judged_all(self.keeper, self.publisher, self.watch)
        self.keeper.end()
        self.watch.close()
        self._say(
            f"{self.publisher.pages} pages published and judged in {time.monotonic() - began:.0f} s, "
            f"the last {time.monotonic() - damaged:.0f} s of them after the damage; now comparing"
        )
        return check(self.line, self.publisher, self.watch)

    def close(self) -> None:
        self.keeper.kill_all()
        for role in self.line._roles:
            role.kill()

    def _do(self, action: Callable[[], None]) -> None:
        name = action.__name__.replace("_", " ")
        self._say(f"{self.publisher.pages:>8} pages published, {self.watch.pages:>8} judged: {name}")
        self.done[name] += 1
        action()

    def _publish(self, pages: int) -> None:
        """So many more pages, not too far ahead of the verdicts; roles that ended begin again."""
        for event in islice(self._events, pages):
            self.publisher.send(event)
            if self.publisher.pages % 50 == 0:
                self._wait_for_room()

    def _wait_for_room(self) -> None:
        moved, seen, shown = time.monotonic(), self.watch.pages, False
        while True:
            self.keeper.look()
            self.watch.alive()
            if self.publisher.pages - self.watch.pages <= AHEAD_MAX:
                return
            self.publisher.wait(0.02)
            self.watch.wait(0.02)
            now = time.monotonic()
            if self.watch.pages != seen:
                moved, seen = now, self.watch.pages
            if now - moved > STILL_SECONDS and not shown:
                shown = True
                self._say(f"no verdict for {STILL_SECONDS:.0f} s\n{self.keeper.where()}")
            assert now - moved < STUCK_SECONDS, f"no verdict for {STUCK_SECONDS:.0f} s: {self.keeper.ended[-3:]}"

    # The faults and their targets. A role that was killed or stopped starts again at the next check.

    def kill_sketcher(self) -> None:
        self.keeper.kill(self.chance.choice(SKETCHERS))

    def kill_matcher(self) -> None:
        self.keeper.kill("match")

    def stop_sketcher(self) -> None:
        self.keeper.stop(self.chance.choice(SKETCHERS))

    def stop_matcher(self) -> None:
        self.keeper.stop("match")

    def freeze_sketcher(self) -> None:
        """Long enough to be taken for dead: its messages arrive late."""
        self._freeze(self.chance.choice(SKETCHERS), self.chance.randrange(500, 3_000))

    def freeze_matcher(self) -> None:
        self._freeze("match", self.chance.randrange(100, 2_000))

    def _freeze(self, name: str, pages: int) -> None:
        role = self.keeper.role(name)
        if not role.running:
            return
        role.signal(signal.SIGSTOP)
        try:
            self._publish_ahead(pages)
        finally:
            role.signal(signal.SIGCONT)

    def _publish_ahead(self, pages: int) -> None:
        """Without waiting for verdicts, which may not come now."""
        for event in islice(self._events, pages):
            self.publisher.send(event)

    def kill_broker(self) -> None:
        self._cluster.kill()
        self._publish_ahead(self.chance.randrange(50, 500))
        self._cluster.restart()

    def kill_everything(self) -> None:
        self._cluster.kill()
        for name in self.keeper.names():
            self.keeper.kill(name)
        self._cluster.restart()

    def crash_indexer(self) -> None:
        self.watch.crash()

    def lose_index(self) -> None:
        if self.publisher.pages > FOLD_AGAIN_MAX:
            return self.kill_matcher()
        self.keeper.kill("match")
        shutil.rmtree(self.line.settings.state, ignore_errors=True)
        return None

    def second_matcher(self) -> None:
        """With an index of its own: it fences the first, which is then started again and fences it."""
        if self.publisher.pages > FOLD_AGAIN_MAX:
            return self.kill_matcher()
        other = str(self.line.folder / f"state-{self.done.total()}")
        role = self.line.start("match", settings={"state": other})
        self._publish(self.chance.randrange(200, 1_000))
        role.kill()
        shutil.rmtree(other, ignore_errors=True)
        return None


def _events(seed: int, archives: list[Path]) -> Iterator[Event]:
    """Generated pages, every third a real one while there are any."""
    corpus = Corpus(seed)
    made = map(corpus.event, count())
    real = chain.from_iterable(map(real_pages, archives))
    for page in real:
        yield from islice(made, 2)
        yield page
    yield from made


def soak(
    folder: Path,
    *,
    driver: type[Soak] = Soak,
    seconds: float,
    seed: int,
    archives: list[Path] | None = None,
    say: Callable[[str], None] = print,
    actions: range = range(sys.maxsize),
) -> Soak:
    """One run with a broker of its own in `folder`. Raises AssertionError, after it has shown the roles' output.

    actions: so many things are done to the line at least, however long they take, and at most.
    """
    with kafka.Cluster(folder / "kafka") as cluster:
        run = driver(cluster, folder, seed, archives or [], say)
        try:
            counts = run.run(seconds, actions)
        except BaseException:
            for role in run.line._roles[-8:]:
                say(f"--- {role.log.name}\n{role.output()[-4_000:]}")
            raise
        finally:
            run.close()
    say(f"done: {dict(run.done.most_common())}; the indexer began anew {run.watch.crashes} times")
    say(f"roles that ended by themselves and began again: {len(run.keeper.ended)}")
    for ended in run.keeper.ended:
        say(f"  {ended.name} ({ended.code}): {ended.last_line[:200]}")
    say(f"verdicts: {dict(sorted(run.watch.kinds.items()))}")
    say(f"equal, none missing, none twice: {counts}")
    return run


def _leave(*_: object) -> None:
    raise KeyboardInterrupt


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=5.0, help="about so long all in all")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(3), "big"))
    parser.add_argument(
        "--pages", type=Path, nargs="*", help="tar archives of HTML (default: ../shared/data, if there)"
    )
    parser.add_argument("--driver", choices=["kills", "siege", "both"], default="both", help="both: each half the time")
    given = parser.parse_args()
    from siege import Siege

    drivers = {"kills": [Soak], "siege": [Siege], "both": [Soak, Siege]}[given.driver]
    archives = sorted((ROOT.parent / "shared" / "data").glob("*.tar.xz")) if given.pages is None else given.pages
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s  {text}", flush=True)

    logging.getLogger("neardup.kafka").addHandler(logging.NullHandler())  # of this process; roles have their own logs
    signal.signal(signal.SIGTERM, _leave)
    say(f"seed {given.seed}, {given.minutes:g} minutes, {len(archives)} archives of real pages")
    try:
        for driver in drivers:
            seconds = given.minutes * 60 / len(drivers)
            with tempfile.TemporaryDirectory(prefix="neardup-soak-") as folder:
                soak(Path(folder), driver=driver, seconds=seconds, seed=given.seed, archives=archives, say=say)
    except KeyboardInterrupt:
        return 130
    except AssertionError as error:
        say(f"FAILED with seed {given.seed}: {error}")
        return 1
    return 0


if __name__ == "__main__":
    from soak import main  # of the module that the second driver knows

    sys.exit(main())
