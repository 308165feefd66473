"""Builds the tables of a scan's views from its verdicts, and reads them."""

import gc
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

from neardup.errors import StateError
from streams.state.directory import VIEWS
from streams.state.scan_reader import ScanReader
from streams.state.view_tables import (
    BuiltOf,
    BuiltTo,
    TablesBuild,
    ViewTables,
    built_tables,
    folder_for,
    open_build,
)
from streams.views.lists import closeness_to
from streams.views.row_batch import RowBatch, key_of
from streams.views.view_rows import ROWS_VERSION, apply, cluster_id

#: Verdicts whose rows are written together: rows of sites and days are read and written once a batch. They and their
#: rows take some 50 MB.
BATCH_VERDICTS = 4_096

#: Called with (messages done, messages in all, verdicts applied by this build).
Progress = Callable[[int, int, int], None]


def tables_of(directory: Path, state: ScanReader, held: ExitStack, progress: Progress) -> ViewTables:
    """Open the tables of a scan until `held` is closed, and build what they lack first.

    Raises StateError: another process builds or changes them, or they cannot be written. Raises CorruptRecord.
    """
    of = BuiltOf(
        rows_version=ROWS_VERSION,
        scheme=state.scheme.digest,
        decider=state.decider.digest,
        takedown=state.last_takedown(),
    )
    end = state.verdict_frames.end()
    tables = built_tables(directory / VIEWS, of, end, held)
    if tables is None:
        folder = folder_for(directory, held)
        build, built = open_build(folder, of, end)
        # A batch has many objects and no cycles: looking for these took half of a build's time.
        collected = gc.isenabled()
        gc.disable()
        try:
            _build(build, built, state, end, progress)
        finally:
            if collected:
                gc.enable()
            build.close()
        tables = built_tables(folder, of, end, held)
        if tables is None:
            raise StateError(f"{folder}: another process changed the tables of the views meanwhile: start again")
    return tables


def _build(build: TablesBuild, built: BuiltTo, state: ScanReader, end: int, progress: Progress) -> None:
    closeness, log_time, count = closeness_to(state.decider), built.log_time, 0
    for offset, verdicts in _batches(state, built.end):
        batch = RowBatch(lambda table, key: build.get(table, key))
        # One by one, reading takes a tenth of the build's time more.
        _hold(batch, build, "urls", [str(verdict["url"]) for verdict in verdicts])
        clusters = [cluster for verdict in verdicts if (cluster := cluster_id(verdict)) is not None]
        _hold(batch, build, "clusters", list(map(str, clusters)))
        for verdict in verdicts:
            log_time = max(log_time, int(verdict.get("fetched_at") or 0))
            apply(verdict, batch, log_time, closeness)
        build.write(batch.changed(), BuiltTo(built.of, offset, log_time))
        count += len(verdicts)
        progress(offset, end, count)
    if built.end < end:
        build.write({}, BuiltTo(built.of, end, log_time))


def _hold(batch: RowBatch, build: TablesBuild, table: str, keys: list[str]) -> None:
    batch.hold(table, dict(zip(keys, build.get_many(table, [key_of(key) for key in keys]), strict=True)))


def _batches(state: ScanReader, start: int) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """Yield (first frame that is not applied with it, verdicts); the verdicts of a frame may be in several batches."""
    held = list[dict[str, Any]]()
    for offset, verdicts in state.verdicts_from(start):
        while part := list(islice(verdicts, BATCH_VERDICTS - len(held))):
            held += part
            if len(held) >= BATCH_VERDICTS:
                yield offset, held
                held = []
        start = offset + 1
    if held:
        yield start, held
