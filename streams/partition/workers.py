"""Runs work on chunks in processes: results in the order of the chunks, a bounded number of chunks under way."""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import TypeVar

from neardup.errors import NeardupError
from streams.errors import Interrupted

#: Chunks under way per process: one at work, one waiting.
_AHEAD = 2

Chunk = TypeVar("Chunk")
Made = TypeVar("Made")


class WorkStopped(Interrupted):
    """A signal ended the work. The same command resumes it."""


class WorkerLost(NeardupError):
    """A process was killed, usually for lack of memory. Run again with fewer processes or more memory."""


class Workers:
    """A pool of processes; with one process, the caller does the work itself."""

    def __init__(self, processes: int, stop: threading.Event) -> None:
        self._stop = stop
        # "spawn": a fork would copy locks that the engine's threads hold
        self._pool = ProcessPoolExecutor(processes, mp_context=get_context("spawn")) if processes > 1 else None
        self._most = _AHEAD * processes

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def each(self, work: Callable[[Chunk], Made], chunks: Iterable[Chunk]) -> Iterator[Made]:
        """Yields work(chunk) for each chunk, in order. Raises Stopped between two chunks, and the errors of `work`."""
        if self._pool is None:
            for chunk in chunks:
                self._check()
                yield work(chunk)
            return
        waiting: deque[Future[Made]] = deque()
        try:
            for chunk in chunks:
                self._check()
                waiting.append(self._pool.submit(work, chunk))
                if len(waiting) >= self._most:
                    yield waiting.popleft().result()
            while waiting:
                self._check()
                yield waiting.popleft().result()
        except BrokenProcessPool as error:
            raise WorkerLost(
                "a process that compared texts was killed; run the same command with fewer --workers"
            ) from error
        finally:
            for future in waiting:
                future.cancel()

    def _check(self) -> None:
        if self._stop.is_set():
            raise WorkStopped("interrupted")
