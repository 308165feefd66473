"""A warm standby: it follows the one at work in silence, and takes over when that one dies, or is too slow."""

import time
from pathlib import Path
from signal import Signals

from broker import eventually, kafka
from line import Line, Make, story
from roles import Role, readiness

from neardup.index.base import Family
from neardup.index.rocks import RocksStore
from neardup.page import Page

#: As every matcher with a standby, each in a directory of its own.
STANDBY = {"standby": True}


def started(line: Line, name: str) -> tuple[Role, int]:
    (port,) = kafka.free_ports(1)
    where = {"state": str(line.folder / name), "metrics_port": port}
    return line.start("match", settings=where, **STANDBY), port


def pair(make: Make) -> tuple[Line, Role, Role]:
    """One at work, which has told a story, and one that has followed it to its end."""
    line = make(flush_ms=1)
    line.publish(story())
    line.start("sketch")
    live, port = started(line, "one")
    eventually(lambda: readiness("match", port) == "judges", "the first is at work")
    other, spare = started(line, "two")
    line.settle()
    end = max(offset for offset, _ in line.messages()) + 1
    eventually(lambda: readiness("match", spare) == f"stands by: folded to offset {end}", "the second has followed")
    assert readiness("match", port) == "judges"
    return line, live, other


def page(name: str) -> Page:
    return Page(f"http://new.example/{name}", f"<title>{name}</title> {name} alone".encode(), "text/html")


def is_told(line: Line, name: str) -> bool:
    return any(verdict["url"] == page(name).url for verdict in line.verdicts())


def contents(path: Path) -> list[list[tuple[bytes, bytes]]]:
    store = RocksStore(path / "index")
    try:
        return [list(store.scan(family)) for family in Family]
    finally:
        store.close()


def test_it_goes_on_where_the_one_at_work_was_killed(make: Make) -> None:
    line, live, _ = pair(make)
    live.kill()
    began = time.monotonic()
    line.publish([page("after"), *story(6)])
    eventually(lambda: is_told(line, "after"), "the standby tells")
    print(f"taken over after {time.monotonic() - began:.1f} s")
    third, port = started(line, "one")  # who was killed is the standby now
    line.settle()
    end = max(offset for offset, _ in line.messages()) + 1
    eventually(lambda: readiness("match", port) == f"stands by: folded to offset {end}", "it stands by")
    line.check()
    assert third.wait() == 0
    assert contents(line.folder / "one")[1:] == contents(line.folder / "two")[1:]


def test_who_was_only_slow_is_fenced(make: Make) -> None:
    line, live, _ = pair(make)
    live.signal(Signals.SIGSTOP)
    line.publish([page("meanwhile")])
    eventually(lambda: is_told(line, "meanwhile"), "the standby tells")
    live.signal(Signals.SIGCONT)
    assert live.wait() == 1
    assert "another" in live.said()
    line.publish([page("later")])
    line.check()


def test_an_orderly_end_is_taken_over_at_once(make: Make) -> None:
    line, live, other = pair(make)
    live.stop()
    line.publish([page("after")])
    line.check()
    assert other.wait() == 0
