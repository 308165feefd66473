"""Processes that read and sketch for a scan, each a share of its sources.

In the order of the sources, the parts of all sources are dealt to the processes in turn: part t belongs to process
t mod N. Blocks of sketches come back through a pipe for each process, and are taken in the order of the parts; each
process sends up to SENT_BYTES_MAX ahead. The handover of a part (`streams.files.parts`) goes directly to the process of
the next part, by a ring of pipes. By fetch times, each process reads and merges some of the archives.

The processes are started before anything opens a store, a thread or a lock: they are forked, which takes milliseconds,
and inherit the imported modules. Where threads run already (the roles of the stream), they are spawned. They load their
kernels while the state is opened. A process ends if its pipes end: a killed scan leaves none behind.
"""

import contextlib
import fcntl
import gc
import pickle
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, Literal

from neardup.errors import NeardupError
from neardup.page import Page
from neardup.scheme import Scheme
from neardup.sketch.make_sketches import sketch_pages
from streams.files.parts import Handover, Part
from streams.scan.blocks import Block
from streams.scan.reading import PartSketches, SourceToRead, blocks_by_time

#: Bytes of sketches that a process holds until they are taken, besides its last block.
SENT_BYTES_MAX = 32 << 20
# Bytes of memory of one process at most, as the help of the command says: 600 MB. Its modules and kernels take 160;
# records read ahead 64, and as much in copies while they are read; the records that a part hands over 32, as objects
# and as bytes, on both sides; bodies that are sketched 16; sketches 32; and a page of 10 MB in all of its forms.
# DuckDB takes up to 1 GB more, where it reads Parquet.

#: Of the pipe for blocks: a block of 512 sketches in one piece.
_PIPE_BYTES = 1 << 20
_POLL_S = 0.1
_PROBE = Page("http://probe.invalid/", b"<p>probe")

#: A part of a source: number of the source, part.
Task = tuple[int, Part]


class ReaderLost(NeardupError):
    """A process that read sources was killed, usually for lack of memory. Run it again, with fewer threads."""


@dataclass(slots=True)
class _Job:
    """What all processes are given. tasks: all parts, in their order; None: read by fetch times."""

    scheme: Scheme
    sources: list[SourceToRead]
    tasks: list[Task] | None


class SketchProcesses:
    """Some processes that wait for one job. Use it as a context manager, which ends them."""

    def __init__(self, count: int, start: Literal["fork", "spawn"] = "fork") -> None:
        """Start the processes. start: `fork` only where this process has no other threads."""
        context: Any = get_context(start)
        self.count = count
        self._status = context.RawArray("q", 2 * count)  # of each process: number of its task, position in the source
        jobs = [context.Pipe(duplex=False) for _ in range(count)]
        blocks = [context.Pipe(duplex=False) for _ in range(count)]
        ring = [context.Pipe(duplex=False) for _ in range(count)]  # ring[i]: from process i - 1 to process i
        for here, _ in blocks:
            with contextlib.suppress(OSError):  # the user's share of memory for pipes is used up
                fcntl.fcntl(here.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        every = [end for pipe in (*jobs, *blocks, *ring) for end in pipe]
        self._jobs = [there for _, there in jobs]
        self._blocks = [here for here, _ in blocks]
        self._processes = []
        if start == "fork":
            gc.freeze()  # so that a collection in a child does not copy the pages of what is imported
        for number in range(count):
            own = (jobs[number][0], blocks[number][1], ring[number][0], ring[(number + 1) % count][1])
            others = [end for end in every if end not in own] if start == "fork" else []
            process = context.Process(
                target=_serve, args=(number, count, self._status, own, others), name="neardup-reader", daemon=True
            )
            process.start()
            self._processes.append(process)
        for end in every:
            if end not in self._jobs and end not in self._blocks:
                end.close()
        self._job: _Job | None = None

    def __enter__(self) -> "SketchProcesses":
        return self

    def __exit__(self, *_: object) -> None:
        for end in (*self._jobs, *self._blocks):
            end.close()
        for process in self._processes:
            process.kill()
            process.join()

    @property
    def pids(self) -> list[int]:
        """The ids of the processes."""
        return [process.pid for process in self._processes]

    def in_order(
        self, scheme: Scheme, sources: Sequence[SourceToRead], tasks: Sequence[Task], stopped: Callable[[], bool]
    ) -> Iterator[Block]:
        """Yields the blocks of all tasks in their order; the last one of each has `last`.

        stopped: tells whether to end early. Raises ReaderLost, and what a process raised.
        """
        self._begin(_Job(scheme, list(sources), list(tasks)))
        for number in range(len(tasks)):
            last = False
            while not last:
                block = self._block(number % self.count, stopped)
                if block is None:
                    return
                last = block.notes.last
                yield block

    def by_time(
        self, scheme: Scheme, sources: Sequence[SourceToRead], stopped: Callable[[], bool]
    ) -> list[Iterator[Block]]:
        """Returns the blocks of each process, which reads some of the archives. Errors as in `in_order`."""
        self._begin(_Job(scheme, list(sources), None))
        return [self._all_of(number, stopped) for number in range(self.count)]

    def _all_of(self, number: int, stopped: Callable[[], bool]) -> Iterator[Block]:
        while (block := self._block(number, stopped)) is not None:
            yield block
            if block.notes.last:
                return

    def _begin(self, job: _Job) -> None:
        self._job = job
        data = pickle.dumps(job)
        for end in self._jobs:
            with contextlib.suppress(BrokenPipeError):  # it is missed when its blocks are
                end.send_bytes(data)

    def _block(self, number: int, stopped: Callable[[], bool]) -> Block | None:
        try:
            while not self._blocks[number].poll(_POLL_S):
                if stopped():
                    return None
            block = Block.decode(self._blocks[number].recv_bytes())
        except (EOFError, OSError) as error:
            raise self._lost() from error
        failure = block.notes.error
        if isinstance(failure, MemoryError):
            raise ReaderLost(f"{self._place(number)} got no memory; {_ADVICE}") from failure
        if failure is not None and not isinstance(failure, OSError):
            raise failure
        return block

    def _lost(self) -> ReaderLost:
        """The error that names the process that was killed. Others end because their pipes do."""
        for process in self._processes:
            process.join(_POLL_S)
        codes = [process.exitcode for process in self._processes]
        number = next((number for number, code in enumerate(codes) if code), 0)
        code = codes[number]
        how = "ended" if code is None else f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        why = ", usually for lack of memory" if code == -signal.SIGKILL else ""
        return ReaderLost(f"{self._place(number)} {how}{why}; {_ADVICE}")

    def _place(self, number: int) -> str:
        job = self._job
        task, position = self._status[2 * number], self._status[2 * number + 1]
        if job is None or not job.sources:
            return "a process that reads sources"
        if job.tasks is None:
            paths = [each.record.path for each in job.sources[number :: self.count]]
            more = f" and {len(paths) - 1} others" if len(paths) > 1 else ""
            return f"the process that read {paths[0] if paths else 'nothing'}{more}"
        record = job.sources[job.tasks[task][0]].record
        of = "page" if record.format is None else "row" if record.format.ordinals else "byte"
        return f"the process that read {record.path}, at {of} {position},"


_ADVICE = (
    "what was judged is kept: run the same command again, which continues from there, with fewer --threads if memory "
    "is short"
)


# ---- in a process

#: Ends of pipes: for the job, for blocks, from the process before in the ring, to the next one.
_Ends = tuple[Connection, Connection, Connection, Connection]


def _serve(number: int, count: int, status: Any, own: _Ends, others: Sequence[Connection]) -> None:
    """Run a process until its job is done or the scan is gone."""
    for one in (signal.SIGINT, signal.SIGTERM):  # the scan handles them, and then ends this process
        signal.signal(one, signal.SIG_IGN)
    for end in others:
        end.close()
    jobs, out, before, after = own
    sketch_pages([_PROBE], Scheme(seed=0))  # loads the kernels
    with contextlib.suppress(EOFError, OSError):
        job: _Job = pickle.loads(jobs.recv_bytes())
        sender = _Sender(out, SENT_BYTES_MAX)
        try:
            if job.tasks is None:
                own_sources = list(enumerate(job.sources))[number::count]
                for block in blocks_by_time(own_sources, job.scheme):
                    sender.put(block.encode())
            else:
                ring = _Ring(before, after, alone=count == 1)
                _work(number, count, job, status, sender, ring)
                ring.end()
        except _ScanGone:
            return
        except (EOFError, OSError):  # the process before in the ring is gone, and the scan will miss it
            sender.end()
            return
        except BaseException as error:  # noqa: BLE001 - raised again by the scan
            sender.put(Block.of_error(_picklable(error)).encode())
        sender.end()


def _work(number: int, count: int, job: _Job, status: Any, sender: "_Sender", ring: "_Ring") -> None:
    assert job.tasks is not None
    for at in range(number, len(job.tasks), count):
        source, part = job.tasks[at]
        is_last = part.stop is None
        relay = _Relay(ring, at, part.ordinal is None, not is_last)
        work = PartSketches(source, job.sources[source], part, relay, job.scheme)
        status[2 * number], status[2 * number + 1] = at, work.position
        for block in work.blocks():
            status[2 * number + 1] = work.position
            if block.notes.last:
                relay.finish()
            sender.put(block.encode())


def _picklable(error: BaseException) -> BaseException:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001 - whatever an error's own code does
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


class _ScanGone(Exception):
    """The other end of the pipe is closed."""


class _Sender:
    """A thread that sends bytes through a pipe, in their order, so that the process goes on meanwhile."""

    def __init__(self, pipe: Connection, bytes_max: int) -> None:
        self._pipe, self._bytes_max = pipe, bytes_max
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._gone = False
        self._changed = threading.Condition()
        threading.Thread(target=self._run, name="neardup-sender", daemon=True).start()

    def put(self, data: bytes) -> None:
        """Waits for room, unless nothing waits. Raises _ScanGone."""
        with self._changed:
            self._changed.wait_for(lambda: self._gone or not self._bytes or self._bytes + len(data) <= self._bytes_max)
            if self._gone:
                raise _ScanGone
            self._waiting.append(data)
            self._bytes += len(data)
            self._changed.notify_all()

    def end(self) -> None:
        """Waits until everything is sent."""
        with self._changed:
            self._changed.wait_for(lambda: self._gone or not self._bytes)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting)
                data = self._waiting.popleft()
            try:
                self._pipe.send_bytes(data)
            except OSError:
                with self._changed:
                    self._gone = True
                    self._changed.notify_all()
                return
            with self._changed:
                self._bytes -= len(data)
                self._changed.notify_all()


class _Ring:
    """Handovers from the process before, and to the next one. alone: there is one process, which keeps its own."""

    def __init__(self, before: Connection, after: Connection, *, alone: bool) -> None:
        self._before = before
        self._sender = None if alone else _Sender(after, 0)
        self._kept: deque[tuple[int, Handover]] = deque()

    def receive(self, task: int) -> Handover:
        """Waits for the handover to a task. Raises EOFError if the process before is gone."""
        given, handover = self._kept.popleft() if self._sender is None else pickle.loads(self._before.recv_bytes())
        assert given == task, f"the handover to part {task} is of part {given}"
        return handover

    def send(self, task: int, handover: Handover) -> None:
        """Sends the handover to a task."""
        if self._sender is None:
            self._kept.append((task, handover))
        else:
            self._sender.put(pickle.dumps((task, handover)))

    def end(self) -> None:
        """Waits until everything is sent."""
        if self._sender is not None:
            self._sender.end()


class _Relay:
    """The relay of one part: each handover is taken and given exactly once."""

    def __init__(self, ring: _Ring, task: int, has_before: bool, has_after: bool) -> None:
        self._ring, self._task = ring, task
        self._before, self._after = has_before, has_after
        self._taken: Handover | None = None

    def take(self) -> Handover:
        assert self._before
        if self._taken is None:
            self._taken = self._ring.receive(self._task)
        return self._taken

    def give(self, handover: Handover) -> None:
        assert self._after
        self._after = False
        self._ring.send(self._task + 1, handover)

    def finish(self) -> None:
        """Take and give what the part did not: its reading ended early, and so does that of the parts behind it."""
        if self._before:
            self.take()
        if self._after:
            self.give(Handover(None))
