"""A line with shards and a judge on a real broker, and what a lockstep of its log says."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
from line import Line, auditing
from roles import Role

from streams.config.settings import Settings, Topics
from streams.formats.pieces import decode_piece
from streams.kafka import KafkaLog
from streams.kafka.reader import TopicReader
from tests.streams.sharded.lockstep import lockstep

SHARDS, EPOCH = 3, 2


def messages_of(line: Line) -> dict[int, bytes]:
    with closing(KafkaLog(line.connection, line.names.sketches)) as log:
        return dict(log.messages(log.first_offset()))


def lockstep_of(line: Line, messages: dict[int, bytes]) -> list[dict[str, Any]]:
    """Verdicts of a lockstep of the log's messages."""
    assert list(messages) == list(range(len(messages)))
    settings = line.settings
    fields = {"log": line.admin.topic(line.names.sketches).id.hex()}
    if settings.generation:
        fields["generation"] = settings.generation
    by_message = lockstep(list(messages.values()), settings.decider(settings.scheme())).verdicts
    return [{**orjson.loads(verdict), **fields} for verdicts in by_message for verdict in verdicts]


class ShardedLine(Line):
    """With three shards, each in a process of its own."""

    def __init__(self, bootstrap: str, names: Topics, folder: Path, *, audited: bool = False, **settings: Any) -> None:
        if audited:
            names, audit = auditing(names)
            settings |= audit
        names = names._replace(candidates=f"{names.pages}.candidates", effects=f"{names.pages}.effects")
        self._trimmed: dict[int, bytes] = {}  # messages that the log no longer holds
        super().__init__(bootstrap, names, folder, **{"shards": SHARDS, "epoch": EPOCH, "flush_ms": 50, **settings})

    judge: Role
    processes: dict[str, Role]  # that share the shards, by name

    def with_settings(self, **settings: Any) -> Settings:
        return replace(self.settings, **settings)

    def answered(self) -> list[int]:
        """The newest message that each shard has answered; -1 for none."""
        with closing(TopicReader(self.connection, self.names.candidates, committed_only=False)) as reader:
            last = reader.last()
        newest = [last.get(number) for number in range(SHARDS)]
        return [decode_piece(one.value() or b"", "").offset if one is not None else -1 for one in newest]

    def answers(self) -> list[int]:
        """The number of answers of each shard, repeated ones included."""
        with closing(TopicReader(self.connection, self.names.candidates, committed_only=False)) as reader:
            last = reader.last()
        return [one.offset() + 1 if (one := last.get(number)) is not None else 0 for number in range(SHARDS)]

    def start_shards(self, *left_out: int) -> None:
        for number in set(range(SHARDS)) - set(left_out):
            self.start("shard", shards=[number])

    def expected(self) -> list[dict[str, Any]]:
        return lockstep_of(self, self._log_messages())

    def _log_messages(self) -> dict[int, bytes]:
        return {**self._trimmed, **messages_of(self)}

    def trim(self, before: int) -> None:
        """Removes messages before an offset from the log, and their effects, as retention does."""
        self._trimmed = self._log_messages()
        self.delete_before(self.names.sketches, 0, before)
        self.trim_pieces(self.names.effects, 0, before)

    def trim_pieces(self, topic: str, partition: int, before: int) -> None:
        """Removes effects of, or answers to, messages before an offset."""
        with closing(TopicReader(self.connection, topic, committed_only=True)) as reader:
            kept = [
                record.offset()
                for record in reader.to_end()
                if record.partition() == partition and decode_piece(record.value() or b"", topic).offset >= before
            ]
        self.delete_before(topic, partition, kept[0])
