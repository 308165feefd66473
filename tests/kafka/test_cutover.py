"""Which generation is live: changed for all clients at once, and back, with consumers on both sides."""

import json
import threading
from dataclasses import replace
from typing import Any
from urllib.request import urlopen

import pytest
from broker import PATIENCE_SECONDS, eventually
from line import Line, Make, story
from test_backfill import beside, control, live

from neardup.errors import BadInput, StateError
from streams.client import LiveVerdicts
from streams.errors import NoVerdict
from streams.kafka import ControlTopic, Stage
from streams.kafka.assignment import Assignment
from streams.operate import cut_over as cut_over_module
from streams.operate.cut_over import cut_over
from streams.operate.generations import described, removed
from streams.operate.ping import ping
from streams.roles.own_generation import presence_of


class Reader:
    """An indexer with a row for each (generation, URL), in a thread of its own; stopped and started again at will."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self.positions: dict[str, int] = {}
        self.seen: list[tuple[str, int, int]] = []  # (generation, page id, n)
        self.named: set[tuple[str, str]] = set()  # (of the batch, of the verdict)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.failed: list[Exception] = []

    def load(self) -> dict[str, int]:
        return dict(self.positions)

    def start(self) -> None:
        self._stop.clear()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        line = self._line
        try:
            with LiveVerdicts(
                line.bootstrap, self, line.settings.verdicts_topic, group=line.settings.group
            ) as verdicts:
                while not self._stop.is_set():
                    for batch in verdicts.batches(wait_s=0.1, count=7):
                        self.seen += [(batch.generation, v["page_id"], v["n"]) for v in batch.verdicts]
                        self.named |= {(batch.generation, v.get("generation", "")) for v in batch.verdicts}
                        self.positions = batch.positions
                        if self._stop.is_set():
                            break
        except Exception as error:  # noqa: BLE001 - asserted by the waiting thread
            self.failed.append(error)

    def stop(self) -> None:
        self._stop.set()
        assert self._thread is not None
        self._thread.join(60)
        assert self.failed == []

    def of(self, generation: str) -> list[tuple[int, int]]:
        assert self.failed == []
        return sorted((page_id, n) for name, page_id, n in self.seen if name == generation)


def ids(verdicts: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return [(v["page_id"], v["n"]) for v in verdicts]


@pytest.fixture
def line(make: Make) -> Line:
    return live(make, story())


def test_a_reader_goes_over_and_back_and_has_each_verdict_once_from_each_generation(line: Line) -> None:
    other = beside(line)
    assert other.start("backfill", once=True, read_pages=True).wait() == 0
    reader = Reader(line)
    reader.start()
    first = ids(line.verdicts())
    eventually(lambda: reader.of("") == first, "the first generation is read")
    assert cut_over(line.settings, "second", force=True) == ""
    eventually(lambda: len(reader.of("second")) > 10, "the second one is read, too")
    reader.stop()  # in the middle, and goes on at its positions
    reader.start()
    eventually(lambda: reader.of("second") == ids(other.verdicts()), "all of it")

    line.start("sketch")
    line.start("match")
    line.publish(story(4))
    line.settle()
    line.stop()
    assert cut_over(line.settings, "", force=True) == "second"
    first = ids(line.verdicts())
    eventually(lambda: reader.of("") == first, "back, and on where it was: none of them twice")
    reader.stop()
    assert reader.of("second") == ids(other.verdicts())
    assert reader.named == {("", ""), ("second", "second")}
    # A lost control topic: the cut-over is repeated.
    line.delete(line.settings.generations_topic)
    cut_over(line.settings, "second", force=True)
    assert control(line).read().live == "second"


def test_cutover_to_a_generation_without_a_matcher_is_refused(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """A backfill with --once leaves none. With force it is said; started as advised, the next command succeeds."""
    monkeypatch.setattr(cut_over_module, "MATCHER_SECONDS_MAX", 0.5)
    other = beside(line, sketches_of="", decider_values={"rule": "tape"})
    role = other.start("backfill", once=True)
    assert role.wait() == 0
    assert "neardup backfill --generation second without --once" in role.output()
    with pytest.raises(StateError, match=r"no matcher of generation second runs: .*; start it .* or add --force"):
        cut_over(line.settings, "second")
    monkeypatch.undo()
    other.start("backfill")
    assert cut_over(line.settings, "second") == ""
    line.start("sketch")
    found = ping(line.settings, timeout_s=PATIENCE_SECONDS)  # only the live one is judged
    assert found.generation == "second"
    monkeypatch.setattr(cut_over_module, "MATCHER_SECONDS_MAX", 0.5)
    with pytest.raises(StateError, match=r"no matcher of generation \(unnamed\) runs: .*neardup match or neardup run"):
        cut_over(line.settings, "")
    with pytest.raises(NoVerdict, match=r"of generation \(unnamed\)"):
        ping(line.settings, timeout_s=0.1, generation="")
    warned: list[str] = []
    cut_over(line.settings, "", force=True, warn=warned.append)
    assert "no matcher" in warned[0]


@pytest.mark.whole
def test_cutover_to_a_stalled_matcher_is_refused(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a member of its group, and judges nothing."""
    monkeypatch.setattr(cut_over_module, "MATCHER_SECONDS_MAX", 0.5)
    other = beside(line, sketches_of="", decider_values={"rule": "tape"})
    assert other.start("backfill", once=True).wait() == 0
    line.start("sketch")
    line.publish(story(3))
    line.settle(judged=False)
    member = Assignment(line.connection, line.names.sketches, presence_of(other.settings, "match"))
    eventually(member.look, "the member")
    with pytest.raises(StateError, match=r"the matcher of generation second runs, and has judged nothing for 0\.5 s"):
        cut_over(line.settings, "second")
    member.close()


@pytest.mark.whole
def test_cutover_refuses_a_generation_that_is_behind_live_or_used(line: Line) -> None:
    with pytest.raises(BadInput, match="there is no generation second"):
        cut_over(line.settings, "second")
    other = beside(line, sketches_of="", decider_values={"rule": "tape"})
    other.start("backfill", step="match 4 written", call=1).dead()
    with pytest.raises(StateError, match=r"has not caught up \(filling\)"):
        cut_over(line.settings, "second")
    cut_over(line.settings, "second", force=True)
    with pytest.raises(BadInput, match="is live already"):
        cut_over(line.settings, "second")
    with pytest.raises(BadInput, match="is live; first cut over to another one"):
        removed(line.settings, "second")
    cut_over(line.settings, "", force=True)
    third = {"generation": "third", "state": other.settings.state + ".3", "sketches_of": None, "decider_values": {}}
    assert other.start("backfill", settings=third, once=True, read_pages=True).wait() == 0
    fourth = {**third, "generation": "fourth", "state": other.settings.state + ".4", "sketches_of": "third"}
    assert other.start("backfill", settings=fourth, once=True).wait() == 0
    with pytest.raises(BadInput, match="its sketches are judged by fourth"):
        removed(line.settings, "third")
    log, emitted = line.ends(line.names.sketches), line.verdicts()
    rows = {row.name: row for row in described(line.settings)}
    assert rows[""].live
    assert {name: (row.stage, row.sketches_of) for name, row in rows.items()} == {
        "": ("live", None),
        "second": (Stage.FILLING, ""),
        "third": (Stage.CAUGHT_UP, None),
        "fourth": (Stage.CAUGHT_UP, "third"),
    }
    assert (rows["third"].pages_behind, rows["fourth"].pages_behind, rows["fourth"].messages_behind) == (0, 0, 0)
    assert rows["second"].messages_behind > 0
    for name in ("fourth", "third", "second"):
        gone = removed(line.settings, name)
        assert not line.admin.topics(gone)
    assert control(line).read().known == {}
    assert [row.name for row in described(line.settings)] == [""], "not even the one that was live before"
    assert (line.ends(line.names.sketches), line.verdicts()) == (log, emitted)


@pytest.mark.whole
def test_generation_with_running_roles_is_not_removed(line: Line) -> None:
    """Neither a matcher alone, which has nothing to do, nor a sketcher alone."""
    second = beside(line, "second", decider_values={"rule": "tape"})
    third = beside(line, "third")
    assert third.start("backfill", once=True, read_pages=True).wait() == 0
    second.start("backfill")
    third.start("sketch")
    eventually(lambda: ("second", Stage.CAUGHT_UP) in [(row.name, row.stage) for row in described(line.settings)], "it")
    eventually(lambda: third.members() == 1, "the sketcher at work")
    kept = [(each, each.committed("match", each.names.sketches, 1)) for each in (second, third)]
    for name in ("third", "second"):
        with pytest.raises(StateError, match=f"generation {name} is served by .*: stop its roles"):
            removed(line.settings, name)
    assert kept == [(each, each.committed("match", each.names.sketches, 1)) for each in (second, third)]
    line.stop()
    for name in ("second", "third"):
        removed(line.settings, name)


def test_cutover_that_is_killed_at_any_step_took_effect_or_not_and_can_be_repeated(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before its one record nothing has changed, behind it all has; what follows it is for people."""

    class Killed(BaseException):
        pass

    def killed(*_: object) -> None:
        raise Killed

    other = beside(line, sketches_of="", decider_values={"rule": "tape"})
    assert other.start("backfill", once=True).wait() == 0
    # Of the unnamed one the topic says nothing; of the second, once another one is live, that it was.
    for step, name, live_then in (("cut_over", "second", ""), ("", "second", "second"), ("describe", "", "")):
        with monkeypatch.context() as patched:
            if step:
                patched.setattr(ControlTopic, step, killed)
                with pytest.raises(Killed):
                    cut_over(line.settings, name, force=True)
            else:
                cut_over(line.settings, name, force=True)
        assert control(line).read().live == live_then
    assert cut_over(line.settings, "second", force=True) == ""
    assert cut_over(line.settings, "", force=True) == "second"
    rows = {row.name: row for row in described(line.settings)}
    assert (rows[""].live, rows["second"].stage) == (True, Stage.RETIRED)


@pytest.mark.whole
def test_health_and_metrics_say_which_one_is_live(line: Line) -> None:
    control(line).create()
    role = line.start("match")
    (host,) = eventually(
        lambda: [json.loads(t)["metrics"] for t in role.output().splitlines() if '"started"' in t], "it"
    )

    def answer(path: str) -> str:
        return str(urlopen(host.removesuffix("/metrics") + path, timeout=30).read(), "utf-8")

    eventually(lambda: "neardup_generation_live 1.0" in answer("/metrics"), "it is live")
    control(line).cut_over("second", "")
    eventually(lambda: "neardup_generation_live 0.0" in answer("/metrics"), "it no longer is")
    eventually(lambda: '"judges"' in answer("/ready"), "it is ready all the same")
    assert {"generation": "", "live": "second"}.items() <= json.loads(answer("/ready")).items()
    assert replace(line.settings, generation="second").group_of("match") not in role.output()
