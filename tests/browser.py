"""A real Chromium for tests that look at what a person sees."""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One for the tests of a module, which open contexts of their own. Not for longer: it runs an event loop."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("no chromium: apt-get install chromium")
    with playwright.sync_playwright() as player:
        found = player.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield found
        found.close()
