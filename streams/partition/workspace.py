"""Manages the folder of a partition: its plan, and files that are written atomically.

lock           held by the one process that works there
plan.json      the parameters and sources that all other files were made from
work/          intermediate tables and texts, deleted at the end
sets.jsonl, documents.parquet, pairs.parquet, summary.json, report.html    the results
"""

import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from neardup.errors import StateError
from streams.process.disk import lock_directory, state_errors, whole_file, write_whole

RESULTS = ("sets.jsonl", "documents.parquet", "pairs.parquet", "summary.json", "report.html")
_NAMES = {"lock", "plan.json", "work", *RESULTS}


class PartitionWorkspace:
    """An open folder, as a context manager. Raises StateError if it cannot be used."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.work = self.path / "work"
        self._held = ExitStack()
        lock_directory(self.path, _NAMES, self._held)

    def __enter__(self) -> "PartitionWorkspace":
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def open_plan(self, plan: dict[str, Any], *, again: bool) -> None:
        """Starts or resumes a plan.

        again: delete the files of any earlier run first. Raises StateError if the folder belongs to another plan.
        """
        file = self.path / "plan.json"
        with state_errors("write", file):
            if again:
                self.clear()
                for name in ("plan.json", *RESULTS):
                    (self.path / name).unlink(missing_ok=True)
            text = json.dumps(plan, sort_keys=True, indent=1) + "\n"
            if file.exists():
                if file.read_text(encoding="utf-8") != text:
                    raise StateError(
                        f"{self.path} holds a partition of other files or with other parameters; choose another "
                        "--out, or replace it with --again"
                    )
            else:
                self.clear()
                write_whole(file, text)
            self.work.mkdir(exist_ok=True)

    def clear(self) -> None:
        """Deletes intermediate files."""
        shutil.rmtree(self.work, ignore_errors=True)

    @contextmanager
    def whole(self, file: Path) -> Iterator[Path]:
        """Yields a temporary name to write to, then renames it to `file`. Raises StateError."""
        with state_errors("write", file), whole_file(file) as fresh:
            yield fresh
