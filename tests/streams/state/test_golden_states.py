"""What former versions have left is opened, and says what it said; or is refused with the command that helps."""

import json
import re
import shutil
import tarfile
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path

import pytest

from neardup.errors import NeardupError
from neardup.index.base import Family
from neardup.scheme import Scheme
from streams.commands import inspect as look
from streams.files.state import State
from streams.formats.message import Forget, Message, decode_entry
from tests.golden import states

GOLDEN = sorted(states.FOLDER.glob("*.tar.xz"))


@pytest.fixture(params=GOLDEN, ids=lambda path: path.name)
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, dict[str, object]]:
    """The directory unpacked, and what must be read of it."""
    packed: Path = request.param
    state = tmp_path / "state"
    with tarfile.open(packed) as source:
        source.extractall(state, filter="data")
    return state, json.loads(packed.with_suffix("").with_suffix(".json").read_text())


def opened(state: Path, held: ExitStack) -> State | None:
    """None where it is refused as it should be: with a command that brings what was there into this version."""
    try:
        return held.enter_context(State.open(state))
    except NeardupError as error:
        if not re.search(r"neardup (backfill|scan|restore)|run that (one|version)", str(error)):
            raise
        return None


def test_what_this_version_packs_is_there_and_is_not_refused(tmp_path: Path) -> None:
    with tarfile.open(states.FOLDER / f"{version('neardup')}.tar.xz") as source:
        source.extractall(tmp_path, filter="data")
    with State.open(tmp_path) as state:
        assert list(state.verdicts())
    with State.open(tmp_path, scheme=Scheme(seed=7)) as state:  # as of whoever gives the seed
        assert state.scheme.article_tape_bytes_max == 0
    assert all(packed.stat().st_size < 40_000 for packed in GOLDEN)


def test_a_directory_of_before_is_read(golden: tuple[Path, dict[str, object]]) -> None:
    path, wanted = golden
    with ExitStack() as held:
        state = opened(path, held)
        if state is None:
            return
        assert json.loads(json.dumps(states.told(state))) == wanted
        entries = [decode_entry(data, offset) for offset, data in state.log.read()]
        assert [type(entry) for entry in entries] == [Message, Forget]
    with ExitStack() as held:
        found, told = look.overview(look.open_index(path, held), lambda rows: None)
        assert (found.wrong_total, len(told["takedowns"])) == (0, 1)
        assert told["program"]


@pytest.mark.slow
def test_its_log_is_folded_again_to_the_same_index(golden: tuple[Path, dict[str, object]]) -> None:
    """The rules of its version are still in this program, as is the scheme that its sketches were made by."""
    path, wanted = golden
    with ExitStack() as held:
        state = opened(path, held)
        if state is None:
            return
        before = [list(state.store.scan(family)) for family in Family if family is not Family.META]
    shutil.rmtree(path / "index")
    with State.open(path) as state:
        assert [list(state.store.scan(family)) for family in Family if family is not Family.META] == before
        assert json.loads(json.dumps(states.told(state))) == wanted
