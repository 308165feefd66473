"""A scan with shards: as the lockstep reference, whatever the number of processes, kills and lost folders."""

import json
import os
import shutil
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from neardup.decider import Decider
from neardup.errors import StateError
from neardup.scheme import Scheme
from neardup.sharded.messages import EffectKind, Effects
from neardup.verdict import Disagreement
from streams.formats.message import verdict_lines
from streams.library.deduplicator import open_index
from streams.pipeline.audit import open_audit
from streams.scan.scan import scan
from streams.scan.scan_result import Progress
from streams.state.scan_directory import ScanDirectory
from streams.state.scan_shards import ShardProcess, new_sharding
from streams.verdicts.explain import explain_command
from streams.verdicts.replay import Stretch, replay_scan
from tests import whole
from tests.streams.archives import SCHEME, crawl, write_json_lines, write_warc
from tests.streams.sharded.lockstep import Lockstep, lockstep
from tests.streams.shell import Shell, site


def deciding(shards: int, epoch: int) -> Callable[[Scheme], Decider]:
    return lambda scheme: Decider(scheme.digest, shards=shards, epoch=epoch)


def opened(path: Path, shards: int = 2, epoch: int = 2, processes: int = 0) -> ScanDirectory:
    return ScanDirectory.open(path, scheme=SCHEME, decider=deciding(shards, epoch), shards=processes)


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forking: None) -> Path:
    """Pages for a scan, whose shards are forked; those of `test_the_command` are started as for a user."""
    monkeypatch.setattr("streams.scan.sketcher.MESSAGE_PAGES_MAX", 3)
    monkeypatch.setattr("streams.scan.reading.BATCH_PAGES_MAX", 3)
    monkeypatch.setattr("streams.state.scan_directory.FLUSH_MESSAGES", 5)
    monkeypatch.setattr("streams.scan.scan.FLUSH_MESSAGES", 5)
    return write_warc(tmp_path / "a.warc.gz", crawl(40))


def lines(state: ScanDirectory) -> list[bytes]:
    return [verdict_lines(frame, offset) for offset, frame in state.verdict_log.log.read()]


def reference(state: ScanDirectory) -> Lockstep:
    return lockstep([message for _, message in state.log.read()], state.decider)


def agrees(state: ScanDirectory) -> None:
    expected = reference(state)
    assert lines(state) == [b"".join(line + b"\n" for line in some) for some in expected.verdicts]
    assert state.effects_log is not None
    assert [frame for _, frame in state.effects_log.read()] == expected.effects


@pytest.mark.parametrize(
    ("shards", "epoch", "processes"), whole.first([(4, 2, 0), (4, 2, 3), (1, 1, 0), (16, 4, 0), (2, 1, 2)], 2)
)
def test_verdicts_are_those_of_the_lockstep_reference(
    tmp_path: Path, archive: Path, shards: int, epoch: int, processes: int
) -> None:
    with opened(tmp_path / "state", shards, epoch, processes) as state:
        scan([archive], state)
        agrees(state)
        assert len(list(state.log.read())) > 2 * epoch


@pytest.mark.parametrize("processes", [0, 2])
def test_scan_with_an_epoch_longer_than_the_log_equals_one_without_shards(
    tmp_path: Path, archive: Path, processes: int
) -> None:
    with opened(tmp_path / "alone", 1, 0) as alone, opened(tmp_path / "state", 2, 1 << 20, processes) as state:
        scan([archive], alone)
        scan([archive], state)
        assert alone.shards is None
        for one in (expected := list(alone.verdicts())) + (found := list(state.verdicts())):
            del one["decider"]
        assert found == expected
        assert {verdict["verdict"] for verdict in found} >= {"unique", "near_duplicate", "exact_duplicate"}


def test_a_scan_goes_on_with_other_processes_and_other_sources(tmp_path: Path, archive: Path) -> None:
    for processes, name in enumerate(("a", "b", "c")):
        source = write_json_lines(tmp_path / f"{name}.jsonl", crawl(12), base=f"http://{name}.example/")
        with opened(tmp_path / "state", processes=processes) as state:
            scan([source], state)
    with ScanDirectory.open(tmp_path / "state") as state:
        agrees(state)


class Stopped(Exception):
    """Ends a scan from its progress."""


def killed_when(pages: int, then: Callable[[], None]) -> Callable[[Progress], None]:
    done = []

    def progress(now: Progress) -> None:
        if now.pages >= pages and not done:
            done.append(1)
            then()

    return progress


@pytest.mark.parametrize("pages", whole.first([30, 3], 1))
def test_a_killed_shard_ends_the_scan_and_the_same_command_continues(tmp_path: Path, archive: Path, pages: int) -> None:
    with opened(tmp_path / "state", processes=2) as state:
        assert state.shards is not None
        group = state.shards.groups[1]
        assert isinstance(group, ShardProcess)
        pid = group.pid
        assert pid is not None
        kill = killed_when(pages, lambda: os.kill(pid, signal.SIGKILL))
        with pytest.raises(StateError, match=r"process of shards 1 ended .* run the same command again"):
            scan([archive], state, progress=kill)
    with opened(tmp_path / "state", processes=2) as state:
        scan([archive], state)
        agrees(state)


@pytest.mark.whole
def test_a_frozen_shard_ends_the_scan_which_names_it(
    tmp_path: Path, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path / "state", processes=2) as state:
        assert state.shards is not None
        group = state.shards.groups[1]
        assert isinstance(group, ShardProcess)
        pid = group.pid
        assert pid is not None

        def stop() -> None:
            monkeypatch.setattr("streams.state.scan_shards.SILENT_S", 6.0)
            os.kill(pid, signal.SIGSTOP)

        with pytest.raises(StateError, match=rf"process of shards 1 \(pid {pid}\) did nothing .* run the same command"):
            scan([archive], state, progress=killed_when(3, stop))
    monkeypatch.undo()
    with opened(tmp_path / "state", processes=2) as state:
        scan([archive], state)
        agrees(state)


@pytest.mark.parametrize("lost", ["shards/0", "shards", "index", "effects", "verdicts"])
def test_lost_state_is_rebuilt_from_the_log(tmp_path: Path, archive: Path, lost: str) -> None:
    def stop() -> None:
        raise Stopped

    with opened(tmp_path / "state") as state, pytest.raises(Stopped):
        scan([archive], state, progress=killed_when(30, stop))
    shutil.rmtree(tmp_path / "state" / lost)
    with opened(tmp_path / "state") as state:
        scan([archive], state)
        agrees(state)


def test_shards_of_a_scan_that_ended_lag_by_their_epochs_alone(tmp_path: Path, archive: Path) -> None:
    with opened(tmp_path / "state") as state:
        scan([archive], state)
        end = state.log.end()
    with ScanDirectory.open(tmp_path / "state") as state:
        assert state.shards is not None
        (group,) = state.shards.groups
        assert 0 < group.start() <= end
        assert group.start() >= end - 4 * 2


def test_the_directory_remembers_its_shards(tmp_path: Path, archive: Path) -> None:
    with opened(tmp_path / "state", 4, 2) as state:
        scan([archive], state)
    with ScanDirectory.open(tmp_path / "state", shards=1) as state:
        assert (state.decider.shards, state.decider.epoch) == (4, 2)
    for shards, epoch in ((2, 2), (4, 4)):
        with pytest.raises(StateError, match="shards"):
            opened(tmp_path / "state", shards, epoch)
    with pytest.raises(StateError, match="another directory"):
        ScanDirectory.open(
            tmp_path / "state", decider=lambda s: replace(Decider(s.digest), rule="combined"), new_decider=True
        )


@pytest.mark.parametrize(("processes", "shards"), [(1, 1), (2, 2), (3, 4), (16, 16)])
def test_a_new_directory_has_a_shard_for_each_process(processes: int, shards: int) -> None:
    assert new_sharding(processes) == (shards, 16)


def test_the_command(shell: Shell, tmp_path: Path) -> None:
    site(tmp_path / "site")
    alone = shell("scan", "site", "--base-url", "https://a.example/", "--state", "alone", "--out", "-")
    ended = shell(
        "scan", "site", "--base-url", "https://a.example/", "--state", "sharded", "--shard-processes", "2", "--json"
    )
    assert (alone.code, ended.code) == (0, 0)
    refused = shell("scan", "site", "--state", "alone", "--shard-processes", "2")
    assert refused.code == 1
    assert (
        "is judged by one matcher, without shards; leave --shard-processes out, or name another directory"
        in refused.err
    )
    assert shell("scan", "site", "--base-url", "https://a.example/", "--state", "sharded").code == 0
    assert shell("diff", "alone", "sharded").code == 0


def test_replay_explain_and_audit_repeat_verdicts_of_shards(tmp_path: Path, archive: Path) -> None:
    """On a log of several epochs, so that most candidates come from the shards. A shadow that differs in a number of
    another rule agrees.
    """
    audit = open_audit(
        deciding(4, 2)(SCHEME), file=tmp_path / "pairs.jsonl", rate=1, numbers={"c_min": 373}, warn=print
    )
    assert audit is not None
    with opened(tmp_path / "state", 4, 2) as state, audit:
        scan([archive], state, audit=audit)
        judged = list(state.verdicts())
        replayed = replay_scan(state, Stretch(), (tmp_path / "out").open("wb"))
        assert (replayed.verdicts, replayed.kept, replayed.differing) == (len(judged), len(judged), 0)
        compared = [verdict for verdict in judged if verdict["verdict"] == "near_duplicate"]
        found = explain_command(state, compared[-1]["url"], page_id=compared[-1]["page_id"])  # raises if it differs
        assert found.winner == compared[-1]["representative"]["page_id"]
    assert audit.counts.pairs >= len(compared) > 0
    assert not any(getattr(audit.counts, kind) for kind in Disagreement)


WORKING = [
    ("report", "STATE", "--out", "report.html"),
    ("copy", "STATE", "--out", "kept.jsonl"),
    ("export", "STATE", "--out", "urls.jsonl"),
    ("diff", "STATE", "STATE"),
    ("compare", "site/page0.html", "site/page0.html", "--state", "STATE"),
    ("canonical", "--state", "STATE", "https,first-seen"),
    ("forget", "--state", "STATE", "--site", "a.example"),
    ("scan", "site", "--base-url", "https://a.example/", "--state", "STATE", "--again"),
    ("scan", "site", "--base-url", "https://a.example/", "--state", "STATE", "--again", "--audit", "pairs.jsonl"),
    ("explain", "https://a.example/page0.html", "STATE"),
    ("replay", "STATE", "--out", "-"),
    ("explain", "--rows", "--state", "STATE"),
    ("checkpoint", "make", "STATE", "--checkpoints", "copies"),
]


def made(shell: Shell, tmp_path: Path) -> None:
    site(tmp_path / "site")
    (tmp_path / "site" / "a.html").rename(tmp_path / "site" / "page0.html")
    assert (
        shell("scan", "site", "--base-url", "https://a.example/", "--state", "STATE", "--shard-processes", "1").code
        == 0
    )


@pytest.mark.parametrize("arguments", WORKING, ids=lambda arguments: arguments[0])
def test_commands_work_on_a_directory_with_shards(
    shell: Shell, tmp_path: Path, arguments: tuple[str, ...], forking: None
) -> None:
    made(shell, tmp_path)
    ended = shell(*arguments)
    assert ended.code == 0, ended.err


def test_explain_rows_shows_judge_and_shards(shell: Shell, tmp_path: Path, archive: Path) -> None:
    with opened(tmp_path / "state", 4, 2) as state:
        scan([archive], state)
        verdicts, effects, end = list(state.verdicts()), reference(state).effects, state.log.end()
    whole = shell("explain", "--rows", "--state", "state")
    assert (whole.code, "hot keys: " in whole.out) == (0, True), whole.err + whole.out
    found = json.loads(shell("explain", "--rows", "--state", "state", "--json").out)
    assert [one["shard"] for one in found["shards"]] == [0, 1, 2, 3]
    assert {one["next_offset"] for one in found["shards"]} == {end // 2 * 2 - 2}
    kept = Counter(kind for part in effects[: end // 2 * 2 - 2] for kind in Effects.decode(part).items["kind"].tolist())
    assert sum(one["rows"]["sketches"] for one in found["shards"]) == kept[EffectKind.KEEP] - kept[EffectKind.DROP] > 0

    with opened(tmp_path / "new", 4, 2):
        pass
    shutil.rmtree(tmp_path / "new" / "shards")
    assert "no message is folded yet" in shell("explain", "--rows", "--state", "new").out

    first, last = verdicts[0], verdicts[-1]
    assert "part" not in (
        sketch := json.loads(shell("explain", first["url"], "--rows", "--state", "state").out)["sketch"]
    )
    assert sketch["tape"]
    assert (
        "in the page's shard"
        in json.loads(shell("explain", "--rows", "--state", "state", "--page-id", str(last["page_id"])).out)["part"]
    )
    shutil.move(tmp_path / "state" / "shards" / "0", tmp_path / "away")
    with opened(tmp_path / "state", 4, 2) as state:
        scan([write_json_lines(tmp_path / "b.jsonl", crawl(12), base="http://b.example/")], state)
        agrees(state)
    assert shell("explain", "--rows", "--state", "state").code == 0


def test_a_checkpoint_of_a_scan_with_shards_goes_on(shell: Shell, tmp_path: Path, archive: Path) -> None:
    with opened(tmp_path / "state") as state:
        scan([archive], state)
        before = lines(state)
    assert shell("checkpoint", "make", "state", "--checkpoints", "copies").code == 0
    shutil.copy(tmp_path / "state" / "scheme.json", tmp_path)
    shutil.rmtree(tmp_path / "state")
    (tmp_path / "state").mkdir()
    shutil.move(tmp_path / "scheme.json", tmp_path / "state")
    ended = shell("checkpoint", "restore", "state", "--checkpoints", "copies")
    assert ended.code == 0, ended.err
    with opened(tmp_path / "state") as state:
        assert lines(state) == before
        assert not state.messages
        scan([write_json_lines(tmp_path / "b.jsonl", crawl(12), base="http://b.example/")], state)
        agrees(state)


def test_the_library_refuses_shards(tmp_path: Path, archive: Path) -> None:
    with opened(tmp_path / "state") as state:
        scan([archive], state)
    with pytest.raises(StateError, match=r"has 2 shards.*add pages by `neardup scan`, query them by `neardup ask`"):
        open_index(tmp_path / "state")
    with opened(tmp_path / "state"):
        pass  # it is not left locked
