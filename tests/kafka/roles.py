"""Roles in processes of their own, that can be killed, frozen, or made to die at a step.

Forked from a server that has loaded everything and compiled the kernels, so that a start costs milliseconds.
"""

import contextlib
import faulthandler
import json
import os
import random
import resource
import signal
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from signal import Signals
from typing import Any

from broker import PATIENCE_SECONDS, eventually

from neardup.errors import NeardupError
from streams.config.settings import Settings
from streams.kafka import KafkaPages, KafkaVerdicts, MergedPages, Writer
from streams.process.watchdog import EXIT_CODE
from streams.roles import backfill
from streams.roles.backfill import BackfillOptions, run_backfill
from streams.roles.match_ports import ReportedMatcher, TimedFlush, VerdictTransactions
from streams.roles.match_start import run_matcher
from streams.roles.runtime import Runtime, serving
from streams.roles.single_process import run_single_process
from streams.roles.sketch_role import SketchRole, run_sketcher
from streams.state.checkpoint_store import CheckpointStore
from tests import forked
from tests.crash.driver import die, dying
from tests.processes import die_with_parent


def _backfill(settings: Settings, runtime: Runtime, **wishes: Any) -> None:
    run_backfill(settings, BackfillOptions(**wishes), runtime)


ROLES: dict[str, Callable[..., None]] = {
    "sketch": run_sketcher,
    "match": run_matcher,
    "run": run_single_process,
    "backfill": _backfill,
}


def freeze(*_: Any) -> None:
    """Stops the whole process, with the threads of its Kafka clients, until a SIGCONT."""
    os.kill(os.getpid(), signal.SIGSTOP)


def full_disk(*_: Any) -> None:
    """From now on no file grows over 4 kB: RocksDB cannot flush any more. Lasts as long as the process.

    The log of the process starts anew: it may not grow either.
    """
    os.ftruncate(1, 0)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


class _Stamping:
    """A producer that stamps records by the clock of this process."""

    def __init__(self, producer: Any) -> None:
        self._producer = producer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._producer, name)

    def produce(self, *given: Any, **more: Any) -> None:
        self._producer.produce(*given, **more, timestamp=time.time_ns() // 1_000_000)


def _jump(ms: int) -> None:
    """The clock of the process jumps: the one that it reads, and the one by which its producers stamp records.

    The waits of the Kafka client are not distorted: they use a clock that cannot be set.
    """
    seconds, nanoseconds = time.time, time.time_ns
    time.time = lambda: seconds() + ms / 1000
    time.time_ns = lambda: nanoseconds() + ms * 1_000_000

    def stamp(kind: Any, name: str) -> None:
        call = getattr(kind, name)

        def stamped(self: Any, *given: Any, **more: Any) -> Any:
            if not isinstance(self._producer, _Stamping):
                self._producer = _Stamping(self._producer)
            return call(self, *given, **more)

        setattr(kind, name, stamped)

    stamp(Writer, "try_send")
    stamp(KafkaVerdicts, "_produce")


def clock_ahead(*_: Any) -> None:
    """By more than the hour that brokers accept by default."""
    _jump(2 * 3_600_000)


def clock_back(*_: Any) -> None:
    _jump(-2 * 3_600_000)


How = Callable[..., None]


def _late(call: int, how: How) -> None:
    """What the sketcher had in hand when it froze arrives afterwards for certain, before it learns what has become."""
    dying(SketchRole, "_send", call, before=True, how=how)
    armed = SketchRole._send

    def send(self: SketchRole, *given: Any) -> None:
        armed(self, *given)
        self._log.flush()  # type: ignore[attr-defined]

    SketchRole._send = send  # type: ignore[method-assign]


#: Where a role may die: (role, step) -> arms it for the n-th time.
STEPS: dict[tuple[str, str], Callable[[int, How], None]] = {
    ("sketch", "1 polled"): lambda n, how: dying(SketchRole, "_decode", n, before=True, how=how),
    ("sketch", "2 decoded"): lambda n, how: dying(SketchRole, "_sketch", n, before=True, how=how),
    ("sketch", "3 sketched"): lambda n, how: dying(SketchRole, "_send", n, before=True, how=how),
    ("sketch", "4 sends late"): _late,
    ("sketch", "4 half sent"): lambda n, how: dying(Writer, "send", n, before=False, how=how),
    ("sketch", "4 sent"): lambda n, how: dying(SketchRole, "_send", n, before=False, how=how),
    ("sketch", "5 acknowledged"): lambda n, how: dying(KafkaPages, "commit", n, before=True, how=how),
    ("sketch", "6 committed"): lambda n, how: dying(KafkaPages, "commit", n, before=False, how=how),
    ("match", "0 fenced the others"): lambda n, how: dying(KafkaVerdicts, "init", 1, before=False, how=how),
    ("match", "1 polled"): lambda n, how: dying(ReportedMatcher, "prepare", n, before=True, how=how),
    ("match", "2 judged"): lambda n, how: dying(VerdictTransactions, "emit", n, before=True, how=how),
    # Calls of a transaction: init once, then begin, offsets, commit.
    ("match", "3 verdicts sent"): lambda n, how: dying(KafkaVerdicts, "_call", 3 * n, before=True, how=how),
    ("match", "3 offsets sent"): lambda n, how: dying(KafkaVerdicts, "_call", 3 * n + 1, before=True, how=how),
    ("match", "3 committed"): lambda n, how: dying(VerdictTransactions, "emit", n, before=False, how=how),
    ("match", "4 written"): lambda n, how: dying(ReportedMatcher, "apply", n, before=False, how=how),
    ("match", "5 about to flush"): lambda n, how: dying(TimedFlush, "flush", n, before=True, how=how),
    ("match", "5 flushed"): lambda n, how: dying(TimedFlush, "flush", n, before=False, how=how),
}

#: Beside these, of a role that makes checkpoints.
CHECKPOINT_STEPS: dict[tuple[str, str], Callable[[int, How], None]] = {
    ("match", "5 checkpoint copied"): lambda n, how: dying(CheckpointStore, "write", n, before=False, how=how),
}


def _at_other_speeds(seed: int, how: How) -> None:
    """Each time only one partition may be read, drawn at random, and the matcher is slower still; no process dies."""
    draw, take_in, judge = random.Random(seed), MergedPages._take_in, ReportedMatcher.prepare

    def one_by_one(self: MergedPages, wait_s: float) -> None:
        places = {partition: self._at(partition) for partition in self.assigned()}
        if places:
            chosen = draw.choice(sorted(places))
            self._consumer.pause(list(places.values()))
            self._consumer.resume([places[chosen]])
        take_in(self, min(wait_s, 0.05))

    def late(self: ReportedMatcher, *given: Any, **how: Any) -> Any:
        threading.Event().wait(0.5)
        return judge(self, *given, **how)

    MergedPages._take_in = one_by_one  # type: ignore[method-assign]
    ReportedMatcher.prepare = late  # type: ignore[method-assign]


def _written_before_takedowns(call: int, how: How) -> None:
    """The matcher dies before the thread that repeats takedowns has repeated any, however slow the machine is."""
    STEPS["match", "4 written"](call, how)
    backfill.repeat_takedowns = lambda *given: threading.Event().wait()


#: A backfill and `run` have the steps of both.
BACKFILL_STEPS: dict[str, Callable[[int, How], None]] = {
    "match 4 written before takedowns": _written_before_takedowns,
    "reads at other speeds": _at_other_speeds,
    "takedowns repeated": lambda n, how: dying(backfill, "repeat_takedowns", n, before=False, how=how),
    **{f"{role} {step}": arm for (role, step), arm in STEPS.items()},
}


def _play(role: str, settings: Settings, log: Path, step: str, call: int, how: How, options: dict[str, Any]) -> None:
    """The process: plays a role until it is stopped; exits with 1 after an error, whose text is the log's end."""
    forked.leave_server()
    die_with_parent()
    assert forked.IN_SERVER, "the fork server has loaded nothing: each role would for itself, for a second"
    with open(log, "ab", buffering=0) as out:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
    faulthandler.register(signal.SIGUSR1)
    if step:
        arm = BACKFILL_STEPS[step] if role in ("backfill", "run") else {**STEPS, **CHECKPOINT_STEPS}[role, step]
        arm(call, how)
    try:
        with serving(settings, role) as runtime:
            ROLES[role](settings, runtime, **options)
    except NeardupError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)


forked.preload(__name__)
forked.preload("tests.warmed")


class Role:
    """One process. `name` also names its log."""

    def __init__(
        self,
        role: str,
        settings: Settings,
        log: Path,
        *,
        step: str = "",
        call: int = 2,
        how: How = die,
        **options: Any,
    ) -> None:
        """options: of the role's function."""
        self.log = log
        given = (role, settings, log, step, call, how, options)
        self._process = forked.context.Process(target=_play, args=given, daemon=True)
        forked.start_server()
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def output(self) -> str:
        return self.log.read_text() if self.log.exists() else ""

    def signal(self, number: Signals) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):  # it ends by itself
            if self._process.is_alive():
                self.signal(signal.SIGKILL)
        self.wait()

    def wait(self, seconds: float = PATIENCE_SECONDS) -> int:
        """The exit code; -9 after SIGKILL."""
        self._process.join(seconds)
        code = self._process.exitcode
        if code is None:
            self.signal(signal.SIGUSR1)  # says where it hangs
            self._process.join(1.0)
        assert code is not None, f"still runs after {seconds} s:\n{self.output()}"
        return code

    def dead(self) -> None:
        """Waits until it was killed, by itself at its step."""
        assert self.wait() == -signal.SIGKILL, self.output()

    def stop(self) -> None:
        """SIGTERM; it must end by itself, well."""
        eventually(lambda: '"started"' in self.output(), "its start, from which on it hears signals")
        self.signal(signal.SIGTERM)
        self.stopped()

    def stopped(self) -> None:
        """Waits for its end after SIGTERM: in order, or by its deadline if a call of librdkafka hangs.

        Seen once in 12 silences of 14 s: a transaction of a busy matcher, whose call has a timeout of its own. Seen
        twice in 5,000 tests: a member that leaves its group, whose call keeps the GIL, so that the alarm ends it.
        """
        code, values = self.wait(), self.output()
        late = code == EXIT_CODE and "after the stop; ending the process" in values
        alarmed = code == 1 and "Timeout (0:00:" in values and "in _revoked" in values
        assert code == 0 or late or alarmed, values

    def refused(self) -> str:
        """Waits for its end with an error; the text of the error."""
        assert self.wait() == 1, self.output()
        return self.output().splitlines()[-1]

    @property
    def running(self) -> bool:
        return self._process.is_alive()

    def frozen(self) -> None:
        """Waits until it has frozen itself at its step."""

        def look() -> bool:
            assert self.running, self.output()
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"

        eventually(look, f"frozen; its output: {self.output()}")

    def catches(self, number: Signals) -> bool:
        """Whether it has a handler of its own for the signal."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        caught = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt"))
        return bool(int(caught, 16) >> (number - 1) & 1)

    def thaw(self) -> None:
        self.signal(signal.SIGCONT)


def readiness(role: str, port: int) -> str:
    """What a role says of itself when it is ready; "" when it is not."""
    ok, reason = standing(role, port)
    return reason if ok else ""


def standing(role: str, port: int) -> tuple[bool, str]:
    """Whether a role is ready, and its reason; (False, "") of a process that does not answer."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=30) as answer:
            roles = json.load(answer)["roles"]
    except urllib.error.HTTPError as refused:
        with refused:
            roles = json.load(refused)["roles"]
    except OSError:
        return False, ""
    return bool(role in roles and roles[role]["ok"]), str(roles[role]["reason"] if role in roles else "")
