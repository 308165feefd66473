"""A state directory that vanishes under a role ends it with words, not with a trace."""

from pathlib import Path

import pytest

from neardup.errors import StateError
from streams.process.disk import free_bytes


def test_a_directory_that_is_gone_is_named(tmp_path: Path) -> None:
    assert free_bytes(tmp_path) > 0
    with pytest.raises(StateError, match=r"cannot find .*/gone: No such file or directory; mend that, then run"):
        free_bytes(tmp_path / "gone")
