"""Asks for the health of the stream's line: Kafka, the other workers of the views, and the roles' metrics."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

from neardup.errors import NeardupError
from streams.config.settings import Settings
from streams.kafka import Admin, Topic
from streams.roles.cutover import described_by, sketchers_of
from streams.views import told_metrics
from streams.views.control import Control, hasty
from streams.views.health import Facts
from streams.views.peers import Peers


class LineHealth:
    """What Kafka tells: ends of topics, what groups have committed, who is in them, the control topic."""

    def __init__(self, settings: Settings, control: Control) -> None:
        self._settings, self._control = settings, control
        self._admin = Admin(hasty(settings))
        self._asking = threading.Lock()

    def look(self) -> Facts:
        """{steps, newest_verdict, generations, live}; from any thread.

        Raises BrokerError, CorruptRecord, TopicError.
        """
        with self._asking:
            said = self._control.now()
            topics = self._settings.topics
            there = self._admin.topics([topics.pages, topics.sketches, topics.verdicts])
            return {
                "steps": [
                    self._step("sketch", there.get(topics.pages), sketchers_of(self._settings).group_of("sketch")),
                    self._step("match", there.get(topics.sketches), self._settings.group_of("match")),
                ],
                "newest_verdict": self._admin.newest_ms(there[topics.verdicts]) if topics.verdicts in there else None,
                "generations": [asdict(row) for row in described_by(self._settings, self._admin, said)],
                "live": said.live,
            }

    def _step(self, name: str, topic: Topic | None, group: str) -> Facts:
        told: Facts = {"step": name, "reads": None, "behind": None, "partitions": {}, "newest": None, "readers": None}
        if topic is None:
            return told
        begins, ends = (self._admin.offsets(topic, when) for when in ("earliest", "latest"))
        behind = {}
        committed = self._admin.all_committed(group, topic.name, ends)
        for partition, end in ends.items():
            known = committed[partition]
            behind[str(partition)] = max(0, end - (known.offset if known else begins[partition]))
        told |= {"reads": topic.name, "behind": sum(behind.values()), "partitions": behind}
        told["newest"] = self._admin.newest_ms(topic)
        if name == "sketch":  # the matcher reads in no group's name
            told["readers"] = [
                {"name": member.client_id, "host": member.host.lstrip("/"), "partitions": list(member.partitions)}
                for member in self._admin.members(group)
            ]
        return told


class StreamHealth:
    """All that is asked for the page. address: this worker's."""

    def __init__(self, settings: Settings, control: Control, address: str, peers: Peers) -> None:
        self._line, self._metrics = LineHealth(settings, control), settings.views_metrics
        self._address, self._peers = address, peers

    async def line(self) -> tuple[Facts | None, str]:
        """As `LineHealth.look`, or what is wrong."""
        try:
            return await asyncio.to_thread(self._line.look), ""
        except NeardupError as error:
            return None, str(error)

    async def roles(self) -> list[Facts]:
        """The roles by their metrics, as they are named in the settings."""
        return await asyncio.gather(*[asyncio.to_thread(told_metrics.asked, url) for url in self._metrics])

    async def workers(
        self, own: Callable[[], Awaitable[Mapping[str, Any]]], others: Mapping[str, Collection[int]]
    ) -> list[Facts]:
        """Who of these views has which partitions, this one first; `own` is what it tells of itself."""
        asking = [self._worker(url, partial(self._peer, url, parts)) for url, parts in others.items()]
        return await asyncio.gather(self._worker(self._address, own), *asking)

    async def _worker(self, url: str, ask: Callable[[], Awaitable[Mapping[str, Any]]]) -> Facts:
        told: Facts = {"url": url, "own": url == self._address}
        try:
            found = await ask()
        except NeardupError as error:
            return told | {"problem": str(error), "lag": None, "behind": None, "rate": None, "tables": None}
        return told | {"problem": None, "behind": sum(found["lag"].values()), **found}

    async def _peer(self, url: str, parts: Collection[int]) -> Mapping[str, Any]:
        return await asyncio.to_thread(self._peers.own, url, parts)
