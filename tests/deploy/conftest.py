"""Tools that tests need: fetched or built in the long form, skipped with a reason in the short one."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "kafka"))  # the broker and waiting, as there

import tools

#: `make test-deploy` sets it: then a missing tool is fetched, and one that cannot be had is a failure.
LONG = os.environ.get("NEARDUP_TEST_DEPLOY") == "1"


@pytest.fixture(scope="session")
def tool() -> tools.Tool:
    """Where a program is."""

    def find(program: str) -> Path:
        if LONG:
            try:
                return tools.need(program)
            except tools.Missing as error:
                pytest.fail(str(error), pytrace=False)
        found = tools.cached(program)
        if found is None:
            pytest.skip(f"{program} is not in {tools.cache_folder()}: make test-deploy fetches it")
        return found

    return find


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("deploy") and not LONG:
            item.add_marker(pytest.mark.skip(reason="long: make test-deploy runs it"))
