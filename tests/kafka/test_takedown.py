"""A page is to be taken down: as the README says, on a running line, whatever is killed, and from checkpoints, too."""

import runpy
import shutil
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from broker import eventually
from line import REPLACING, Line, Make, story

from neardup.errors import BadInput
from neardup.sketch.takedown_hashes import of_prefix, of_url
from streams.errors import WrongScheme
from streams.operate.operator_decisions import forget, forget_stream
from streams.state import index_rows as look
from streams.state.checkpoint_store import CheckpointStore
from tests import whole
from tests.streams import contradictions

FULLTEXT = Path(__file__).parents[2] / "deploy" / "demo" / "fulltext.py"


@pytest.fixture
def line(make: Make, tmp_path: Path) -> Line:
    """Judged and at work, with few checkpoints."""
    checkpoints = {"checkpoints": str(tmp_path / "kept"), "checkpoint_messages": 3, "checkpoints_kept": 5}
    made: Line = make(**checkpoints, flush_ms=1, kafka_values=REPLACING)
    made.judge(story())
    made.settle()
    return made


def representative_of(line: Line) -> str:
    """A page that stands for others."""
    emitted = [verdict for verdict in line.verdicts() if verdict["verdict"] == "exact_duplicate"]
    return str(emitted[0]["representative"]["url"])


def test_a_page_is_taken_down(line: Line, tmp_path: Path) -> None:
    url = representative_of(line)
    before = {one.name for one in CheckpointStore(line.settings.checkpoints).usable()}
    assert before
    offset = forget(line.settings, of_url(url))
    store = CheckpointStore(line.settings.checkpoints)
    # A checkpoint is made at once, and those of before go.
    eventually(lambda: {one.manifest.takedowns_to for one in store.usable()} == {offset + 1}, "stale checkpoints gone")
    line.publish([page for page in story() if page.url == url])
    found = line.check()
    promoted, gone = [verdict for verdict in found if verdict["page_id"] >> 12 == offset]
    assert (promoted["verdict"], promoted["n"]) == ("promoted", 1)
    assert (gone["verdict"], gone["n"], gone["url"], gone["reason"]) == ("gone", 2, url, "taken down")
    again = next(verdict for verdict in found if verdict["page_id"] >> 12 > offset and verdict["url"] == url)
    assert again["verdict"] in ("exact_duplicate", "near_duplicate", "unique")
    other = forget(line.settings, of_url(url))
    line.start("match")
    eventually(lambda: any(one.manifest.takedowns_to == other + 1 for one in store.usable()), "the second takedown")
    line.stop()
    shutil.rmtree(line.settings.state)  # restored from a checkpoint, nothing of it is there
    restored = line.start("match")
    eventually(lambda: '"resumes"' in restored.output(), "its restored index")  # a stop before would leave none
    line.check()
    with ExitStack() as held:
        opened = look.open_index(Path(line.settings.state), held)
        with pytest.raises(BadInput, match="the index has no row of this URL"):
            look.of_url(opened, url)
        assert not contradictions.inspect(opened.store).wrong_total
        _, values = look.overview(opened, lambda rows: None)
        assert [one["offset"] for one in values["takedowns"]] == [offset, other]


@pytest.mark.parametrize("step", whole.first(["3 offsets sent", "4 written"], 1))
def test_killed_beside_a_takedown(line: Line, step: str) -> None:
    line.stop()
    forget(line.settings, of_prefix(representative_of(line)))
    line.start("match", step=step, call=1).dead()
    line.start("match")
    line.publish(story(5))
    line.start("sketch")
    line.check()


@pytest.mark.whole
def test_killed_between_the_checkpoint_and_the_prune_that_a_takedown_owes(line: Line) -> None:
    line.stop()
    offset = forget(line.settings, of_url(representative_of(line)))
    store = CheckpointStore(line.settings.checkpoints)
    held = {one.manifest.offset for one in store.usable()}
    line.start("match", step="5 checkpoint copied", call=1).dead()
    assert {one.manifest.offset for one in store.usable()} > held  # the copy is there, and so are the old ones
    line.start("match")
    eventually(lambda: all(one.manifest.takedowns_to == offset + 1 for one in store.usable()), "stale checkpoints gone")
    line.check()


def test_an_index_restored_from_before_a_takedown_takes_the_page_down_again(line: Line, tmp_path: Path) -> None:
    """As from a backup of the checkpoints: the log repeats the takedown."""
    url = representative_of(line)
    line.stop()
    shutil.copytree(line.settings.checkpoints, tmp_path / "backup")
    old = CheckpointStore(str(tmp_path / "backup"))
    offset = forget(line.settings, of_url(url))
    line.start("match")
    line.settle()
    line.stop()
    for place in (line.settings.state, line.settings.checkpoints):
        shutil.rmtree(place)
    assert all(one.manifest.offset <= offset and not one.manifest.takedowns_to for one in old.usable())
    restored = line.start("match", settings={"checkpoints": str(tmp_path / "backup")})
    eventually(lambda: '"index restored"' in restored.output(), "the old checkpoint")
    eventually(lambda: {one.manifest.takedowns_to for one in old.usable()} == {offset + 1}, "old checkpoints gone")
    line.check()
    with ExitStack() as held:
        opened = look.open_index(Path(line.settings.state), held)
        with pytest.raises(BadInput, match="the index has no row of this URL"):
            look.of_url(opened, url)


@pytest.mark.whole
def test_takedown_with_another_seed_is_refused_before_the_log(line: Line) -> None:
    before = line.ends(line.names.sketches)
    with pytest.raises(WrongScheme):
        forget(replace(line.settings, seed=8), of_url("http://a.example/"))
    assert line.ends(line.names.sketches) == before


@pytest.mark.whole
def test_forget_says_how_many_pages_and_an_index_drops_them(
    line: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = representative_of(line)
    names = runpy.run_path(str(FULLTEXT))
    index = names["Index"](str(tmp_path / "index.db"))
    with index.db:
        texts = [(verdict["url"], "wool") for verdict in line.verdicts()]
        index.db.executemany("INSERT OR IGNORE INTO fetched (url, text) VALUES (?, ?)", texts)

    def shown() -> set[str]:
        arguments = [line.bootstrap, line.names.verdicts, str(tmp_path / "index.db"), "--group", line.settings.group]
        names["main"](arguments)
        return set(index.find("wool"))

    before = shown()
    assert url in before
    done = forget_stream(line.settings, of_url(url))
    assert (done.pages, done.promoted) == (1, 1)
    (over,) = shown() - before
    assert before - shown() == {url}
    assert over in {v["url"] for v in line.verdicts() if v["verdict"] == "promoted" and v["page_id"] == done.cause}
    nothing = forget_stream(line.settings, of_url("http://nobody.example/"))
    assert (nothing.pages, nothing.promoted) == (0, 0)
    line.check()
    monkeypatch.setattr("streams.operate.operator_decisions.MATCHER_SECONDS_MAX", 0.5)
    assert forget_stream(line.settings, of_url(over)).pages is None  # no matcher runs
    index.db.close()
