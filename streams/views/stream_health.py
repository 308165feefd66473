"""Collects the health of the deployment: Kafka, the workers of the views, and the roles' metrics."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

from neardup.errors import NeardupError
from streams.config.settings import Settings
from streams.kafka import Admin, KafkaTopic
from streams.roles.cutover import described_by, sketchers_of
from streams.views.control import ControlView, short_connection
from streams.views.lists import Facts
from streams.views.peers import Peers
from streams.views.role_metrics import role_facts


class KafkaHealth:
    """Facts from Kafka: ends of topics, committed offsets, members of groups, the control topic."""

    def __init__(self, settings: Settings, control: ControlView) -> None:
        self._settings, self._control = settings, control
        self._admin = Admin(short_connection(settings))
        self._lock = threading.Lock()

    def facts(self) -> Facts:
        """Return {steps, newest_verdict, generations, live}; from any thread.

        Raises BrokerError, CorruptRecord, TopicError.
        """
        with self._lock:
            generations = self._control.now()
            topics = self._settings.topics
            held = self._admin.topics([topics.pages, topics.sketches, topics.verdicts])
            return {
                "steps": [
                    self._step("sketch", held.get(topics.pages), sketchers_of(self._settings).group_of("sketch")),
                    self._step("match", held.get(topics.sketches), self._settings.group_of("match")),
                ],
                "newest_verdict": self._admin.newest_ms(held[topics.verdicts]) if topics.verdicts in held else None,
                "generations": [asdict(row) for row in described_by(self._settings, self._admin, generations)],
                "live": generations.live,
            }

    def _step(self, name: str, topic: KafkaTopic | None, group: str) -> Facts:
        step: Facts = {"step": name, "reads": None, "behind": None, "partitions": {}, "newest": None, "readers": None}
        if topic is None:
            return step
        begins, ends = (self._admin.offsets(topic, when) for when in ("earliest", "latest"))
        behind = {}
        committed = self._admin.all_committed(group, topic.name, ends)
        for partition, end in ends.items():
            known = committed[partition]
            behind[str(partition)] = max(0, end - (known.offset if known else begins[partition]))
        step |= {"reads": topic.name, "behind": sum(behind.values()), "partitions": behind}
        step["newest"] = self._admin.newest_ms(topic)
        if name == "sketch":  # the matcher consumes without a group
            step["readers"] = [
                {"name": member.client_id, "host": member.host.lstrip("/"), "partitions": list(member.partitions)}
                for member in self._admin.members(group)
            ]
        return step


class StreamHealth:
    """All facts of the page. address: URL of this worker."""

    def __init__(self, settings: Settings, control: ControlView, address: str, peers: Peers) -> None:
        self._kafka, self._metrics = KafkaHealth(settings, control), settings.views_metrics
        self._address, self._peers = address, peers

    async def kafka(self) -> tuple[Facts | None, str]:
        """Return (facts of `KafkaHealth`, "") or (None, problem)."""
        try:
            return await asyncio.to_thread(self._kafka.facts), ""
        except NeardupError as error:
            return None, str(error)

    async def roles(self) -> list[Facts]:
        """Return the facts of the roles named in views_metrics."""
        return await asyncio.gather(*[asyncio.to_thread(role_facts, url) for url in self._metrics])

    async def workers(
        self, own: Callable[[], Awaitable[Mapping[str, Any]]], others: Mapping[str, Collection[int]]
    ) -> list[Facts]:
        """Return the workers with their partitions, this one first. own: its own figures. others: partitions by URL."""
        requests = [
            self._worker(url, partial(asyncio.to_thread, self._peers.own, url, parts)) for url, parts in others.items()
        ]
        return await asyncio.gather(self._worker(self._address, own), *requests)

    async def _worker(self, url: str, ask: Callable[[], Awaitable[Mapping[str, Any]]]) -> Facts:
        worker: Facts = {"url": url, "own": url == self._address}
        try:
            found = await ask()
        except NeardupError as error:
            return worker | {"problem": str(error), "lag": None, "behind": None, "rate": None, "tables": None}
        return worker | {"problem": None, "behind": sum(found["lag"].values()), **found}
