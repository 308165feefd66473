"""What tests start ends with them, also when they are killed: neither a process nor a role is left behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from broker import eventually

from tests import processes

pytestmark = pytest.mark.whole

HERE = Path(__file__).resolve().parent

START = """
import signal, sys
from tests import processes

child = processes.start([sys.executable, "-c", "import signal; print('begun', flush=True); signal.pause()"])
print(child.pid, flush=True)
signal.pause()
"""

#: Frozen: not even SIGTERM would end it.
ROLE = """
import signal, sys
from pathlib import Path
from broker import eventually
from roles import Role

from streams.config.settings import Settings
from tests import forked

forked.context.set_forkserver_preload(["roles"])  # without the kernels: it comes to none
role = Role("match", Settings(bootstrap="127.0.0.1:1", seed=7, state=sys.argv[1]), Path(sys.argv[2]))
eventually(role.log.exists, "its first step")
role.signal(signal.SIGSTOP)
print(role.pid, flush=True)
signal.pause()
"""


def runs(pid: int) -> bool:
    """Zombies do not: they wait for their parent to ask how they ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    "code", [pytest.param(START, id="process"), pytest.param(ROLE, id="role", marks=pytest.mark.slow)]
)
def test_processes_of_a_killed_test_end(tmp_path: Path, code: str) -> None:
    environment = {**os.environ, "PYTHONPATH": f"{HERE.parents[1]}:{HERE}"}
    command = [sys.executable, "-c", code, str(tmp_path / "state"), str(tmp_path / "log")]
    starter = processes.start(command, stdout=subprocess.PIPE, env=environment)
    pid = 0
    try:
        assert starter.stdout is not None
        pid = next(int(line) for line in starter.stdout if line.strip().isdigit())
        assert runs(pid)
        starter.send_signal(signal.SIGKILL)
        eventually(lambda: not runs(pid), "its end")
    finally:
        starter.kill()
        starter.wait()
        if runs(pid):
            os.kill(pid, signal.SIGKILL)
