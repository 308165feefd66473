"""Requests of the Admin client while no leader is known, and while no broker answers."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from streams.config.settings import Topics
from streams.kafka import Admin, topics
from streams.kafka.topics import Sizes


class Leaderless:
    """Says -1 for offsets, without an error, until it has asked for metadata: as seen after the death of a leader."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._answered = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def list_topics(self, **options: Any) -> Any:
        self._answered = True
        return self._client.list_topics(**options)

    def list_offsets(self, places: Any, **options: Any) -> Any:
        if self._answered:
            return self._client.list_offsets(places, **options)
        unknown: Future[Any] = Future()
        unknown.set_result(SimpleNamespace(offset=-1))
        return dict.fromkeys(places, unknown)


@pytest.mark.parametrize("when", ["earliest", "latest", 4_000_000_000_000])
def test_an_unknown_offset_is_asked_for_again(admin: Admin, names: Topics, when: Any) -> None:
    topics.create(admin, names, Sizes(partitions=2))
    topic = admin.topic(names.pages)
    admin._client = Leaderless(admin._client)
    assert admin.offsets(topic, when) == {0: 0, 1: 0}
