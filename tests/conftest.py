"""What holds for all tests; and hooks that the controller of a distributed run needs, which loads no other conftest."""

import gc
import os
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase

from tests import whole
from tests.browser import browser
from tests.measure.gate import table

__all__ = ["browser"]

HERE = Path(__file__).parent

# No test may fail because the machine is busy: hypothesis asks for 200 ms an example by default.
_BUSY = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("make test", _BUSY, derandomize=True, database=None)
# Where CI is set, hypothesis draws the same examples each time unless it is told otherwise.
_FAILED = DirectoryBasedExampleDatabase(HERE / "regressions")
settings.register_profile("make test-all", _BUSY, derandomize=False, database=_FAILED)

#: Suites whose tests wait for most of their time, for brokers and for processes.
WAITING = ("tests/kafka/", "tests/crash/")
#: What `make check` runs: the files that find most faults in the least time.
CORE = (
    "tests/neardup/index/test_store.py",
    "tests/neardup/matching/",
    "tests/neardup/pairs/",
    "tests/neardup/rules/",
    "tests/neardup/sketch/",
    "tests/neardup/test_fold.py",
    "tests/neardup/test_urls.py",
    "tests/neardup/text/",
    "tests/streams/config/",
    "tests/streams/formats/",
    "tests/streams/verdicts/test_replay.py",
    "tests/streams/pipeline/",
    "tests/streams/roles/test_schedules.py",
    "tests/streams/state/",
)
#: The fixture of tests that do anything to a broker. One worker runs them all: others need no such broker.
OWN_BROKER = "own_broker"
#: A folder in memory, and the free bytes that it must have. Pytest removes the folder of a test that has passed.
MEMORY, MEMORY_BYTES_MIN = "/dev/shm", 8 << 30
#: More objects than this, and a collection of garbage takes tens of milliseconds.
SEEN_OBJECTS_MAX = 30_000
#: Fixtures that stand for a marker.
NEEDS = {"broker": "broker", OWN_BROKER: "broker", "browser": "browser"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="also run what has the marker whole, with seeds drawn anew")


def pytest_configure(config: pytest.Config) -> None:
    """Puts the folders of tests into memory, where that is possible: an index syncs a dozen files when it is opened."""
    if config.option.all:
        whole.choose()
    settings.load_profile("make test-all" if whole.chosen() else "make test")
    if "PYTEST_DEBUG_TEMPROOT" not in os.environ and _holds(MEMORY):
        os.environ["PYTEST_DEBUG_TEMPROOT"] = MEMORY


def _holds(folder: str) -> bool:
    """Whether a folder has room for all tests, and programs may be started from it."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return False
    return found.f_bavail * found.f_frsize > MEMORY_BYTES_MIN and not found.f_flag & (os.ST_NOEXEC | os.ST_RDONLY)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """More workers than cores, since tests wait; as many as cores for `-n logical`, where they compute."""
    cores = len(os.sched_getaffinity(0))
    return cores if config.option.numprocesses == "logical" else cores + 4


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Gives a test with the marker `seeds` its parameter `seed`."""
    if mark := metafunc.definition.get_closest_marker("seeds"):
        metafunc.parametrize("seed", whole.seeds(metafunc.definition.nodeid, *mark.args))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keeps a seed that has failed, where seeds are drawn anew."""
    report = yield
    if report.failed and whole.chosen() and item.get_closest_marker("seeds"):
        whole.keep_failed(item.nodeid.partition("[")[0], item.callspec.params["seed"])  # type: ignore[attr-defined]
    return report


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Collects no garbage meanwhile: millions of objects are made, and nearly all of them stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    _hide_objects()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, Any, Any]:
    """Hides what a test has imported, once that is much; modules that it imports stay."""
    done = yield
    if len(gc.get_objects()) > SEEN_OBJECTS_MAX:
        _hide_objects()
    return done


def _hide_objects() -> None:
    """Takes all objects that there are out of the garbage collector's sight.

    An index that is closed has garbage collected at once, and so do tests that open hundreds.
    """
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    gc.unfreeze()  # else libraries tell of what they have left behind


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Prints the gate's table, and a line for each reason why tests were not run."""
    table.write(terminalreporter)
    skipped = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in terminalreporter.getreports("skipped"))
    for reason, count in skipped.most_common():
        terminalreporter.write_line(f"not run: {count} test{'s'[: count > 1]}: {reason}")


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith(CORE):
            item.add_marker("core")
        if item.get_closest_marker("whole") and not whole.chosen():
            item.add_marker(pytest.mark.skip(reason=whole.REASON))
        for fixture, marker in NEEDS.items():
            if fixture in getattr(item, "fixturenames", ()):
                item.add_marker(marker)
    if hasattr(config, "workerinput"):
        items[:] = spread(items)


def spread(items: list[pytest.Item]) -> list[pytest.Item]:
    """The order in which workers take tests: the slow first, and what waits evenly among what computes.

    Tests of a file that share a fixture, or kernels that must be compiled where none are kept, stay in one worker; and
    so do all that have a broker of their own.
    """
    units: dict[str, list[pytest.Item]] = {}
    for item in items:
        name = item.nodeid
        if item.get_closest_marker("kernel") or _shares_fixtures(item):
            name = name.partition("::")[0]
            item.add_marker(pytest.mark.xdist_group(name))
        elif OWN_BROKER in getattr(item, "fixturenames", ()):
            name = OWN_BROKER
            item.add_marker(pytest.mark.xdist_group(name))
        units.setdefault(name, []).append(item)
    slow = [unit for unit in units.values() if any(item.get_closest_marker("slow") for item in unit)]
    quick = [unit for unit in units.values() if not any(item.get_closest_marker("slow") for item in unit)]
    return [item for part in (slow, quick) for unit in _mixed(part) for item in unit]


def _shares_fixtures(item: pytest.Item) -> bool:
    found = item._fixtureinfo.name2fixturedefs.values()  # type: ignore[attr-defined]
    return any(fixture.scope in ("class", "module") for fixtures in found for fixture in fixtures)


def _mixed(units: list[list[pytest.Item]]) -> Iterator[list[pytest.Item]]:
    waits = [unit for unit in units if unit[0].nodeid.startswith(WAITING)]
    works = [unit for unit in units if not unit[0].nodeid.startswith(WAITING)]
    place = [((number + 0.5) / len(part), unit) for part in (waits, works) for number, unit in enumerate(part)]
    yield from (unit for _, unit in sorted(place, key=lambda each: each[0]))
