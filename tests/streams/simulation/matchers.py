"""The matcher of a stream, those before it, its folder, and what happens to them."""

import zlib
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

import orjson

from neardup.errors import InvariantBroken, NeardupError
from neardup.index.memory import MemoryStore
from neardup.sketch.takedown_hashes import of_prefix, of_site, of_url
from streams.formats.message import Forget, NewDecider, encode_control
from streams.pipeline.control_records import OperatorDecisions, decider_changes_in
from streams.pipeline.matcher import Matcher, folded_to
from streams.roles.match_role import MatchRole
from streams.roles.match_start import start_matcher
from streams.roles.match_start_checks import (
    MatcherPorts,
    StartOptions,
    VerdictsEnd,
    check_replay,
    log_advice,
    verdicts_end,
)
from streams.verdicts.replay import Present, Stretch, replayed
from tests.streams.scripted import ScriptedLog, ScriptedTopic, Transactions
from tests.streams.simulation.checkpoints import JoinedCheckpoints
from tests.streams.simulation.folder import Disk, Folder
from tests.streams.simulation.ground import DECIDERS, SAMPLES, Crash, Ground, Wrong, decided
from tests.streams.simulation.ledger import SCHEME
from tests.streams.simulation.sketchers import Sketchers


class CountedTransactions(Transactions):
    """Keeps what goes to a topic that was recreated since this matcher began."""

    def __init__(self, ground: Ground, group: str) -> None:
        self._ground = ground
        super().__init__(ground.broker, ground.names.sketches, ground.names.verdicts, group, around=ground.hook)

    def _append(self, topic: ScriptedTopic, verdicts: Sequence[tuple[bytes, bytes]]) -> None:
        super()._append(topic, verdicts)
        if topic.id != self.topic_ids.sink:
            emitted = [orjson.loads(value) for _, value in verdicts]
            self._ground.strays.setdefault(topic.id, Counter()).update((each["page_id"], each["n"]) for each in emitted)


class Matchers(Sketchers):
    """past_matchers: fenced ones. accept_lost, new_decider: options of the next start. copy: of a folder."""

    def __init__(self, seed: int) -> None:
        self.matcher: MatchRole | None = None
        self.past_matchers: list[tuple[MatchRole, Folder]] = []
        self.folder = Folder(Disk())
        self.copy: Folder | None = None
        self.accept_lost = self.new_decider = False
        super().__init__(seed)

    def start_matcher(self) -> None:
        """Where one is at work, the new one takes over from it: with what is on its disk, as if that was copied."""
        folder = self.folder
        folder.store.around = self.hook

        def start() -> None:
            names = self.names
            for name in (names.sketches, names.verdicts):
                self.broker.topic(name)
            group = self.settings.group_of("match")
            verdicts = CountedTransactions(self, group)
            log = ScriptedLog(self.broker, names.sketches)
            ports = MatcherPorts(log, log.messages, verdicts, self.newest, self.say)
            lost, new = self.accept_lost, self.new_decider
            if lost:
                self.accept(verdicts)
            if self.checkpoints.restore(self.settings, folder, log, self.decider, self.runtime, active=False):
                self.happened["restored"] += 1
            made = start_matcher(
                ports,
                folder,
                StartOptions(self.decider, new, lost),
                self.runtime,
                checkpoints=self.checkpoints.make(self.settings, folder, log, self.runtime),
            )
            self.accept_lost = self.new_decider = False
            self.matcher = made
            self.complaints.pop("match", None)  # an active matcher needs no operator

        self.matcher = None
        try:
            self.attempt("match", start)
        except Crash:
            self.crash_matcher()

    def heed_checkpoints(self) -> None:
        """An operator reads in the log of the matcher why no checkpoint was made."""
        made = self.matcher._checkpoints if self.matcher is not None else None
        failed = made.refusal if isinstance(made, JoinedCheckpoints) else ""
        if "name another folder, or remove those" in failed:
            self.checkpoints.clear(self.settings)
            self.happened["removed checkpoints of another log"] += 1
        elif "No space left on device" in failed:
            self.folder.store.full = False
        elif failed and "Not a directory" not in failed:
            raise Wrong(f"checkpoints: {failed}")

    def replay(self, start: int, stop: int, name: str) -> None:
        """`neardup replay --from START --to STOP --to-topic NAME`: no transaction, and nothing that runs is touched."""
        topic = self.broker.topic(name)
        log = ScriptedLog(self.broker, self.names.sketches)
        words = decider_changes_in(log.messages(0))
        first = words[0][1].before if words else self.folder.kept or self.decider
        known = self.broker.committed(self.settings.group_of("match"), log.topic.name, 0)
        judge = Matcher(
            MemoryStore(),
            first,
            decided=OperatorDecisions(log.messages),
            log=log.topic.id.hex(),
            generation=self.settings.generation,
        )
        check_replay(log.topic.id.hex(), first, judge, words, self.newest(), known)
        if topic.id in self.asked_again or (known is not None and known.topic_ids is None):
            # By an offset that was set by hand, and now by this: with another index each tells them.
            self.asked_again.setdefault(topic.id, []).append(range(start, stop))
        self.replayed.add(topic.id)
        stretch = Stretch(start, stop)
        present = Present(log.topic.id.hex(), self.settings.generation)
        for held in topic.partitions:
            for pair in held.records[held.begin :]:
                if pair:
                    present.add(orjson.loads(pair[1]))  # type: ignore[index]
        with log_advice(judge):
            for verdicts in replayed(log.messages(0), judge, stretch):
                for verdict in present.missing(verdicts):
                    key = verdict.url.encode()
                    topic.partitions[zlib.crc32(key) % len(topic.partitions)].append((key, verdict.to_json()))

    def accept(self, verdicts: Transactions) -> None:
        """Verdicts that the present topic lacks are no longer due, up to the known position."""
        known = verdicts.committed()
        upto = max(known.offset if known else 0, folded_to(self.folder.store))
        self.accepted[verdicts.topic_ids.sink] = max(upto, self.accepted.get(verdicts.topic_ids.sink, 0))

    def newest(self, whole: bool = False) -> VerdictsEnd:
        topic = self.broker.topic(self.names.verdicts)
        values = {partition: orjson.loads(pair[1]) for partition, pair in topic.newest().items()}  # type: ignore[index]
        if whole:
            for number in values:
                held = topic.partitions[number]
                every = [orjson.loads(pair[1]) for pair in held.records[held.begin :] if pair]  # type: ignore[index]
                values[number] = max(every, key=lambda verdict: verdict["page_id"])
        return verdicts_end(values, {number: held.begin for number, held in enumerate(topic.partitions)})

    def say(self, word: bytes) -> int:
        offset = self.log.append(word)
        self.hook("emitted")
        return offset

    def match(self) -> None:
        if self.matcher is None:
            return
        at_work = self.matcher
        try:
            if not self.attempt("match", at_work.round) and self.matcher is at_work:
                self.end_matcher()
        except Crash:
            if self.matcher is at_work:
                self.crash_matcher()

    def end_matcher(self) -> None:
        """It closes its folder in order."""
        self.matcher, folder = None, self.folder
        with suppress(NeardupError, Crash):
            folder.store.flush()
        if self.folder is folder:
            self.folder = folder.copied()

    def crash_matcher(self) -> None:
        self.matcher = None
        full = self.folder.store.full
        self.folder = self.folder.copied()
        self.folder.store.full = full

    def stop_matcher(self) -> None:
        if self.matcher is not None:
            self.end_matcher()

    def second_matcher(self) -> None:
        """Another one takes over, with a folder of its own that is empty or as old as the last flush."""
        if self.matcher is not None:
            self.past_matchers.append((self.matcher, self.folder))
        kept = self.folder.copied() if self.chance.random() < 0.7 else Folder(Disk())
        self.folder = kept
        self.start_matcher()

    def wake_past_matcher(self) -> None:
        if self.past_matchers:
            old, folder = self.past_matchers[-1]
            if folder is self.folder:
                self.past_matchers.pop()
                return
            try:
                old.round()
            except (NeardupError, Crash) as error:
                if isinstance(error, InvariantBroken):
                    raise
                self.past_matchers.pop()

    def flush(self) -> None:
        with suppress(NeardupError, Crash):
            self.folder.store.flush()

    def trouble_in_a_commit(self) -> None:
        moment = self.chance.choice(["begun", "sent", "committed", "flush", "flushed"])
        what = ["crash", "crash", "unknown outcome", "second matcher", "recreate verdicts", "recreate sketches"]
        self.armed = (moment, self.chance.choice(what))
        self.match()
        self.armed = None

    def trouble_at_a_start(self) -> None:
        moment = self.chance.choice(["sent", "committed", "flush", "flushed", "emitted"])
        self.armed = (moment, self.chance.choice(["crash", "unknown outcome", "second matcher", "recreate verdicts"]))
        self.stop_matcher()
        self.start_matcher()
        self.armed = None

    def change_decider(self) -> None:
        """An operator sets another decider from here on, unless he has just set offsets, which name no decider."""
        known = self.broker.committed(self.settings.group_of("match"), self.names.sketches, 0)
        if known is not None and known.topic_ids is None:
            return
        self.decider = self.chance.choice(DECIDERS)
        self.new_decider = self.chance.random() < 0.8
        self.stop_matcher()

    def void_word(self) -> None:
        """Two operators at once: the word follows what decides no more. Never the first one."""
        deciders = decided(self.log.records) if self.names.sketches in self.broker.topics else []
        if deciders:
            before, after = self.chance.sample(DECIDERS, 2)
            if before != deciders[-1]:
                self.log.append(encode_control(NewDecider(before, after)))

    def take_down(self) -> None:
        """An operator takes down a URL, a site, or the URLs with a prefix."""
        if self.names.sketches in self.broker.topics:
            site = f"http://site{self.chance.randrange(3)}.example/"
            url = site + self.chance.choice(SAMPLES).path
            named = self.chance.choice([of_url(url), of_url(url), of_prefix(url[:-4]), of_site(site[7:-1])])
            self.log.append(encode_control(Forget(bytes.fromhex(SCHEME.digest), named)))

    # Its folder.

    def fill_disk(self) -> None:
        self.folder.store.full = True

    def lose_folder(self) -> None:
        if self.matcher is not None:
            self.crash_matcher()
        self.folder = Folder(Disk())

    def copy_folder(self) -> None:
        if self.matcher is None:
            self.copy = self.folder.copied()

    def put_back_a_copy(self) -> None:
        """An operator's mistake, or his last way out."""
        if self.copy is not None:
            self.crash_matcher()
            self.folder = self.copy.copied()
