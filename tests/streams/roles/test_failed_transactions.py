"""A matcher whose transactions fail starts again in its process, and ends it where no start commits anything."""

import pytest

from streams.config.settings import Settings
from streams.errors import Stopped, Unsettled
from streams.roles import match_start
from streams.roles.runtime import Runtime
from tests.quiet import quiet_runtime


def starts(monkeypatch: pytest.MonkeyPatch, *commits: int) -> tuple[list[int], Runtime]:
    """commits: of each start, before its transaction fails; the start after them ends in order. Returns those left."""
    left = list(commits)

    def match(*_: object) -> None:
        if left:
            raise Unsettled("commit: the transaction failed", commits=left.pop(0))

    monkeypatch.setattr(match_start, "_match", match)
    return left, quiet_runtime(Settings(seed=7))


def test_a_matcher_starts_again_where_a_transaction_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    commits = (0, 0, 0, 5, 0, 0, 0, 1, 0)
    left, runtime = starts(monkeypatch, *commits)
    match_start.run_matcher(runtime.settings, runtime)
    assert left == []
    assert runtime.metrics.registry.get_sample_value(
        "neardup_restarts_total", {"role": "match", "cause": "abort"}
    ) == len(commits)


def test_the_process_ends_where_no_start_commits_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    left, runtime = starts(monkeypatch, 3, *[0] * 9)
    with pytest.raises(Unsettled, match=r"the transaction failed; 4 starts in a row committed nothing"):
        match_start.run_matcher(runtime.settings, runtime)
    assert len(left) == 5


def test_a_matcher_that_is_to_stop_does_not_start_again(monkeypatch: pytest.MonkeyPatch) -> None:
    left, runtime = starts(monkeypatch, 1, 1)
    runtime.stop.set()
    with pytest.raises(Stopped, match="stopped in a transaction: commit: the transaction failed"):
        match_start.run_matcher(runtime.settings, runtime)
    assert len(left) == 1
