"""The standby of a simulated matcher, and how it takes over."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from threading import Event

from neardup.errors import NeardupError
from streams.pipeline.matcher import folded_to
from streams.ports import Committed
from streams.process.health import Health
from streams.roles.match_start_checks import MatcherPorts, StartOptions
from streams.roles.standby import stand_by
from tests.streams.scripted import ScriptedLog, Transactions
from tests.streams.simulation.folder import Disk, Folder
from tests.streams.simulation.matchers import Matchers


class _Stop(Event):
    """Stops a role that would wait for others, which do nothing meanwhile."""

    def wait(self, timeout: float | None = None) -> bool:
        self.set()
        return True


class _Follower:
    """A member of the group of matchers that does not lead, and is stopped after some looks."""

    def __init__(self, stop: Event, looks: int) -> None:
        self._stop, self._left = stop, looks

    def look(self, wait_s: float = 0.0) -> bool:
        self._left -= 1
        if self._left <= 0:
            self._stop.set()
        return False


class Standbys(Matchers):
    """standby: its folder, while there is one. standby_waits: why it could not take over; "" if it could."""

    def __init__(self, seed: int) -> None:
        self.standby: Folder | None = None
        self.standby_waits = ""
        super().__init__(seed)

    def stand_by(self) -> None:
        """It starts, folds some of what is committed, and is stopped or killed."""
        if "standby" in self.complaints:
            return
        folder = self.standby = self.standby or Folder(Disk())
        stop = _Stop()
        health = Health(self.wall.now_ms, self.settings.stall_ms)
        runtime = replace(self.runtime, stop=stop, health=health)
        group, (sketches, verdicts) = self.settings.group_of("match"), (self.names.sketches, self.names.verdicts)

        def committed() -> Committed | None:
            return self.broker.committed(group, sketches, 0)

        def follow() -> None:
            for name in (sketches, verdicts):
                self.broker.topic(name)
            log = ScriptedLog(self.broker, sketches)
            ports = MatcherPorts(
                log, log.messages, Transactions(self.broker, sketches, verdicts, group), self.newest, self.say
            )
            active = self.matcher is not None
            if self.checkpoints.restore(self.settings, folder, log, self.decider, runtime, active=active):
                self.happened["restored by a standby"] += 1
            if stop.is_set():
                return  # it waits for a checkpoint
            before = folded_to(folder.store)
            follower = _Follower(stop, self.chance.choice([2, 5, 100]))
            stand_by(ports, folder, StartOptions(self.decider), runtime, follower, committed)
            self.happened["folded by a standby"] += folded_to(folder.store) > before

        self.attempt("standby", follow)
        ready, why = health.role("match").state()
        self.standby_waits = "" if ready else why
        if self.chance.random() < 0.7:
            with suppress(NeardupError):
                folder.store.flush()
        full = folder.store.full
        if self.standby is folder:
            self.standby = folder.copied()
            self.standby.store.full = full

    def take_over(self) -> None:
        """The active matcher was killed, has ended, or is only slow; in the end its folder is that of a standby."""
        if self.standby is None:
            return
        how = self.chance.choice(["killed", "ended", "slow"])
        self.happened[f"a standby takes over from one that is {how}"] += 1
        taken, left = self.standby, None
        if how == "slow" and self.matcher is not None:
            self.past_matchers.append((self.matcher, self.folder))
            self.matcher = None
        elif how == "ended":
            self.stop_matcher()
            left = self.folder
        else:
            self.crash_matcher()
            left = self.folder
        self.standby, self.folder = left, taken
        self.start_matcher()

    def at_the_standby(self, act: Callable[[], None]) -> None:
        """What an operator does to the folder of the standby, and not to that of the active matcher."""
        generation, at_work, folder = self.generation, self.matcher, self.folder
        self.matcher, self.folder = None, self.standby or Folder(Disk())
        try:
            act()
        finally:
            if self.generation == generation:
                self.standby, self.matcher, self.folder = self.folder, at_work, folder

    def fill_disk_of_standby(self) -> None:
        if self.standby is not None:
            self.standby.store.full = True

    def lose_standby(self) -> None:
        self.standby = None
