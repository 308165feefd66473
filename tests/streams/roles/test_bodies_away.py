"""A store of bodies that does not answer: a sketcher waits for the store, and gives up one broken object."""

from dataclasses import replace
from threading import Event
from typing import ClassVar

import fsspec
import pytest
from fsspec import AbstractFileSystem

from neardup.scheme import Scheme
from neardup.sketch.header import Header
from streams.config.settings import Settings
from streams.errors import BodiesAway
from streams.formats.message import decode_entry
from streams.roles.sketch_role import SketchRole
from tests.quiet import quiet_runtime
from tests.streams.scripted import Broker, ScriptedPages, ScriptedWriter

SCHEME = Scheme(seed=7)
PREFIX = "flaky://carder:teasel@store/"


class Flaky(AbstractFileSystem):
    """A store with one broken object. down: how many requests it does not answer at all, from now on."""

    protocol = "flaky"
    cachable = False
    requested: ClassVar[list[str]] = []
    down: ClassVar[int] = 0

    def _open(self, path: str, *_: object, **__: object) -> object:
        name = path.rsplit("/", 1)[-1]
        self.requested.append(name)
        if Flaky.down:
            Flaky.down -= 1
            raise ConnectionRefusedError(111, "Connection refused")
        if name == "broken":
            raise RuntimeError("HTTP status 500")
        if name != "whole":
            raise FileNotFoundError(name)
        return fsspec.open("memory://whole", "rb").open()


class Impatient(Event):
    """Does not wait. stop_at: the number of the wait at which it is set."""

    def __init__(self, stop_at: int = -1) -> None:
        super().__init__()
        self.waits: list[float] = []
        self._stop_at = stop_at

    def wait(self, timeout: float | None = None) -> bool:
        self.waits.append(timeout or 0.0)
        return len(self.waits) == self._stop_at


def sketcher(broker: Broker, stop: Event) -> SketchRole:
    fsspec.register_implementation("flaky", Flaky, clobber=True)
    with fsspec.open("memory://whole", "wb") as file:
        file.write(b"<p>wool " * 100)
    Flaky.requested.clear()
    Flaky.down = 0
    settings = Settings(seed=7, threads=1, body_ref_prefixes=(PREFIX,))
    for name in ("pages", "sketches", "pages.rejected"):
        broker.create(name, 1)
    for number, body in enumerate(("whole", "broken", "whole")):
        headers = [("body-ref", f"flaky://store/{body}".encode())]
        broker.topics["pages"].publish(0, b"http://a.example/%d" % number, b"", headers)
    pages = ScriptedPages(broker, "pages", "sketchers", "sketches")
    pages.assign([0])
    runtime = replace(quiet_runtime(settings), stop=stop)
    writers = (ScriptedWriter(broker, name, at_once=True) for name in ("sketches", "pages.rejected"))
    return SketchRole(pages, *writers, SCHEME, runtime)


def reasons(broker: Broker) -> list[str]:
    """Of all pages that were sketched, in order; "" for one that was not rejected."""
    entries = [decode_entry(data, 0) for data in broker.topics["sketches"].partitions[0].records]
    return [Header(record).reason for entry in entries for record in entry.records]


def test_a_broken_object_is_rejected_while_its_store_answers() -> None:
    broker, stop = Broker(), Impatient()
    role = sketcher(broker, stop)
    assert role.round()
    first, broken, last = reasons(broker)
    assert first == last == ""
    assert "HTTP status 500" in broken
    assert "tried 8 times while it answered for other objects" in broken
    assert "teasel" not in broken
    assert Flaky.requested.count("broken") == 8
    assert stop.waits == [1, 2, 4, 8, 15, 15, 15]
    assert len(broker.topics["pages.rejected"].partitions[0].records) == 1


def test_an_outage_of_the_store_costs_no_page() -> None:
    broker, stop = Broker(), Impatient()
    role = sketcher(broker, stop)
    Flaky.down = 100
    assert role.round()
    assert [bool(reason) for reason in reasons(broker)] == [False, True, False]
    assert len(stop.waits) > 50


def test_a_sketcher_that_waits_for_a_body_can_be_stopped() -> None:
    broker, stop = Broker(), Impatient(stop_at=3)
    role = sketcher(broker, stop)
    with pytest.raises(BodiesAway) as caught:
        role.round()
    assert "teasel" not in f"{caught.value} {vars(caught.value)}"
    assert not broker.topics["sketches"].partitions[0].records
