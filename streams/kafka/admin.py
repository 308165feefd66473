"""Queries of topics and groups, and creation of topics."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic, OffsetSpec  # type: ignore[attr-defined]

from streams.errors import BrokerError, TopicError
from streams.kafka.connection import (
    NO_TOPIC,
    PASSING,
    TRY_SECONDS_MAX,
    Cause,
    Connection,
    Setting,
    T,
    checked,
    committed_of,
    error_of,
    repeat,
)
from streams.ports import Committed

#: Setting of every topic of this program. The broker's clock decides log time and retention, not the clock of a writer.
BROKER_TIME = ("message.timestamp.type", "LogAppendTime")


@dataclass(frozen=True)
class KafkaTopic:
    """A topic. id: 16 bytes, new with each creation of a topic of this name.

    replicas: least number of any partition.
    """

    name: str
    id: bytes
    partitions: int
    replicas: int


@dataclass(frozen=True)
class GroupMember:
    """A member of a consumer group.

    partitions: partitions of the topic that the member has, ascending. host: address that the broker sees.
    """

    client_id: str
    host: str
    partitions: tuple[int, ...]


#: Seconds for a request of metadata, which precedes the repetition of a failed request. Metadata name the new leader or
#: controller; without them the client would go on querying a dead one. While no broker answers, this request costs
#: nothing, but an Admin request of librdkafka that waits for a controller takes .7 of a core.
_REFRESH_SECONDS = 1.0
#: A client that gets no metadata for so many seconds is replaced: it may have lost all brokers
#: (`streams.kafka.stranded`).
_STRANDED_SECONDS = 5.0


class Admin:
    """Queries and creates topics. Every call raises BrokerError if Kafka refuses it, and NoAnswer after `request_s`."""

    def __init__(self, connection: Connection) -> None:
        self._cause = Cause()
        self._bootstrap = connection.bootstrap
        self._request_s = connection.request_s
        self._try_s = min(TRY_SECONDS_MAX, connection.request_s)
        self.connection = connection
        self._client = self._make()
        self._askers: dict[str, Consumer] = {}
        self._away = False  # whether the last request got no answer
        self._heard = time.monotonic()  # time of the last metadata, while away

    def _make(self) -> AdminClient:
        return self.connection.make(AdminClient, {}, {}, self._cause)

    def _refresh(self) -> None:
        """Requests metadata after a request without an answer. Raises KafkaException."""
        if not self._away:
            self._heard = time.monotonic()
            return
        try:
            self._client.list_topics(timeout=_REFRESH_SECONDS)
        except KafkaException:
            if time.monotonic() - self._heard > _STRANDED_SECONDS:
                self._client, self._heard = self._make(), time.monotonic()
                self._askers.clear()
            raise
        self._away = False

    def _ask(self, what: str, call: Callable[[], T], within_s: float | None = None) -> T:
        def call_and_serve() -> T:
            try:
                self._refresh()
                return call()
            except KafkaException as error:
                self._away = error_of(error).code() in PASSING
                raise
            finally:
                self._client.poll(0)  # calls `error_cb`, which has the cause of a timeout

        seconds = self._request_s if within_s is None else within_s
        what = f"Kafka at {self._bootstrap}, {what}"
        return repeat(what, call_and_serve, self._cause, seconds, self.connection.go_on)

    def cluster_id(self) -> str:
        """The id of the cluster, from plain metadata.

        If the answer names no broker, the admin client's own request ends the process by a failed assertion of
        librdkafka (`rko_result`). A cluster answers like that for moments after its only broker was started, or was
        silent for longer than its session.
        """

        def ask() -> str:
            found = self._client.list_topics(timeout=self._try_s).cluster_id
            if not found:
                raise KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE, "no broker was named"))
            return cast(str, found)

        return self._ask("cluster id", ask)

    def topics(self, names: Sequence[str], within_s: float | None = None) -> dict[str, KafkaTopic]:
        """The topics of `names` that exist."""
        found = {}
        for name in names:

            def describe(name: str = name) -> Any:
                futures = self._client.describe_topics(TopicCollection([name]), request_timeout=self._try_s)
                try:
                    return futures[name].result()
                except KafkaException as error:
                    if error_of(error).code() in NO_TOPIC:
                        return None
                    raise

            described = self._ask(f"topic {name}", describe, within_s)
            if described is not None:
                high, low = (
                    getattr(described.topic_id, f"get_{part}_significant_bits")() % (1 << 64)
                    for part in ("most", "least")
                )
                replicas = min(len(partition.replicas) for partition in described.partitions)
                identity = high.to_bytes(8, "big") + low.to_bytes(8, "big")
                found[name] = KafkaTopic(name, identity, len(described.partitions), replicas)
        return found

    def topic(self, name: str, within_s: float | None = None) -> KafkaTopic:
        """The topic of this name. Raises TopicError if there is none. within_s: time limit, by default `request_s`."""
        found = self.topics([name], within_s)
        if name not in found:
            raise TopicError(f"topic {name} does not exist at {self._bootstrap}; create it: neardup topics create")
        return found[name]

    def offsets(
        self,
        topic: KafkaTopic,
        when: Literal["earliest", "latest"] | int,
        *,
        committed_only: bool = False,
        within_s: float | None = None,
    ) -> dict[int, int]:
        """By partition the "earliest" offset, the "latest" (one after the last), or the first at `when` ms or later.

        committed_only: "latest" stops at the first open transaction. A consumer could answer, too, but its request
        would wait behind its own fetch for up to half a second.
        """
        specs = cast(Any, OffsetSpec)  # some of its methods have no types
        spec = specs.for_timestamp(when) if isinstance(when, int) else getattr(specs, when)()
        level = IsolationLevel.READ_COMMITTED if committed_only else IsolationLevel.READ_UNCOMMITTED
        places = {TopicPartition(topic.name, partition): spec for partition in range(topic.partitions)}

        def ask() -> dict[int, int]:
            futures = self._client.list_offsets(places, isolation_level=level, request_timeout=self._try_s)
            found = {place.partition: future.result().offset for place, future in futures.items()}
            if not isinstance(when, int) and any(offset < 0 for offset in found.values()):
                # Every partition has a first and a last offset; the client returns -1 while it knows no leader.
                raise KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE, "no offset was returned"))
            return found

        found = self._ask(f"offsets of topic {topic.name}", ask, within_s)
        if any(offset < 0 for offset in found.values()):  # no record that late
            ends = self.offsets(topic, "latest", committed_only=committed_only, within_s=within_s)
            found = {partition: offset if offset >= 0 else ends[partition] for partition, offset in found.items()}
        return found

    def newest_ms(self, topic: KafkaTopic) -> int | None:
        """The timestamp of the newest record, in ms since the epoch; None if there is no record."""
        newest_of = cast(Any, OffsetSpec).max_timestamp  # carries no types
        places = {TopicPartition(topic.name, part): newest_of() for part in range(topic.partitions)}

        def ask() -> int:
            futures = self._client.list_offsets(places, request_timeout=self._try_s)
            return max((future.result().timestamp for future in futures.values()), default=-1)

        newest = self._ask(f"the newest record of topic {topic.name}", ask)
        return None if newest < 0 else newest

    def members(self, group: str) -> list[GroupMember]:
        """The members of a consumer group now; none if the group does not exist."""

        def ask() -> list[GroupMember]:
            described = self._client.describe_consumer_groups([group], request_timeout=self._try_s)[group].result()
            return [
                GroupMember(
                    each.client_id, each.host, tuple(sorted(p.partition for p in each.assignment.topic_partitions))
                )
                for each in described.members
            ]

        return self._ask(f"members of group {group}", ask)

    def committed(self, group: str, topic: str, partition: int) -> Committed | None:
        """The committed offset of a group, without open transactions; None if there is none, or it has expired."""
        return self.all_committed(group, topic, [partition])[partition]

    def all_committed(self, group: str, topic: str, partitions: Iterable[int]) -> dict[int, Committed | None]:
        """The committed offsets of several partitions, as `committed`.

        A consumer that never joins sends the request. The admin client's own request ends the process, by a null
        pointer in librdkafka, while the group's coordinator is being loaded or moves.
        """
        fixed: dict[str, Setting] = {"group.id": group, "enable.auto.commit": False}
        fixed["isolation.level"] = "read_uncommitted"  # read_committed would wait for open transactions
        places = [TopicPartition(topic, partition) for partition in partitions]

        def ask() -> dict[int, Committed | None]:
            asker = self._askers.pop(group, None) or self.connection.make(Consumer, {}, fixed, self._cause)
            found = checked(asker.committed(places, timeout=self._try_s))
            # After an error the next try makes another client: this one may have lost all brokers.
            self._askers[group] = asker
            return {place.partition: committed_of(place) for place in found}

        return self._ask(f"offsets of group {group}", ask)

    def settings(self, name: str) -> dict[str, str]:
        """All settings in force for a topic, the broker's defaults included."""
        resource = ConfigResource(ConfigResource.Type.TOPIC, name)

        def describe() -> Any:
            return self._client.describe_configs([resource], request_timeout=self._try_s)[resource].result()

        return {key: entry.value for key, entry in self._ask(f"settings of topic {name}", describe).items()}

    def grow(self, name: str, partitions: int) -> None:
        """Adds partitions up to this number. Returns when they are visible. Raises TopicError, BrokerError."""
        if self.topic(name).partitions >= partitions:
            return

        def grow() -> None:
            try:
                self._client.create_partitions([NewPartitions(name, partitions)])[name].result()
            except KafkaException as error:
                # Another process was faster.
                if error_of(error).code() != KafkaError.INVALID_PARTITIONS:
                    raise

        self._ask(f"add partitions to topic {name}", grow)
        what = f"partitions were added to topic {name}, but do not appear"
        self._until(lambda: self.topic(name).partitions >= partitions, what)

    def forget(self, group: str, topics: Sequence[str]) -> None:
        """Deletes a consumer group and topics, if they exist. Returns when they are gone.

        Raises BrokerError if the group has members.
        """

        def drop(futures: Mapping[str, Any], gone: KafkaError | int) -> None:
            for future in futures.values():
                try:
                    future.result()
                except KafkaException as error:
                    if error_of(error).code() != gone:
                        raise

        no_group, missing = KafkaError.GROUP_ID_NOT_FOUND, KafkaError.UNKNOWN_TOPIC_OR_PART
        within: dict[str, Any] = {"request_timeout": self._try_s}
        self._ask(
            f"delete group {group}", lambda: drop(self._client.delete_consumer_groups([group], **within), no_group)
        )
        if topics:
            what = list(topics)
            self._ask("delete topics", lambda: drop(self._client.delete_topics(what, **within), missing))
        self._until(lambda: not self.topics(topics), f"topics {', '.join(topics)} were deleted, but stay")

    def create(self, name: str, partitions: int, replicas: int, settings: Mapping[str, str]) -> bool:
        """Creates a topic; False if it exists. Returns when the new topic can be described. Raises BrokerError."""
        new = NewTopic(name, num_partitions=partitions, replication_factor=replicas, config=dict(settings))

        def create() -> bool:
            try:
                self._client.create_topics([new], request_timeout=self._try_s)[name].result()
            except KafkaException as error:
                if error_of(error).code() == KafkaError.TOPIC_ALREADY_EXISTS:
                    return False
                raise
            return True

        created = self._ask(f"create topic {name}", create)
        self._until(lambda: name in self.topics([name]), f"topic {name} was created, but does not appear")
        return created

    def _until(self, is_visible: Callable[[], bool], problem: str) -> None:
        """Wait until a change is visible. Raises BrokerError with the problem after the time limit of a request."""
        deadline = time.monotonic() + self._request_s
        while not is_visible():
            if time.monotonic() > deadline:
                raise BrokerError(f"{problem} at {self._bootstrap}")
            time.sleep(0.02)
