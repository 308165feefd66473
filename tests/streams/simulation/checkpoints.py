"""The checkpoints of a simulated matcher: those of the program, in a real folder, which may be damaged or away."""

import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from neardup.decider import Decider
from streams.config.settings import Settings
from streams.roles.runtime import Runtime
from streams.state.checkpoint_make import CopyableIndex, Folded, identity
from streams.state.checkpoint_restore import Restoring
from streams.state.checkpoint_role import RoleCheckpoints
from streams.state.checkpoint_store import CheckpointStore
from tests.streams.scripted import ScriptedLog
from tests.streams.simulation.folder import Folder

#: In memory where that is possible: files are synced.
_FOLDERS = "/dev/shm" if Path("/dev/shm").is_dir() else None
#: A copy of some kilobytes.
_COPY_SECONDS = 60.0


class JoinedCheckpoints(RoleCheckpoints):
    """Copies within the round that begins them, so that a schedule is a function of its seed."""

    def look(self, folded: Folded, store: CopyableIndex) -> None:
        super().look(folded, store)
        self.close(_COPY_SECONDS)

    @property
    def refusal(self) -> str:
        """Why the last one was not made; "" if it was."""
        return self._maker.failed


class Checkpoints:
    """used: whether matchers make checkpoints; in three of ten schedules. away: whether the store does not answer."""

    def __init__(self, seed: int) -> None:
        chance = random.Random(f"checkpoints {seed}")
        self.used = chance.random() < 0.3
        self.away = False
        self._every, self._kept = chance.choice([1, 3, 10]), chance.choice([1, 2, 3])
        self._root = Path(tempfile.mkdtemp(prefix="neardup-simulation-", dir=_FOLDERS)) if self.used else Path("none")
        self._states = 0

    def close(self) -> None:
        shutil.rmtree(self._root, ignore_errors=True)

    def settings(self, generation: int) -> dict[str, str | int]:
        """Those of a generation, which has a folder of its own."""
        if not self.used:
            return {}
        url = str(self._root / f"kept{generation}")
        return {"checkpoints": url, "checkpoint_messages": self._every, "checkpoints_kept": self._kept}

    def make(self, settings: Settings, folder: Folder, log: ScriptedLog, runtime: Runtime) -> RoleCheckpoints | None:
        """For one start of a matcher."""
        if not self.used:
            return None
        folder.image = self._state()
        return JoinedCheckpoints(
            settings,
            folder.image,
            identity(log),
            lambda: 0,
            steady_s=runtime.steady_s,
        )

    def restore(
        self, settings: Settings, folder: Folder, log: ScriptedLog, decider: Decider, runtime: Runtime, active: bool
    ) -> bool:
        """What `MatcherDirectory` does before it opens an index; whether a checkpoint was restored."""
        restoring = Restoring(settings, log, decider, runtime.stop, runtime.health.role("match"), lambda: active)
        state = self._state() if self.used else self._root
        if not folder.is_empty:
            if not restoring.outlived(folder.store):
                return False
            if self.used:
                (state / "index").mkdir()
        restoring.restore(state)
        if not (state / "decider.json").exists():
            return False
        folder.store = folder.store.holding(state / "index")
        folder.kept = Decider.from_json((state / "decider.json").read_text())
        return True

    def clear(self, settings: Settings) -> None:
        """An operator removes the checkpoints of a generation."""
        shutil.rmtree(settings.checkpoints, ignore_errors=True)

    def stale(self, settings: Settings, takedowns_to: int) -> list[int]:
        """Offsets of the checkpoints that hold pages of the takedowns before an offset of the log."""
        found = CheckpointStore(settings.checkpoints).usable() if self.used else ()
        return [one.manifest.offset for one in found if one.manifest.offset < takedowns_to]

    def damage(self, chance: random.Random) -> bool:
        """Flips a bit of a stored file, cuts it, or removes it; whether there was one."""
        files = sorted(file for file in self._root.glob("kept*/*/*") if file.is_file())
        if not files:
            return False
        file = chance.choice(files)
        data = bytearray(file.read_bytes())
        how: Callable[[], object] = chance.choice([file.unlink, lambda: file.write_bytes(data[: len(data) // 2])])
        if data and chance.random() < 0.5:
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            file.write_bytes(data)
        else:
            how()
        return True

    def turn(self, settings: Settings, *, away: bool) -> None:
        """Lets the store of a generation not answer, or answer again."""
        kept = Path(settings.checkpoints)
        if not self.used or away == self.away:
            return
        aside = kept.with_name("away")
        if away:
            if kept.exists():
                kept.rename(aside)
            kept.write_text("no folder")
        else:
            kept.unlink()
            if aside.exists():
                aside.rename(kept)
        self.away = away

    def _state(self) -> Path:
        self._states += 1
        made = self._root / f"state{self._states}"
        made.mkdir()
        return made
