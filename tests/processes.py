"""What tests start ends with them, however they end: well, by a failure, by Ctrl-C, or killed themselves."""

import ctypes
import signal
import subprocess
from collections.abc import Sequence
from typing import Any

_prctl = ctypes.CDLL(None).prctl
_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """From now on this process is killed when the thread that has started it ends."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _begin() -> None:
    # A shell has what it starts in the background, this suite for instance, ignore SIGINT, and children inherit it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    die_with_parent()


def start(command: Sequence[str], **how: Any) -> "subprocess.Popen[str]":
    """A process that ends with this one at the latest; it hears Ctrl-C, and its pipes carry text.

    how: of `Popen`. A test still ends by itself what it starts, by `kill` and `wait` or `communicate` in a `finally`.
    """
    return subprocess.Popen(command, text=True, preexec_fn=_begin, **how)
