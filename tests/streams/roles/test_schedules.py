"""Exactly once on scripted ports: schedules of pages, crashes, rebalances, zombies, lost topics and operators.

All topics, the index and an indexer's table are compared with a plain fold. This is the first of three levels, and the
only one that chooses what every call returns. `tests/kafka/test_roles.py` kills roles at each step on a real broker;
`tests/kafka/soak.py` kills roles and brokers for minutes.

A schedule is a function of its seed, which a failure names, shrunk: see tests/streams/simulation.
"""

from collections import Counter
from functools import cache

import pytest

from neardup.page import Page
from neardup.sketch.make_sketches import sketch_pages
from neardup.verdict import Coordinates
from streams.config.settings import Settings
from streams.pipeline.matcher import Matcher
from streams.roles.sketch_role import SketchRole
from tests.quiet import quiet_runtime
from tests.streams.scripted import Broker, ForgetfulStore, ScriptedPages, ScriptedTopic, ScriptedWriter
from tests.streams.simulation.broken import BROKEN, Broken
from tests.streams.simulation.ground import DECIDER, SAMPLES
from tests.streams.simulation.ledger import SCHEME, TEMPLATES, cheap
from tests.streams.simulation.operator import ADVICE
from tests.streams.simulation.run import Simulated, parse, shrunk, simulate
from tests.streams.simulation.schedule import schedule

#: Schedules of one seed of a test: `make test` has 300, and `make test-all` 10,000 more.
CHUNK = 50
#: Chunks of `make test`, in which the fixture `happened` counts.
COUNTED = 6
#: Schedules that are tried where the line is broken on purpose.
TRIED = 950

#: Schedules that meet what the first ones do not.
SELDOM = (667, 1146, 3926, 6432, 7853, 705864)
#: Those that find what the first ones do not: they are tried first where the line is broken on purpose.
FINDING = (22, 23, 29, 38, 75, 101, 164, 172, 174, 687)
#: Shrunk. A standby's index from before a log that was begun anew with another decider: its advice could not help.
FAILED_ONCE = (
    "1000357 take_down:1848912250 restart:3838748514 fill_disk:1901036386 publish:1649361309 match:2239715040 "
    "stand_by:2051314096 expire:1333524165 change_decider:1919966382",
    "7976 restart:3395367943 start_sketcher:361336278 publish:3322639713 publish:3584916470 sketch:2843860405 "
    "sketch:3855948129 match:3668743320 cut_off_sketcher:31612079 sketch:3406392768 trouble_in_a_commit:2877921 "
    "trouble_at_a_start:2293923838 operate:3037034952 recreate:3504671239",
    # A disk that is full when only a checkpoint is due; a standby that has not seen yet that the log is another one;
    # a topic that was deleted before all that retention had taken was emitted again, by another decider.
    "2017396 take_down:4014368952 restart:166856343 match:175753424 turn_store:2238512692 take_down:1110175725 "
    "match:3391591689 fill_disk:286279417",
    "2024871 take_down:2038508377 stand_by:397416778 take_over:51574403 match:1929814556 stand_by:420997458 "
    "recreate:1187164691 publish:2350919297 crash_matcher:3965996170",
    "2003048 restart:2515769370 publish:2617845880 sketch:4200793371 publish:4276321261 sketch:3373332931 "
    "publish:3620522813 trouble_in_a_commit_of_pages:2200433476 sketch:2337160243 sketch:1321060962 "
    "operate:3873649434 recreate:2435547171 take_down:3596959262 publish:2537107945 restart:2520632835 "
    "sketch:452837417 sketch:997600241 match:3271849480 sketch:4159264477 match:3935564647 "
    "trouble_in_a_commit:1731735151 retain:2919083814 change_decider:894551634 expire:3068993153 "
    "restart:3358163646 match:2180549376 match:5174897 delete:2778363860",
    # An operator replays verdicts when the line has moved on since the advice: another index, later verdicts.
    "2027083 copy_folder:1793329997 restart:49000393 publish:2143475749 sketch:3156403354 match:2949074469 "
    "match:4261798831 recreate:1781418472 trouble_at_a_start:1446071768 put_back_a_copy:1194937833 "
    "trouble_at_a_start:3769571083",
    "2013955 publish:1259634193 restart:2252421688 sketch:724660423 match:597540696 sketch:2764482617 "
    "sketch:1041621487 sketch:218282711 match:3229261539 recreate:2213985085 change_decider:2820642261 "
    "sketch:1488762494 restart:2543394049 operate:2215570178 restart:4260603101 match:3596854863 "
    "change_decider:3054699518 expire:2135828703 second_matcher:114062109",
)
#: What none does, and a test of its own: an old copy of a state folder, put back after the line was begun anew with
#: another decider (test_start_offset); a damaged index (test_lost_disk), and one that is gone (test_lost_ground).
RARE = ("name the `state` folder", "it is damaged", "its directory is gone")


#: A simulation of the whole stream: the quick check goes without.
pytestmark = pytest.mark.slow


def played(seed: int) -> Simulated:
    """Fails with the shortest schedule that fails in the same way."""
    found = simulate(seed, schedule(seed))
    if found.failure is not None:
        small = shrunk(found.failure)
        text = f"{small.error}\n{small.trace}\npython -m tests.streams.simulation --replay '{small.printed()}'"
        pytest.fail(f"schedule {seed} (steps: {len(found.failure.steps)}, shrunk: {len(small.steps)})\n{text}")
    return found


@cache
def with_the_ledger(seed: int) -> Counter[str]:
    """What happened in a schedule that passed."""
    with cheap():
        return played(seed).happened


@pytest.fixture(scope="module")
def one_process() -> None:
    """Keeps the tests that count what happened in the process that plays the schedules, so that each is played once."""


@pytest.mark.parametrize("chunk", range(COUNTED))
def test_the_first_schedules_end_in_the_verdicts_of_the_fold(chunk: int, one_process: None) -> None:
    for number in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        with_the_ledger(number)


@pytest.mark.whole
@pytest.mark.seeds(1, 200)
def test_any_schedule_ends_in_the_verdicts_of_the_fold(seed: int) -> None:
    for number in range(seed * CHUNK, (seed + 1) * CHUNK):
        with_the_ledger(number)


@pytest.mark.parametrize("printed", FAILED_ONCE)
def test_schedules_that_failed_once_pass(printed: str) -> None:
    with cheap():
        assert simulate(*parse(printed)).failure is None


@pytest.mark.seeds(12, 60)
def test_schedules_with_real_sketches_end_in_the_verdicts_of_the_fold(seed: int) -> None:
    played(seed)


@pytest.fixture(scope="module")
def happened(one_process: None) -> Counter[str]:
    """What happened in some hundred schedules, and in some that go where few do."""
    found: Counter[str] = Counter()
    for seed in [*range(COUNTED * CHUNK), *SELDOM]:
        found += with_the_ledger(seed)
    return found


def test_schedules_meet_all_kinds_of_failures(happened: Counter[str]) -> None:
    """Else the tests above prove nothing."""
    for error in ("StateError", "TopicError", "PositionLost", "SourceGap", "CorruptRecord", "BrokerError"):
        assert happened[error] > 5, happened
    for what in ("crash at sent", "crash at committed", "crash at flush", "unknown outcome at committed"):
        assert happened[what] > 2, happened
    for what in ("second matcher at sent", "recreate verdicts at sent", "recreate pages at commits"):
        assert happened[what] > 1, happened
    for what in ("restored", "restored by a standby", "damaged checkpoints"):
        assert happened[what] > 5, happened
    for what in ("killed", "ended", "slow"):
        assert happened[f"a standby takes over from one that is {what}"] > 15, happened
    assert happened["folded by a standby"] > 150, happened


def test_all_advice_is_followed(happened: Counter[str]) -> None:
    """What the line says when it stops is all of ADVICE, and each piece of it is followed to a good end."""
    never = [text for text in ADVICE if not happened[f"followed: {text}"]]
    assert not [text for text in never if not any(rare in text for rare in RARE)]


def test_the_ledger_s_sketches_are_those_of_the_program() -> None:
    pages = [Page(f"http://a.example/{n}", each.body, fetched_at=n) for n, each in enumerate(SAMPLES)]
    pages += [Page("http://a.example/", None, fetched_at=5), Page("http://a.example/b", b"x", fetched_at=6, status=500)]
    at = [Coordinates("0f" * 16, 3, 1_000 + n) for n in range(len(pages))]
    times = [1_700_000_000_000 + n for n in range(len(pages))]

    made = TEMPLATES(pages, SCHEME, coordinates=at, log_times=times)

    assert made == sketch_pages(pages, SCHEME, coordinates=at, log_times=times)


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.__name__)
def test_deliberate_faults_are_found(broken: Broken, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it, the same seeds fail nowhere: see the tests above."""
    broken(monkeypatch)
    seeds = (*FINDING, *range(TRIED))
    with cheap():
        failures = (simulate(seed, schedule(seed)).failure for seed in seeds)
        found = next((failure.error for failure in failures if failure), "")
    assert found
    assert not found.startswith(("TypeError", "AttributeError")), "the fault itself fails"


def test_a_partition_that_changes_hands_keeps_its_times() -> None:
    """A sketcher that is behind takes over from one that is not: a later fetch of a page is not taken for an older."""
    broker = Broker()
    topic: ScriptedTopic = broker.create("pages", 2)
    log = broker.create("sketches", 1).partitions[0]
    broker.create("rejected", 1)
    url = b"http://a.example/"
    topic.publish(0, b"http://b.example/", SAMPLES[0].body, [], 9_000)
    topic.publish(1, url, SAMPLES[1].body, [], 1_000)
    runtime = quiet_runtime(Settings(seed=7, batch_pages=4, threads=1))

    def read(partitions: list[int]) -> None:
        pages, writer = ScriptedPages(broker, "pages", "group", "sketches"), ScriptedWriter(broker, "sketches")
        role = SketchRole(pages, writer, ScriptedWriter(broker, "rejected", at_once=True), SCHEME, runtime)
        pages.assign(partitions)
        role.round()
        writer.deliver(100)
        role.round()

    read([0, 1])
    topic.publish(1, url, SAMPLES[2].body, [], 1_001)
    read([1])

    judge = Matcher(ForgetfulStore(), DECIDER)
    messages: list[tuple[int, bytes]] = list(enumerate(log.records))  # type: ignore[arg-type]
    verdicts = judge.prepare(messages).verdicts
    assert [(verdict.url, verdict.fetched_at) for verdict in verdicts] == [
        ("http://b.example/", 9_000),
        ("http://a.example/", 1_000),
        ("http://a.example/", 1_001),
    ]
    assert "stale" not in {verdict.verdict for verdict in verdicts}
    assert judge.prepare(messages).log_time == 9_000
