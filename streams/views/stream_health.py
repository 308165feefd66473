"""Collects the health of the deployment: Kafka, the workers of the views, and the roles' metrics."""

import asyncio
import http.client
import threading
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from prometheus_client.parser import text_string_to_metric_families

from neardup.errors import NeardupError
from streams.config.settings import Settings
from streams.kafka import Admin, KafkaTopic
from streams.kafka.reader import behind
from streams.operate.generations import described_by, sketchers_of
from streams.views.lists import Facts
from streams.views.peers import Peers, get
from streams.views.stream_topics import ControlView, short_connection

#: (name of the sample, labels) -> value.
_Samples = Mapping[str, list[tuple[Mapping[str, str], float]]]

#: For the whole response of a role.
RESPONSE_SECONDS_MAX = 3.0
RESPONSE_BYTES_MAX = 1 << 20


def role_facts(url: str) -> Facts:
    """Return the facts of one process; if they are unavailable, `problem` has the reason and all others are None."""
    try:
        return {"url": url, "problem": None, **_facts(_samples(_read(url).decode("utf-8")))}
    except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
        unknown = dict.fromkeys(_facts({}), None)
        return {
            "url": url,
            "problem": f"The metrics at {url} cannot be read: {error or type(error).__name__}",
            **unknown,
        }


def _read(url: str) -> bytes:
    address = url if urlsplit(url).path else f"{url}/metrics"
    headers = {"Accept": "text/plain"}
    return get(address, seconds_max=RESPONSE_SECONDS_MAX, bytes_max=RESPONSE_BYTES_MAX, headers=headers)


def _samples(text: str) -> _Samples:
    out: dict[str, list[tuple[Mapping[str, str], float]]] = defaultdict(list)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            out[sample.name].append((sample.labels, sample.value))
    return out


def _facts(samples: _Samples) -> Facts:
    info = next((labels for labels, _ in samples.get("neardup_info", ())), {})
    ready = [value for _, value in samples.get("neardup_ready", ())]
    batches, pages = (_sum(samples, f"neardup_batch_pages_{what}") or 0 for what in ("count", "sum"))
    steps = samples.get("neardup_step_seconds_sum", ())
    seconds = sum(value for labels, value in steps if labels.get("step") != "poll")  # without the wait for input
    return {
        "role": info.get("role", "process"),
        "version": info.get("version"),
        "generation": info.get("generation"),
        "ready": None if not ready else min(ready) == 1,
        "stopped": [labels["cause"] for labels, value in samples.get("neardup_stopped", ()) if value == 1],
        "pages": _sum(samples, "neardup_pages_total"),
        "batches": _sum(samples, "neardup_batch_pages_count"),
        "batch_pages": round(pages / batches, 1) if batches else None,
        "batch_ms": round(1000 * seconds / batches, 1) if batches else None,
        "behind": _sum(samples, "neardup_lag_records"),
        "restarts": _sum(samples, "neardup_restarts_total"),
        "rocksdb": {
            labels["family"]: int(value) for labels, value in samples.get("neardup_rocksdb_bytes", ()) if value > 0
        },
        "pending_bytes": _sum(samples, "neardup_rocksdb_pending_compaction_bytes"),
        "free_bytes": _sum(samples, "neardup_state_free_bytes"),
        "write_stopped": bool(_sum(samples, "neardup_rocksdb_write_stopped")),
        "checkpoint_failed": bool(_sum(samples, "neardup_checkpoint_failed")),
    }


def _sum(samples: _Samples, name: str) -> int | None:
    values = [value for _, value in samples.get(name, ())]
    return int(sum(values)) if values else None


class StreamHealth:
    """All facts of the page. address: URL of this worker."""

    def __init__(self, settings: Settings, control: ControlView, address: str, peers: Peers) -> None:
        self._settings, self._control = settings, control
        self._admin = Admin(short_connection(settings))
        self._lock = threading.Lock()
        self._address, self._peers = address, peers

    def kafka_facts(self) -> Facts:
        """Return {steps, newest_verdict, generations, live} from Kafka; from any thread.

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
        counts = {str(partition): count for partition, count in behind(self._admin, group, topic).items()}
        step |= {"reads": topic.name, "behind": sum(counts.values()), "partitions": counts}
        step["newest"] = self._admin.newest_ms(topic)
        if name == "sketch":  # the matcher consumes without a group
            step["readers"] = [
                {"name": member.client_id, "host": member.host.lstrip("/"), "partitions": list(member.partitions)}
                for member in self._admin.members(group)
            ]
        return step

    async def kafka(self) -> tuple[Facts | None, str]:
        """Return (`kafka_facts`, "") or (None, problem)."""
        try:
            return await asyncio.to_thread(self.kafka_facts), ""
        except NeardupError as error:
            return None, str(error)

    async def roles(self) -> list[Facts]:
        """Return the facts of the roles named in views_metrics."""
        return await asyncio.gather(*[asyncio.to_thread(role_facts, url) for url in self._settings.views_metrics])

    async def workers(
        self, own: Callable[[], Awaitable[Mapping[str, Any]]], others: Mapping[str, Collection[int]]
    ) -> list[Facts]:
        """Return the workers with their partitions, this worker first.

        own: function that returns the figures of this worker. others: partitions of the other workers by URL.
        """
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
