"""The long form installs from a package index: `make test-release` alone runs it."""

import os

import pytest

LONG = os.environ.get("NEARDUP_TEST_RELEASE") == "1"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("release") and not LONG:
            item.add_marker(pytest.mark.skip(reason="installs from a package index: make test-release"))
