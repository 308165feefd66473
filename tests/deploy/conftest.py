"""Tools that these tests need are installed once, by the first test that needs one."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "kafka"))  # the broker and waiting, as there

import tools


@pytest.fixture(scope="session")
def tool() -> tools.Tool:
    """Where a program is. A test fails, naming what is missing, if the program cannot be installed."""

    def find(program: str) -> Path:
        try:
            return tools.need(program)
        except tools.Missing as error:
            pytest.fail(str(error), pytrace=False)

    return find
