"""Processes of tests that are forked from a server, which has imported what they need: a start costs milliseconds.

Each test file names what it needs by `preload`, when it is imported. `start_server` comes before a process is made with
`context`. The processes are real: they have a pid, can be killed, and inherit no thread and no lock.
"""

import multiprocessing
import os
import sys
from multiprocessing import forkserver

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
