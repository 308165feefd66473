"""The order in which workers take tests: nothing is lost, the slow begin, what waits runs beside what computes."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.conftest import spread


class Item:
    """As much of a test as is asked for."""

    def __init__(
        self, nodeid: str, *marks: str, scopes: Sequence[str] = ("function",), fixtures: Sequence[str] = ()
    ) -> None:
        self.nodeid = nodeid
        self.fixturenames = fixtures
        self.marks = {name: pytest.mark.__getattr__(name) for name in marks}
        found = {scope: [SimpleNamespace(scope=scope)] for scope in scopes}
        self._fixtureinfo = SimpleNamespace(name2fixturedefs=found)

    def get_closest_marker(self, name: str) -> Any:
        return self.marks.get(name)

    def add_marker(self, mark: Any) -> None:
        self.marks[mark.name] = mark


def order_of(*items: Item) -> list[str]:
    found = [item.nodeid for item in spread(list(items))]  # type: ignore[misc]
    assert sorted(found) == sorted(item.nodeid for item in items)
    return found


def test_the_slow_begin() -> None:
    assert order_of(Item("a::1"), Item("a::2", "slow"), Item("b::1"), Item("b::2", "slow"))[:2] == ["a::2", "b::2"]


def test_waiting_tests_run_beside_computing_ones() -> None:
    items = [Item(f"tests/kafka/a::{number}") for number in range(3)] + [Item(f"b::{number}") for number in range(9)]
    waits = [place for place, nodeid in enumerate(order_of(*items)) if "kafka" in nodeid]
    assert waits == [1, 5, 9]


@pytest.mark.parametrize("shared", [{"scopes": ["module"]}, {"scopes": ["class", "function"]}])
def test_tests_that_share_a_fixture_stay_in_one_worker(shared: dict[str, Any]) -> None:
    items = [Item("a::1", **shared), Item("b::1"), Item("a::2"), Item("a::3", "slow", **shared), Item("b::2")]
    assert order_of(*items)[:2] == ["a::1", "a::3"]
    groups = [item.marks["xdist_group"].args for item in items if "xdist_group" in item.marks]
    assert groups == [("a",), ("a",)]


def test_tests_with_an_own_broker_stay_in_one_worker() -> None:
    own = {"fixtures": ["own", "own_broker"]}
    items = [Item("a::1", **own), Item("a::2"), Item("b::1", **own), Item("b::2", "slow", **own)]
    assert order_of(*items) == ["a::1", "b::1", "b::2", "a::2"]
    assert [item.marks["xdist_group"].args for item in items if item.fixturenames] == 3 * [("own_broker",)]


def test_kernels_of_a_file_are_compiled_in_one_worker() -> None:
    items = [Item("a::1", "kernel"), Item("tests/kafka/b::1"), Item("a::2", "kernel")]
    assert order_of(*items) in (["a::1", "a::2", "tests/kafka/b::1"], ["tests/kafka/b::1", "a::1", "a::2"])


def test_groups_are_heeded(request: pytest.FixtureRequest) -> None:
    """By pytest-xdist, which tells groups by the tests' names; where it does not, fixtures are made in each worker."""
    if not hasattr(request.config, "workerinput"):
        pytest.skip("one process runs all tests: see `make check`")
    grouped = [item for item in request.session.items if item.get_closest_marker("xdist_group")]
    groups = {item.get_closest_marker("xdist_group").args[0] for item in grouped}  # type: ignore[union-attr]
    named = [item.nodeid.endswith(f"@{item.get_closest_marker('xdist_group').args[0]}") for item in grouped]
    assert all(named), "no --dist loadgroup, with which make runs all tests; or xdist does not know the groups"
    assert str(Path(__file__).relative_to(request.config.rootpath)) in groups


@pytest.fixture(scope="module")
def shared() -> None:
    """Makes a group of this file."""


def test_test_with_a_shared_fixture_is_in_a_group(shared: None, request: pytest.FixtureRequest) -> None:
    assert request.node.get_closest_marker("xdist_group") or not hasattr(request.config, "workerinput")
