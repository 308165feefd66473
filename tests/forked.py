"""Processes of tests that are forked from a server, which has imported what they need: a start costs milliseconds.

Each test file names what it needs by `preload`, when it is imported. `start_server` comes before a process is made with
`context`. The processes are real: they have a pid, can be killed, and inherit no thread and no lock.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from multiprocessing import forkserver
from pathlib import Path

from tests.processes import die_with_parent

context = multiprocessing.get_context("forkserver")

#: True in the server, while it imports, and in the processes that it has forked.
IN_SERVER = multiprocessing.current_process().name == "MainProcess" and "NEARDUP_TEST_FORKSERVER" in os.environ
_modules: list[str] = []


def preload(module: str) -> None:
    """Has the server import a module, if it does not run yet."""
    _modules.append(module)
    context.set_forkserver_preload(_modules)


def start_server() -> None:
    """Starts the fork server where there is none. It says nothing of a module that it does not find, and looks for it
    where a new interpreter does: only forked processes inherit the path of this one.
    """
    before = os.environ.get("PYTHONPATH")
    os.environ |= {"NEARDUP_TEST_FORKSERVER": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        forkserver.ensure_running()
    finally:
        del os.environ["NEARDUP_TEST_FORKSERVER"], os.environ["PYTHONPATH"]
        if before is not None:
            os.environ["PYTHONPATH"] = before


def leave_server() -> None:
    """In a forked process. The server ends once only its own children could send it requests; otherwise they would wait
    for each other.
    """
    os.close(forkserver._forkserver._forkserver_alive_fd)  # type: ignore[attr-defined]


class Command:
    """`neardup` with these arguments, in a forked process with as much of `Popen` as tests use.

    log: output and errors are added to it. before: code that runs first.
    """

    def __init__(
        self, arguments: Sequence[str], log: Path, *, before: str = "", environment: Mapping[str, str] = os.environ
    ) -> None:
        given = (list(arguments), log, before, dict(environment))
        self._process = context.Process(target=_run, args=given, daemon=True)
        log.touch()
        start_server()
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def poll(self) -> int | None:
        """The exit code; None while it runs, and -9 after SIGKILL."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("neardup", timeout or 0)
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _run(arguments: list[str], log: Path, before: str, environment: dict[str, str]) -> None:
    """The process of a command: as an interpreter that was started for it."""
    from streams.commands import main

    assert IN_SERVER, "the fork server has loaded nothing"
    leave_server()
    die_with_parent()
    multiprocessing.current_process()._config["daemon"] = False  # type: ignore[attr-defined]  # it may start processes
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(environment)
    with log.open("ab", buffering=0) as out:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
    sys.argv = ["neardup", *arguments]
    exec(before, {})
    main()
