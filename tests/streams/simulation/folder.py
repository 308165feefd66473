"""A matcher's state folder on a disk that may be full."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neardup.decider import Decider
from neardup.errors import StateError
from streams.pipeline.matcher import folded_to
from streams.testing import ForgetfulStore


class Disk(ForgetfulStore):
    """An index on a disk that may be full. around: called before and after what is written and flushed."""

    full = False
    around: Callable[[str], None] = staticmethod(lambda moment: None)

    def write(self, writes: Any) -> None:
        self._must_have_room()
        super().write(writes)

    def flush(self) -> None:
        self.around("flush")
        self._must_have_room()
        super().flush()
        self.around("flushed")

    def _must_have_room(self) -> None:
        if self.full:
            raise StateError("cannot write the index in state: No space left on device")

    def durable(self) -> "Disk":
        """As the next process finds it."""
        found = Disk()
        found._durable = {family: dict(rows) for family, rows in self._durable.items()}
        ForgetfulStore.write(found, found._durable)
        found._since = []
        return found


@dataclass
class Folder:
    """A state folder: `neardup.state.matcher.Directory` without files."""

    store: Disk
    kept: Decider | None = None
    path: Path = Path("state")

    def first_decider(self, decider: Decider) -> Decider:
        if self.kept is None or not folded_to(self.store):
            self.kept = decider
        return self.kept

    def copied(self) -> "Folder":
        """What a crash leaves of it, or a copy that is made while nothing is at work."""
        return Folder(self.store.durable(), self.kept)
