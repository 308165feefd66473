"""A matcher's state folder on a disk that may be full."""

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neardup.decider import Decider
from neardup.errors import StateError
from neardup.index.column_families import Family
from streams.pipeline.matcher import folded_to
from tests.streams.scripted import ForgetfulStore


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

    def checkpoint(self, path: Path) -> None:
        self._must_have_room()
        ForgetfulStore.flush(self)
        path.mkdir()
        for family in Family:
            (path / family.name).write_bytes(pickle.dumps(list(self.scan(family))))

    def holding(self, image: Path) -> "Disk":
        """This disk with the index that `checkpoint` has made."""
        found = Disk({family: dict(pickle.loads((image / family.name).read_bytes())) for family in Family})
        found.around, found.full = self.around, self.full
        return found

    def durable(self) -> "Disk":
        """As the next process finds it."""
        found = Disk()
        found._durable = {family: dict(rows) for family, rows in self._durable.items()}
        ForgetfulStore.write(found, found._durable)
        found._since = []
        return found


@dataclass
class Folder:
    """A state folder: `streams.state.matcher_directory.MatcherDirectory` without files.

    image: where its checkpoints are made.
    """

    store: Disk
    kept: Decider | None = None
    path: Path = Path("state")
    image: Path | None = None

    @property
    def is_empty(self) -> bool:
        return not any(True for family in Family for _ in self.store.scan(family))

    def first_decider(self, decider: Decider) -> Decider:
        if self.kept is None or not folded_to(self.store):
            self.kept = decider
        if self.image is not None:
            (self.image / "decider.json").write_text(self.kept.to_json())
        return self.kept

    def copied(self) -> "Folder":
        """What a crash leaves of it, or a copy that is made while nothing is at work."""
        return Folder(self.store.durable(), self.kept)
