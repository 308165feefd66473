"""The topics between shards and judge are deleted, recreated or trimmed while roles run; what errors say is done."""

import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from broker import eventually, kafka
from line import story
from roles import Role, standing
from sharded_line import EPOCH, SHARDS, ShardedLine

from streams.errors import TopicError
from streams.kafka import topics
from streams.roles.shard_process import shard_checkpoints, shard_state
from streams.state.checkpoint_store import CheckpointStore

Make = Callable[..., ShardedLine]

#: Partitions of the topics.
RIGHT = {"candidates": SHARDS, "effects": 1}
#: What becomes of a deleted topic: partitions of the recreated one, by topic; {}: it stays away.
DELETED = {
    "gone": {},
    "recreated": RIGHT,
    "with more partitions": {name: count + 1 for name, count in RIGHT.items()},
    "with one partition": dict.fromkeys(RIGHT, 1),
}


class Operator:
    """Starts judge and shards of a line, and does what their errors say until they work."""

    def __init__(self, line: ShardedLine) -> None:
        self.line = line
        self.ports = dict(zip((*range(SHARDS), "judge"), kafka.free_ports(SHARDS + 1), strict=True))
        self.roles: dict[int | str, Role] = {}
        self.done: list[str] = []  # the advice that was followed
        self.answered_from: set[tuple[int | str, str]] = set()  # shards and messages, likewise

    def start(self, name: int | str, *, checkpoints: str | None = None, **options: Any) -> Role:
        """checkpoints: instead of those of the line."""
        settings: dict[str, Any] = {"metrics_port": self.ports[name]}
        if checkpoints is not None:
            settings["checkpoints"] = checkpoints
        if name == "judge":
            role = self.line.start("match", settings=settings, **options)
        else:
            role = self.line.start("shard", shards=[name], settings=settings, **options)
        self.roles[name] = role
        return role

    def start_all(self) -> None:
        for name in self.ports:
            self.start(name)

    def stop_all(self) -> None:
        """Some are about to end with the same error."""
        for role in self.roles.values():
            role.kill()

    def refused(self, topic: str) -> None:
        """All roles that run end with errors that name the topic and how to create it."""
        for role in self.roles.values():
            error = role.refused()
            missing = f"topic {topic}: the topic is missing, needed: present; create it with `neardup topics create`"
            if missing not in error:  # a judge in a transaction starts again by itself
                assert f"topic {topic} (id " in error
                assert "create it (neardup topics create) if it is missing, and start judge and shards" in error

    def repair(self, topic: str) -> None:
        """Does what the roles say until every message is judged."""

        def judged() -> bool:
            for name, role in self.roles.items():
                if not role.running:
                    return self.again(topic, role.refused())
                self.help(name)
            log = self.line.names.sketches
            return self.line.committed("match", log, 1) == self.line.ends(log)

        self.line.settle(judged=False)
        eventually(judged, "all messages judged, as errors advise")

    def again(self, topic: str, error: str) -> bool:
        assert re.search("delete (it|their topic|the topic),? and create it again", error)
        self.stop_all()
        once: dict[str, Any] = {}
        if "move the judge's index folder away" in error:
            assert "start it once without checkpoints (--checkpoints '')" in error, "the log is whole"
            assert not any("index folder away" in one for one in self.done), f"the advice did not help: {self.done}"
            index = Path(self.line.settings.state) / "index"
            index.rename(index.with_name("away"))
            once["checkpoints"] = ""
        self.done.append(error)
        self.line.delete(topic)
        self.create()
        for name in self.ports:
            self.start(name, **(once if name == "judge" else {}))
        return False

    def help(self, name: int | str) -> None:
        """Does what the judge and this shard say in their health, where both wait."""
        told = standing("match", self.ports["judge"])[1]
        awaited = re.search(r"answer to message ([0-9]+) of shard ([0-9, ]+);", told)
        if name == "judge" or awaited is None or str(name) not in awaited[2].split(", "):
            return
        message, (_, reason) = awaited[1], standing("shard", self.ports[name])
        needs = re.search("to answer message ([0-9]+)", reason)
        if f"shard {name} runs and has passed that message" in told:
            if (name, message) in self.answered_from:
                return
            assert f"start that shard once with --answer-from {message}" in told
            self.answered_from.add((name, message))
            self.roles[name].stop()
            self.start(name, answer_from=int(message))
            eventually(lambda: standing("shard", self.ports[name])[0], "it answers")
        elif needs and int(needs[1]) <= int(message) and "start the judge again" in reason:
            self.done.append(reason)
            self.roles["judge"].stop()
            self.start("judge")
            eventually(lambda: standing("match", self.ports["judge"])[1], "it runs")

    def create(self) -> None:
        """`neardup topics create`; it creates nothing while another topic is wrong, and each role says so, too."""
        with suppress(TopicError):
            topics.create(self.line.admin, self.line.names, self.line.sizes)


@pytest.fixture
def operator(make_sharded: Make) -> Operator:
    """All roles run, and have judged some pages."""
    line = make_sharded()
    line.publish(story())
    line.start("sketch")
    made = Operator(line)
    made.start_all()
    line.settle()
    return made


CASES = [
    pytest.param(name, what, marks=() if (name, what) == ("candidates", "gone") else pytest.mark.whole)
    for name in RIGHT
    for what in DELETED
    if (name, what) != ("effects", "with one partition")
]


@pytest.mark.parametrize(("name", "what"), CASES)
def test_a_topic_is_deleted_while_all_run(operator: Operator, name: str, what: str) -> None:
    line = operator.line
    topic = getattr(line.names, name)
    settings = line.admin.settings(topic)
    same = {each: settings[each] for each in ("message.timestamp.type", "retention.ms")}
    line.delete(topic)
    if partitions := DELETED[what].get(name, 0):
        line.admin.create(topic, partitions, 1, same)
    line.publish(story())
    operator.refused(topic)
    operator.create()
    operator.start_all()
    operator.repair(topic)

    line.check()


@pytest.mark.whole
@pytest.mark.parametrize(
    ("name", "lost", "advice"),
    [
        ("candidates", False, ""),
        ("effects", False, ""),
        ("effects", True, "start the judge again, which writes them"),
    ],
)
def test_a_topic_is_trimmed_while_the_judge_runs(operator: Operator, name: str, lost: bool, advice: str) -> None:
    """The shards start again, and need what is gone. lost: their disks, too."""
    line = operator.line
    for number in range(SHARDS):
        operator.roles[number].stop()
        if lost:
            shutil.rmtree(shard_state(line.settings, number))
    topic = getattr(line.names, name)
    for partition, end in line.ends(topic).items():
        line.delete_before(topic, partition, end)
    line.publish(story(4))
    line.settle(judged=False)
    for number in range(SHARDS):
        operator.start(number)
    operator.repair(topic)

    line.check()
    assert advice in " ".join(operator.done)


@pytest.mark.whole
@pytest.mark.parametrize("lost", [("effects",), ("candidates", "effects")], ids=" and ".join)
@pytest.mark.parametrize("behind", [False, True], ids=["new checkpoints", "old checkpoints"])
def test_topics_and_a_disk_are_lost_with_checkpoints(
    make_sharded: Make, tmp_path: Path, lost: tuple[str, ...], behind: bool
) -> None:
    """The shard restores a checkpoint, and needs effects that the judge no longer keeps; the log is whole.

    behind: the shards' checkpoints are older than the judge's, which has none that the shard could use.
    """
    line = make_sharded(checkpoints=str(tmp_path / "kept"), checkpoint_messages=2, checkpoints_kept=2)
    operator = Operator(line)
    line.publish(story())
    line.start("sketch")
    operator.start_all()
    line.settle()
    for number in range(SHARDS):
        kept = CheckpointStore(shard_checkpoints(line.settings, number))
        eventually(lambda kept=kept: list(kept.usable()), "a checkpoint of a shard")
    line.stop()
    if behind:
        line.start("sketch")
        for name in operator.ports:
            operator.start(name, checkpoints=None if name == "judge" else "")
        line.publish(story())
        line.settle()
        judge = CheckpointStore(line.settings.checkpoints)
        needed = max(one.manifest.offset for one in CheckpointStore(shard_checkpoints(line.settings, 1)).usable())
        least = needed + 2 * EPOCH + 1
        eventually(
            lambda: min(one.manifest.offset for one in judge.usable()) >= least, "later checkpoints of the judge"
        )
        line.stop()
    for name in lost:
        line.recreate(getattr(line.names, name))
    shutil.rmtree(shard_state(line.settings, 1))
    line.publish(story())
    line.start("sketch")
    operator.start_all()
    operator.repair(line.names.effects)

    line.check()

    if behind:
        assert operator.done, "the shard needed what the judge did not keep"
