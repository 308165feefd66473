"""Runs the shards of a scan (`neardup.sharded`): in the scan's process, or in further processes, connected by pipes.

The state directory of a scan with shards has two more entries:

    effects/        one frame per message of the sketch log, at the same offset: the effects of the message
    shards/N/       the store of shard N; if it is lost, it is rebuilt from log and effects

A shard can answer a message only from the rows of its stable view (`Sharding.stable_to`), which later effects replace.
After a crash, the judge continues from its last flush, and needs answers from rows as old as that. So a shard
keeps its changes in memory until the judge has flushed far enough not to need the rows before them (`DeferredStore`):
the shards on disk are never too new for the judge on disk.
"""

import contextlib
import pickle
import queue
import shutil
import signal
import struct
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

from neardup.decider import Decider
from neardup.errors import CorruptRecord, InvariantBroken, NeardupError, StateError
from neardup.index.column_families import Store, Writes
from neardup.index.layered import Deferred
from neardup.index.memory import MemoryStore
from neardup.sharded.epochs import Sharding
from neardup.sharded.messages import Candidates, Effects
from neardup.sharded.shard import Question, Shard
from streams.formats.message import Message, decode_entry
from streams.process.disk import state_error, state_errors
from streams.state.segments import SegmentLog

#: The epoch E of a new state directory with shards.
_EPOCH = 16
#: Messages that are sent to shards before the judge needs the answers.
AHEAD = 4
#: Most requests that wait for a process. Usually a few wait; many only while a shard is rebuilt.
_WAITING_MAX = 64
#: Seconds to wait for a store's lock, which a process of a killed scan may hold until it ends; and between attempts.
_LOCKED_S, _LOCKED_STEP_S = 20.0, 0.1
#: Seconds that a process has at the end of a scan to handle the requests that were sent to it.
_END_S = 60.0
#: Seconds after which a process that neither reads nor sends anything, while the scan waits for it, is killed. RocksDB
#: may delay a write for 600 seconds. Counted in steps, so that time in which the whole scan is paused does not count.
SILENT_S, _SILENT_STEP_S = 660.0, 0.5
#: Bytes of memory for all shards of a directory: of the cache of blocks, and of the write buffers.
_CACHE_BYTES, _WRITE_BYTES = 256 << 20, 128 << 20


# Messages of the pipes. To a process: kind and number; then the bytes in a message of their own, to avoid a copy.
_SEND, _LEARN, _RELEASE, _END = b"s", b"l", b"r", b"e"
# From a process: kind, bytes.
_STARTED, _ANSWER, _ERROR = b"o", b"a", b"x"
_POSITION = struct.Struct(">Q")


def new_sharding(processes: int) -> Sharding:
    """Returns (V, E) of a new state directory: a shard for each process, since each shard reads every sketch."""
    return Sharding(1 << (processes - 1).bit_length(), _EPOCH)


class DeferredStore(Deferred):
    """A store whose writes stay in memory until `release`; those that were not released are lost when it is closed."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._waiting: deque[Writes] = deque()

    def write(self, writes: Writes) -> None:
        self._waiting.append(writes)
        self.add(writes)

    def release(self, count: int) -> None:
        """Write the first `count` batches to the store, in order."""
        for _ in range(count):
            self._writable.write(self._waiting.popleft())
        if count:
            self.clear()
            for writes in self._waiting:
                self.add(writes)


class _OwnedShard:
    """One shard with its store. Messages before `answers_from` get no answer."""

    def __init__(self, number: int, folder: Path | None, decider: Decider, answers_from: int) -> None:
        newest = Sharding.of(decider).stable_to(answers_from)
        self._store, self.shard = self._open(number, folder, decider, answers_from)
        if folder is not None and self.shard.effects_position > newest:
            # The judge's rows were lost or removed, so the judge starts from an earlier message.
            self._store.close()
            with state_errors("delete", folder):
                shutil.rmtree(folder)
            self._store, self.shard = self._open(number, folder, decider, answers_from)
        self._positions: deque[int] = deque()  # effects_position after each write that is not yet released

    @staticmethod
    def _open(number: int, folder: Path | None, decider: Decider, answers_from: int) -> tuple[DeferredStore, Shard]:
        store = DeferredStore(MemoryStore() if folder is None else _rocks(folder, decider.shards))
        try:
            return store, Shard(number, store, decider, answers_from=answers_from)
        except BaseException:
            store.close()
            raise

    def work(self) -> Iterator[Candidates]:
        yield from self.shard.answers()
        while self.shard.advance():
            self._positions.append(self.shard.effects_position)
            yield from self.shard.answers()

    def release(self, position: int) -> None:
        due = sum(each <= position for each in self._positions)
        self._store.release(due)
        for _ in range(due):
            self._positions.popleft()

    def close(self) -> None:
        self._store.close()


def _rocks(folder: Path, shards: int) -> Store:
    from neardup.index.rocks import RocksStore  # RocksDB is loaded only when it is used

    deadline = time.monotonic() + _LOCKED_S
    while True:
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            return RocksStore(folder, cache_bytes=_CACHE_BYTES // shards, write_bytes=_WRITE_BYTES // shards)
        except OSError as error:
            raise state_error("open", folder, error) from error
        except StateError as error:
            if "lock" not in str(error).lower() or time.monotonic() > deadline:
                raise
            time.sleep(_LOCKED_STEP_S)


class LocalShards:
    """Some shards in this process."""

    def __init__(self, numbers: Sequence[int], folder: Path | None, decider: Decider, answers_from: int) -> None:
        """folder: holds the stores of all shards; None: in memory. Raises StateError for a store of another decider."""
        self._scheme, self._sharding = decider.scheme, Sharding.of(decider)
        self._shards: list[_OwnedShard] = []
        self._answers: deque[Candidates] = deque()
        try:
            for number in numbers:
                own = None if folder is None else folder / str(number)
                self._shards.append(_OwnedShard(number, own, decider, answers_from))
        except BaseException:
            self.close()
            raise

    def start(self) -> int:
        """Return the offset from which log and effects must be sent."""
        return min(each.shard.effects_position for each in self._shards)

    def send(self, offset: int, data: bytes) -> None:
        """Pass the next message of the log to all shards."""
        message = Question(offset, records_of(offset, data, self._scheme))
        for each in self._shards:
            each.shard.take(message)
        self._work()

    def learn(self, effects: bytes) -> None:
        """Pass the effects of the next message to all shards."""
        decoded = Effects.decode(effects)
        for each in self._shards:
            each.shard.learn(decoded)
        self._work()

    def receive(self) -> Candidates:
        """Return the next answer. The order of shards in the answers to one message is not fixed."""
        if not self._answers:
            raise InvariantBroken("no shard can answer the next message of the log")
        return self._answers.popleft()

    def has_answers(self) -> bool:
        return bool(self._answers)

    def release(self, judged_to: int) -> None:
        """Write the rows that the judge's last flush permits. judged_to: the judge's next offset in that flush."""
        for each in self._shards:
            each.release(self._sharding.stable_to(judged_to))

    def close(self) -> None:
        for each in self._shards:
            each.close()

    def _work(self) -> None:
        for each in self._shards:
            self._answers.extend(each.work())


def records_of(offset: int, data: bytes, scheme: str) -> Sequence[bytes]:
    """The sketches of a message; empty for a message that the judge skips or rejects. scheme: digest of the log's."""
    try:
        entry = decode_entry(data, offset)
    except CorruptRecord:
        return ()
    return entry.records if isinstance(entry, Message) and entry.scheme.hex() == scheme else ()


class ShardsOfFold:
    """All shards of a fold in this process that is not continued after a crash: a replay or an explanation."""

    def __init__(self, decider: Decider, folder: Path | None = None) -> None:
        """folder: holds the stores of all shards; None: in memory."""
        self._count = decider.shards
        self._shards = LocalShards(range(decider.shards), folder, decider, 0)

    def answers(self, offset: int, data: bytes) -> list[Candidates]:
        """Return the answers of all shards to the next message."""
        self._shards.send(offset, data)
        return [self._shards.receive() for _ in range(self._count)]

    def learn(self, effects: Effects) -> None:
        """Pass the effects of the judged message to all shards."""
        self._shards.learn(effects.encode())
        self._shards.release(effects.offset + 1)

    def close(self) -> None:
        self._shards.close()


class ShardProcess:
    """Some shards in a process of their own, with the methods of `LocalShards`.

    The process ends when its pipe is closed, so a killed scan leaves no process behind.
    """

    def __init__(self, numbers: Sequence[int], folder: Path | None, decider: Decider, answers_from: int) -> None:
        self._numbers = numbers
        context = get_context("spawn")  # a fork would copy locks of RocksDB and of kernels
        self._pipe, there = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(there, tuple(numbers), folder, decider, answers_from), daemon=True
        )
        self._process.start()
        there.close()
        self._requests: queue.Queue[tuple[bytes, int, bytes]] = queue.Queue(_WAITING_MAX)
        self._taken = 0  # number of requests that the process has read
        self._writer = threading.Thread(target=self._write, name="neardup-shards", daemon=True)
        self._writer.start()
        self._start: int | None = None
        self._answers: deque[Candidates] = deque()

    @property
    def pid(self) -> int | None:
        return self._process.pid

    def start(self) -> int:
        if self._start is None:
            (self._start,) = _POSITION.unpack(self._receive(_STARTED))
        return self._start

    def send(self, offset: int, data: bytes) -> None:
        self._request(_SEND, offset, data)

    def learn(self, effects: bytes) -> None:
        self._request(_LEARN, 0, effects)

    def receive(self) -> Candidates:
        return Candidates.decode(self._receive(_ANSWER))

    def release(self, judged_to: int) -> None:
        self._request(_RELEASE, judged_to, b"")

    def close(self) -> None:
        """End the process after the requests that were sent to it; after _END_S kill it, which loses nothing."""
        with contextlib.suppress(StateError):
            self._request(_END, 0, b"")
        deadline = time.monotonic() + _END_S
        while self._process.is_alive():
            if time.monotonic() > deadline:
                self._process.kill()
            with contextlib.suppress(EOFError, OSError):
                while self._pipe.poll(_LOCKED_STEP_S):  # read what it sends, so that a full pipe does not block it
                    self._pipe.recv_bytes()
            self._process.join(_LOCKED_STEP_S)
        self._writer.join()
        self._pipe.close()

    def _request(self, kind: bytes, number: int, data: bytes) -> None:
        for _ in self._steps():
            if not self._writer.is_alive():
                raise self._lost()
            with contextlib.suppress(queue.Full):
                self._requests.put((kind, number, data), timeout=_SILENT_STEP_S)
                return

    def _steps(self) -> Iterator[None]:
        """The steps of a wait for the process. Raises StateError once it has read no request for SILENT_S."""
        waited, taken = 0.0, self._taken
        while waited <= SILENT_S:
            yield
            waited = waited + _SILENT_STEP_S if taken == self._taken else 0.0
            taken = self._taken
        self._process.kill()
        raise StateError(
            f"the process of shards {_named(self._numbers)} (pid {self.pid}) did nothing for {SILENT_S:.0f} seconds, "
            "and was ended: it was stopped, or its disk does not answer; nothing is lost: run the same command again, "
            "which continues from here"
        )

    def _write(self) -> None:
        with contextlib.suppress(OSError):
            kind = b""
            while kind != _END:
                kind, number, data = self._requests.get()
                self._pipe.send_bytes(kind + _POSITION.pack(number))
                if kind in (_SEND, _LEARN):
                    self._pipe.send_bytes(data)
                self._taken += 1

    def _receive(self, required: bytes) -> bytes:
        try:
            for _ in self._steps():
                if self._pipe.poll(_SILENT_STEP_S):
                    break
            found = self._pipe.recv_bytes()
        except (EOFError, OSError) as error:
            raise self._lost() from error
        kind, data = found[:1], found[1:]
        if kind == _ERROR:
            raise pickle.loads(data)
        if kind != required:
            raise InvariantBroken(f"shards {_named(self._numbers)} sent {kind!r}, and {required!r} was expected")
        return data

    def _lost(self) -> StateError:
        self._process.join(5)
        return StateError(
            f"the process of shards {_named(self._numbers)} ended (exit code {self._process.exitcode}), perhaps for "
            "lack of memory; nothing is lost: run the same command again, which continues from here"
        )


def _named(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def _serve(pipe: Connection, numbers: Sequence[int], folder: Path | None, decider: Decider, answers_from: int) -> None:
    """Run the process of some shards until the pipe ends."""
    for one in (signal.SIGINT, signal.SIGTERM):  # the scan handles them, and then ends this process
        signal.signal(one, signal.SIG_IGN)
    with contextlib.suppress(EOFError, OSError):
        try:
            with contextlib.closing(LocalShards(numbers, folder, decider, answers_from)) as shards:
                pipe.send_bytes(_STARTED + _POSITION.pack(shards.start()))
                while (request := pipe.recv_bytes())[:1] != _END:
                    kind, (number,) = request[:1], _POSITION.unpack_from(request, 1)
                    if kind == _SEND:
                        shards.send(number, pipe.recv_bytes())
                    elif kind == _LEARN:
                        shards.learn(pipe.recv_bytes())
                    else:
                        shards.release(number)
                    while shards.has_answers():
                        pipe.send_bytes(_ANSWER + shards.receive().encode())
        except NeardupError as error:
            pipe.send_bytes(_ERROR + pickle.dumps(error))


class ScanShards:
    """All shards of a scan, and the log of effects."""

    def __init__(
        self, path: Path | None, effects: SegmentLog, log: SegmentLog, decider: Decider, judged_to: int, processes: int
    ) -> None:
        """
        Args:
            path: folder of the shards; None: in memory.
            effects: the log of effects; it has those of the messages before `judged_to`.
            judged_to: the judge's next offset.
            processes: 0: all shards in this process.
        """
        self._effects, self._judged_to, self._sent = effects, judged_to, judged_to
        self._shards = decider.shards
        self._answers: dict[int, list[Candidates]] = {}
        count = min(processes, decider.shards)
        self._has_processes = count > 0
        self.groups: list[LocalShards | ShardProcess] = []
        try:
            if count:
                for first in range(count):
                    numbers = range(first, decider.shards, count)
                    self.groups.append(ShardProcess(numbers, path, decider, judged_to))
            else:
                self.groups.append(LocalShards(range(decider.shards), path, decider, judged_to))
            self._bring_up(log)
        except BaseException:
            self.close()
            raise

    def _bring_up(self, log: SegmentLog) -> None:
        """Send each shard the judged messages, with their effects, that its rows lack."""
        starts = [group.start() for group in self.groups]
        first = min(starts)
        frames = zip(log.read(first, self._judged_to), self._effects.read(first, self._judged_to), strict=True)
        for (offset, data), (_, effects) in frames:
            for group, start in zip(self.groups, starts, strict=True):
                if offset >= start:
                    group.send(offset, data)
                    group.learn(effects)

    def send_ahead(self, offset: int, data: bytes) -> None:
        """Send a message to the processes before its answers are needed, in the log's order.

        A thread other than the judge's may call it. At most AHEAD messages, or those of a scan's queue, are ahead.
        """
        if self._has_processes:
            self._send(offset, data)

    def _send(self, offset: int, data: bytes) -> None:
        for group in self.groups:
            group.send(offset, data)
        self._sent = offset + 1

    def answers(self, offset: int, data: bytes) -> list[Candidates]:
        """Return the answers of all shards to a message."""
        if offset >= self._sent:
            self._send(offset, data)
        per_group = [range(i, self._shards, len(self.groups)) for i in range(len(self.groups))]
        for group, numbers in zip(self.groups, per_group, strict=True):
            # Each shard answers in order, but a shard may answer a later message before another shard answers this one.
            while len([one for one in self._answers.get(offset, ()) if one.shard in numbers]) < len(numbers):
                answer = group.receive()
                self._answers.setdefault(answer.offset, []).append(answer)
        return self._answers.pop(offset)

    def learn(self, effects: Effects) -> None:
        """Store the effects of the judged message, and send them to the shards. Raises StateError."""
        encoded = effects.encode()
        written = self._effects.append(encoded)
        assert written == effects.offset, "one frame a message"
        for group in self.groups:
            group.learn(encoded)

    def release(self, judged_to: int) -> None:
        """Let the shards write rows that the judge's last flush permits. judged_to: the judge's next offset in it."""
        for group in self.groups:
            group.release(judged_to)

    def close(self) -> None:
        for group in self.groups:
            group.close()
