"""Sends rows to the changelogs and restores them when a worker takes over a partition.

Faust sends row by row, with several futures and turns of the loop for each, which costs more than all other work for a
verdict. Here the rows of a partition that a batch has changed are sent as whole Kafka batches.

A worker that was paused beyond its session is not fenced: its rows arrive behind those of the new owner. Such rows are
right but older. Therefore a restored row never replaces a newer one (`last` names its verdict), and a worker that finds
records of another worker among its own stops: its next start reads all of them.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import orjson
from faust.types import TP

from streams.errors import BrokerError

_LAST = b'"last":'


def last_of(value: bytes | None) -> list[int] | None:
    """Return `last` of a stored row; None if it has none."""
    if value is None:
        return None
    start = value.rfind(_LAST)  # rows end with it
    try:
        found = orjson.loads(value[start + len(_LAST) : -1]) if start >= 0 else orjson.loads(value)["last"]
    except (ValueError, KeyError, TypeError):
        return None
    return found if isinstance(found, list) else None


class Changelogs:
    """Changelogs of all tables of a Faust application. fail: called with the first error. restored: rows read back."""

    def __init__(self, app: Any, tables: Mapping[str, Any], fail: Callable[[BaseException], None]) -> None:
        self._app, self._tables, self._fail = app, tables, fail
        self._waiting: set[asyncio.Future[Any]] = set()
        self.restored = 0
        for table in tables.values():
            table.apply_changelog_batch = partial(self._restore, table, table.apply_changelog_batch)

    async def send(self, name: str, partition: int, rows: Iterable[tuple[bytes, bytes]]) -> None:
        """Hand rows to the client, in order; `arrived` waits until Kafka has them."""
        table, producer = self._tables[name], self._app.producer._ensure_producer()
        batch, count = producer.create_batch(), 0
        for key, value in rows:
            if batch.append(key=key, value=value, timestamp=None) is None:  # full
                await self._hand_over(producer, batch, count, table, partition)
                batch, count = producer.create_batch(), 0
                batch.append(key=key, value=value, timestamp=None)
            count += 1
        if count:
            await self._hand_over(producer, batch, count, table, partition)

    async def _hand_over(self, producer: Any, batch: Any, count: int, table: Any, partition: int) -> None:
        place = TP(table.changelog_topic_name, partition)
        change = await producer.send_batch(batch, place.topic, partition=partition)
        self._waiting.add(change)
        change.add_done_callback(partial(self._sent, table, place, count))

    def _sent(self, table: Any, place: TP, count: int, change: asyncio.Future[Any]) -> None:
        self._waiting.discard(change)
        if change.cancelled():
            return
        if (error := change.exception()) is not None:
            self._fail(error)
            return
        if place not in self._app.assignor.assigned_actives():
            return  # the new owner of the partition reads it
        first, before = change.result().offset, table.data.persisted_offset(place)
        if before is not None and first != before + 1:
            others = f"{first - before - 1} records behind offset {before} are another worker's, or duplicates"
            self._fail(BrokerError(f"changelog {place.topic}, partition {place.partition}: {others}"))
            return
        table.data.set_persisted_offset(place, first + count - 1)

    async def arrived(self) -> None:
        """Wait until Kafka has acknowledged everything handed over so far."""
        if self._waiting:
            await asyncio.wait(set(self._waiting))
            await asyncio.sleep(0)  # `_sent` of the last of them

    def _restore(self, table: Any, apply: Callable[[Sequence[Any]], None], events: Iterable[Any]) -> None:
        events = list(events)
        self.restored += len(events)
        newest: dict[tuple[int, bytes], list[int] | None] = {}
        kept = []
        for event in events:
            message = event.message
            place = message.partition, message.key
            if place not in newest:
                newest[place] = last_of(table.data._db_for_partition(message.partition).get(message.key))
            new, held = last_of(message.value), newest[place]
            if new is None or held is None or new >= held:
                newest[place] = new
                kept.append(event)
        apply(kept)
        for place in {event.message.tp for event in events}:
            offset = max(event.message.offset for event in events if event.message.tp == place)
            table.data.set_persisted_offset(place, offset)
