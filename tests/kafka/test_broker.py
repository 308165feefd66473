"""The broker without containers: shared by processes, gone with the last of them, and clear about what is missing."""

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from broker import PATIENCE_SECONDS, SCRIPT, eventually, kafka

from streams.kafka import Admin, Connection
from tests import processes, whole

pytestmark = pytest.mark.broker

USER = """
import importlib.util, pathlib, sys
spec = importlib.util.spec_from_file_location("broker", sys.argv[1])
broker = importlib.util.module_from_spec(spec)
spec.loader.exec_module(broker)
with broker.shared(pathlib.Path(sys.argv[2])) as address:
    print(address, flush=True)
    sys.stdin.readline()
"""


def start(*arguments: object) -> subprocess.Popen[str]:
    return processes.start([sys.executable, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def brokers(folder: Path) -> list[int]:
    """The processes with `folder` in their command line: JVMs and keepers."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and str(folder).encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:  # it has just ended
            continue
    return found


def test_processes_share_a_broker_until_the_last_one_ends(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    users = [start("-c", USER, SCRIPT, folder) for _ in range(2)]
    try:
        addresses = {line(user) for user in users}
        assert len(addresses) == 1
        (address,) = addresses
        admin = Admin(Connection(address))
        assert admin.cluster_id()

        users[0].communicate("done\n", timeout=PATIENCE_SECONDS)
        assert admin.cluster_id()  # one is left

        users[1].send_signal(signal.SIGKILL)  # however it ends
        users[1].communicate(timeout=PATIENCE_SECONDS)
        eventually(lambda: not brokers(folder), "the broker's end")
        assert not list(folder.glob("broker-*"))
    finally:
        for user in users:
            user.kill()
            user.communicate()


@pytest.mark.parametrize("how", whole.first([signal.SIGKILL, signal.SIGTERM, signal.SIGINT, "left behind"], 1))
def test_the_broker_ends_with_its_owner(tmp_path: Path, how: signal.Signals | str) -> None:
    """Or, left behind, by a signal to the process that the command names."""
    folder = tmp_path / "data"
    if isinstance(how, str):
        command = [sys.executable, str(SCRIPT), "--behind", "--folder", str(folder)]
        try:
            output = subprocess.run(
                command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True
            ).stdout
            found = re.fullmatch(r"(127\.0\.0\.1:\d+), until: kill (\d+)\n", output)
            assert found, output
            assert Admin(Connection(found[1])).cluster_id()
            os.kill(int(found[2]), signal.SIGTERM)
            eventually(lambda: not brokers(folder), "the broker's end")
        finally:
            for left in brokers(folder):
                os.kill(left, signal.SIGKILL)
        return
    owner = start(SCRIPT, "--folder", folder)
    try:
        assert line(owner).startswith("127.0.0.1:")
        assert brokers(folder)
    finally:
        owner.send_signal(how)
        owner.communicate(timeout=PATIENCE_SECONDS)

    assert owner.returncode == (-how if how == signal.SIGKILL else 0)
    eventually(lambda: not brokers(folder), "the broker's end")


@pytest.mark.parametrize(
    ("jars", "expected"),
    [
        (True, "error: java is missing, and Kafka needs it; on Debian: apt-get install openjdk-17-jre-headless\n"),
        (False, "error: mvn is missing, and Kafka needs it; on Debian: apt-get install maven\n"),
    ],
)
def test_missing_program_is_reported_in_one_line(tmp_path: Path, jars: bool, expected: str) -> None:
    cache = tmp_path / "cache"
    if jars:
        (cache / "libs").mkdir(parents=True)
    done = subprocess.run(
        [sys.executable, str(SCRIPT)],
        env={**os.environ, "PATH": str(tmp_path), "NEARDUP_KAFKA_CACHE": str(cache)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )

    assert (done.returncode, done.stdout, done.stderr) == (1, "", expected)


def test_a_folder_is_formatted_without_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kafka.keep_classes()
    monkeypatch.setattr(subprocess, "run", None)  # Kafka's tool has formatted a folder before, and is not needed
    node = kafka.Cluster(tmp_path).nodes[0]
    node.folder.mkdir()

    node.format("a cluster")

    values = dict(line.split("=") for line in (node.folder / "data" / "meta.properties").read_text().splitlines())
    assert (values["cluster.id"], values["node.id"]) == ("a cluster", "1")
    assert (node.folder / "data" / kafka.BOOTSTRAP).read_bytes() == kafka.features(node.libs).read_bytes()


def test_ports_lie_where_the_kernel_gives_none_away() -> None:
    low, high = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    ports = kafka.free_ports(4)

    assert len(set(ports)) == 4
    assert all(not low <= port <= high for port in ports)


def test_a_port_that_is_asked_for_is_taken_or_reported(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        command = [sys.executable, str(SCRIPT), "--port", str(port), "--folder", str(tmp_path / "data")]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
        assert (ended.returncode, ended.stderr) == (
            1,
            f"error: port {port} of 127.0.0.1 cannot be had: Address already in use\n",
        )
