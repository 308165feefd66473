"""Divides work over threads, for work that releases the interpreter's lock."""

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import lru_cache
from itertools import pairwise

#: More threads would wait for the interpreter's lock, which each of them takes now and then.
_THREADS_MAX = 8


@lru_cache(maxsize=1)
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="neardup")


os.register_at_fork(after_in_child=_pool.cache_clear)  # a child has none of its parent's threads


def spread(run: Callable[[int, int], None], size: int, threads: int, least: int) -> None:
    """Calls run(first, last) for ranges that cover 0 to size, concurrently in up to `threads` threads, 8 at most.

    least: size of the smallest range that is worth a thread. The caller's thread takes part. Raises what a call raised.
    """
    threads = min(threads, _THREADS_MAX)
    parts = max(1, min(threads, size // least))
    if parts == 1:
        return run(0, size)
    cuts = [size * i // parts for i in range(parts + 1)]
    others: list[Future[None]] = [_pool(threads - 1).submit(run, *part) for part in pairwise(cuts[1:])]
    try:
        run(*cuts[:2])
    finally:
        wait(others)  # the caller must not continue while a thread still writes
    for part in others:
        part.result()
