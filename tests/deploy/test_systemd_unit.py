"""deploy/neardup.service, the unit that keeps `neardup run` running."""

import configparser
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.streams.typist import ROOT

UNIT = ROOT / "deploy" / "neardup.service"
BIN = Path(sys.executable).parent


def section(name: str) -> configparser.SectionProxy:
    parser = configparser.ConfigParser(interpolation=None, strict=True, delimiters=("=",), comment_prefixes=("#",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(UNIT.read_text())
    return parser[name]


def test_unit_of_run_uses_settings_that_exist(tmp_path: Path) -> None:
    """`neardup config` refuses a flag or a variable that it does not know."""
    service = section("Service")
    program, command, *flags = shlex.split(service["ExecStart"])
    assert (Path(program).name, command) == ("neardup", "run")
    (tmp_path / "seed").write_text("0x07\n")
    given = dict(each.split("=", 1) for each in shlex.split(service["Environment"].replace("%d", str(tmp_path))))
    ended = subprocess.run(
        [BIN / "neardup", "config", *flags], env={**os.environ, **given}, capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 0, ended.stderr
    for name in given:
        assert name in ended.stdout or name == "XDG_CACHE_HOME", name
    assert service["StateDirectory"] in flags[-1]


def test_unit_starts_run_again_and_gives_it_time_to_flush() -> None:
    service = section("Service")
    assert service["Restart"] == "on-failure", "a watchdog ends run with exit code 75"
    assert service["RestartPreventExitStatus"] == "2", "wrong settings are not repaired by a restart"
    assert int(service["TimeoutStopSec"]) >= 60


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "neardup.service"
    program = shlex.split(section("Service")["ExecStart"])[0]
    unit.write_text(UNIT.read_text().replace(program, str(BIN / "neardup")))
    ended = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True, timeout=60
    )
    assert (ended.returncode, [line for line in ended.stderr.splitlines() if "neardup" in line]) == (0, [])
