"""The folder of a partition: what it was asked for, and files that are there whole or not at all.

lock           held by the one process that works there
plan.json      the parameters and the sources that everything else was made of
work/          tables and texts that the steps left, until the end
sets.jsonl, documents.parquet, pairs.parquet, summary.json, report.html    the results
"""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from neardup.errors import StateError
from streams.state.locked_folder import lock_directory, state_error, sync_directory, write_whole

RESULTS = ("sets.jsonl", "documents.parquet", "pairs.parquet", "summary.json", "report.html")
_NAMES = {"lock", "plan.json", "work", *RESULTS}


class PartitionWorkspace:
    """An open folder; use it as a context manager. Raises StateError where it cannot be used."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.work = self.path / "work"
        self._held = ExitStack()
        lock_directory(self.path, _NAMES, self._held)

    def __enter__(self) -> "PartitionWorkspace":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held.close()

    def open_plan(self, plan: dict[str, Any], *, again: bool) -> bool:
        """Whether an earlier run of the same plan left something. again: forget what any earlier run left.

        Raises StateError where the folder holds another plan's work or results.
        """
        file = self.path / "plan.json"
        try:
            if again:
                self.clear()
                for name in ("plan.json", *RESULTS):
                    (self.path / name).unlink(missing_ok=True)
            text = json.dumps(plan, sort_keys=True, indent=1) + "\n"
            if file.exists():
                if file.read_text(encoding="utf-8") != text:
                    raise StateError(
                        f"{self.path} holds a partition of other files or by other numbers; name another --out, or "
                        "make it anew with --again"
                    )
                self.work.mkdir(exist_ok=True)
                return True
            self.clear()
            self.work.mkdir()
            write_whole(file, text)
        except OSError as error:
            raise state_error("write", file, error) from error
        return False

    def clear(self) -> None:
        """Drops what the steps left."""
        shutil.rmtree(self.work, ignore_errors=True)

    @contextmanager
    def whole(self, file: Path) -> Iterator[Path]:
        """A name to write under; the file has its own name when all is written. Raises StateError."""
        fresh = file.with_name(file.name + ".new")
        try:
            fresh.unlink(missing_ok=True)
            yield fresh
            handle = os.open(fresh, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
            fresh.replace(file)
            sync_directory(file.parent)
        except OSError as error:
            raise state_error("write", file, error) from error
