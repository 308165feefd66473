"""An Apache Kafka broker on this machine without containers: for tests, the demo, and trying things out.

    python deploy/kafka/broker.py                    # prints the address, runs until Ctrl-C or SIGTERM
    python deploy/kafka/broker.py --port 9092        # there, where the commands look for one
    python deploy/kafka/broker.py --behind           # returns once it serves, and leaves it running
    python deploy/kafka/broker.py --nodes 3          # three nodes, replication 3

Needs Java 17 or newer; Maven too, once, to fetch the jars that pom.xml names into ~/.cache/neardup (or
NEARDUP_KAFKA_CACHE). Everything listens on 127.0.0.1 only. As a module it uses nothing but the standard library.
"""

import argparse
import base64
import contextlib
import fcntl
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from xml.etree import ElementTree

HERE = Path(__file__).resolve().parent
POM = HERE / "pom.xml"

START_SECONDS_MAX = 180.0
STOP_SECONDS_MAX = 15.0
#: Attempts to start on other ports when one was taken between choosing and binding it.
PORT_ATTEMPTS = 5

#: Small and quick, and safe for one node: internal topics with one replica and few partitions; no wait for further
#: members of a group; members that may have short sessions; a dedupe buffer of 4 MB instead of 128; a short broker
#: session, since a broker killed with SIGKILL cannot register again before its old session ends.
SETTINGS: Mapping[str, object] = {
    "process.roles": "broker,controller",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "offsets.topic.num.partitions": 4,
    "transaction.state.log.num.partitions": 4,
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 1000,
    "auto.create.topics.enable": "false",
    "log.cleaner.dedupe.buffer.size": 4194304,
    "broker.session.timeout.ms": 3000,
    "broker.heartbeat.interval.ms": 500,
}

JAVA_PACKAGE = "openjdk-17-jre-headless"
JAVA_OPTIONS = ("-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")

LOG4J = """\
status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %p %m (%c{1})%n
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
"""

#: In the pass after SIGKILL, see `Node.forget_session`.
FENCE_SETTINGS: Mapping[str, object] = {
    "process.roles": "controller",
    "broker.session.timeout.ms": 200,
    "metadata.max.idle.interval.ms": 50,
}
#: From the controller's start on, which on a busy machine takes longer than this.
FENCE_SECONDS_MAX = 15.0

#: A file of each formatted folder: the features that the cluster begins with.
BOOTSTRAP = "bootstrap.checkpoint"

READY = re.compile(rb"Kafka Server started")
FENCED = re.compile(rb"Replayed BrokerRegistrationChangeRecord .*fenced=1")
PORT_TAKEN = re.compile(rb"Address already in use|BindException")


class BrokerFailed(Exception):
    """The broker cannot be had here; the text says in one line what is missing or where its log is."""


def version() -> str:
    """The Kafka version that pom.xml names."""
    for dependency in ElementTree.parse(POM).getroot().iterfind(".//dependency"):
        if dependency.findtext("groupId", "") == "org.apache.kafka":
            return dependency.findtext("version", "")
    raise BrokerFailed(f"{POM} names no org.apache.kafka dependency")


def cache_folder() -> Path:
    given = os.environ.get("NEARDUP_KAFKA_CACHE")
    return Path(given) if given else Path.home() / ".cache" / "neardup" / f"kafka-{version()}"


def _program(name: str, package: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise BrokerFailed(f"{name} is missing, and Kafka needs it; on Debian: apt-get install {package}")
    return found


def jars(cache: Path | None = None) -> Path:
    """The folder of the broker's jars, fetched with Maven the first time. Safe to call from several processes."""
    cache = cache or cache_folder()
    libs = cache / "libs"
    if libs.is_dir():
        return libs
    mvn = _program("mvn", "maven")
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if libs.is_dir():
            return libs
        print(f"fetching Kafka {version()} into {cache} (about 45 MB, once)", file=sys.stderr)
        with tempfile.TemporaryDirectory(dir=cache, prefix="fetch-") as folder:
            done = subprocess.run(
                [
                    *(mvn, "-q", "-B", "-f", str(POM), "dependency:copy-dependencies"),
                    *("-DincludeScope=runtime", f"-DoutputDirectory={folder}/libs"),
                ],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                text=True,
            )
            if done.returncode:
                errors = [line for line in done.stdout.splitlines() if line.startswith("[ERROR]")]
                raise BrokerFailed(f"Maven could not fetch Kafka: {(errors or ['no message'])[0]}")
            os.rename(f"{folder}/libs", libs)
    return libs


def classes(libs: Path) -> Path:
    """Where `keep_classes` keeps what the jars hold, for the Java that is found here: no other one can read it."""
    java = Path(_program("java", JAVA_PACKAGE)).resolve()
    found = java.stat()
    return libs.parent / f"classes-{found.st_size}-{found.st_mtime_ns}.jsa"


def features(libs: Path) -> Path:
    """Where `Node.format` keeps the features of Kafka's release, as its tool writes them."""
    return libs.parent / BOOTSTRAP


def keep_classes(cache: Path | None = None) -> Path:
    """Runs a broker once and keeps its classes as Java has loaded them: those that follow start with a third less work.

    Does nothing where they are kept already. Safe to call from several processes. Raises BrokerFailed.
    """
    libs = jars(cache)
    kept = classes(libs)
    if kept.exists() and features(libs).exists():
        return kept
    with open(libs.parent / "lock", "w") as lock, tempfile.TemporaryDirectory(dir=libs.parent, prefix="run-") as folder:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if kept.exists() and features(libs).exists():
            return kept
        part = Path(folder) / kept.name
        with Cluster(Path(folder), cache=cache, java_options=[f"-XX:ArchiveClassesAtExit={part}"]) as cluster:
            whole = cluster.nodes[0].end(signal.SIGTERM, START_SECONDS_MAX)
        if not whole or not part.exists():
            raise BrokerFailed(f"Java did not write {kept}, which brokers can do without; they start slower")
        part.rename(kept)
    return kept


def _uuid() -> str:
    """A new id as Kafka writes them. Without a leading "-" in base64: its tool would take it for an option."""
    return base64.urlsafe_b64encode(b"\x01" + os.urandom(15)).decode().rstrip("=")


def free_ports(count: int) -> list[int]:
    """Returns ports of 127.0.0.1 that are free now, outside the range of ephemeral ports.

    Otherwise, while a broker is down, a client that tries to reach it could get the broker's port as its local port,
    and keep it.
    """
    try:
        low, high = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    except OSError:
        low, high = 32768, 60999
    candidates = [port for port in range(10000, 65536) if not low <= port <= high]
    found: list[int] = []
    # The choice only spreads neighbours; nothing depends on it.
    for port in random.sample(candidates or list(range(10000, 65536)), 1000):
        with contextlib.closing(socket.socket()) as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise BrokerFailed(f"no {count} free ports on 127.0.0.1")


class Node:
    """One JVM with its folder, ports and log; `Cluster` owns it."""

    def __init__(self, folder: Path, node_id: int, libs: Path, java_options: Sequence[str]) -> None:
        self.folder, self.node_id, self.libs, self.java_options = folder, node_id, libs, java_options
        self.port = self.controller_port = 0
        self.log = folder / "broker.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._keeper: subprocess.Popen[bytes] | None = None
        self._log_from = 0

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process and self._process.poll() is None else None

    def write_settings(self, settings: Mapping[str, object]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        controller = {**settings, **FENCE_SETTINGS}
        controller["listeners"] = f"CONTROLLER://127.0.0.1:{self.controller_port}"
        for needless in ("advertised.listeners", "inter.broker.listener.name"):
            del controller[needless]
        for name, values in (("server", settings), ("controller", controller)):
            lines = [f"{key}={value}" for key, value in values.items()]
            (self.folder / f"{name}.properties").write_text("\n".join(lines) + "\n")
        (self.folder / "log4j2.properties").write_text(LOG4J)

    def _java(self, *arguments: str, options: Sequence[str] = ()) -> list[str]:
        logging = f"-Dlog4j2.configurationFile={self.folder / 'log4j2.properties'}"
        kept = classes(self.libs)
        shared = [f"-XX:SharedArchiveFile={kept}"] if kept.exists() else []
        return [
            _program("java", JAVA_PACKAGE),
            *JAVA_OPTIONS,
            *(options or shared),
            logging,
            "-cp",
            f"{self.libs}/*",
            *arguments,
        ]

    def format(self, cluster_id: str) -> None:
        """Makes the folder of data. Kafka's tool writes the features of the release once; all folders have the same."""
        kept, data = features(self.libs), self.folder / "data"
        if kept.exists():
            data.mkdir()
            shutil.copy(kept, data / BOOTSTRAP)
            values = {"version": 1, "cluster.id": cluster_id, "node.id": self.node_id, "directory.id": _uuid()}
            (data / "meta.properties").write_text("".join(f"{name}={value}\n" for name, value in values.items()))
            return
        done = subprocess.run(
            self._java(
                "kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(self.folder / "server.properties")
            ),
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
        )
        if done.returncode:
            output = (done.stderr or done.stdout).strip().splitlines()
            raise BrokerFailed(f"Kafka could not format {self.folder}: {output[-1] if output else 'no message'}")
        with contextlib.suppress(OSError):  # a cache that cannot be written; the tool then runs for each folder
            part = kept.with_name(f"{kept.name}.{os.getpid()}")
            shutil.copy(data / BOOTSTRAP, part)
            part.rename(kept)

    def died(self) -> bool:
        """True if its last run did not end in order."""
        return self.log.exists() and not (self.folder / "data" / ".kafka_cleanshutdown").exists()

    def forget_session(self) -> None:
        """Runs the controller alone until it takes the dead broker for dead. For a cluster of this one node.

        Without it a broker that was killed comes up on its old session, loads the transactions whose commit is decided,
        and waits to write their markers; when its old session then ends, no partition has a leader for a moment, and
        Kafka 4 (KAFKA-20734) takes the partitions for deleted: the transactions count as complete, without markers, and
        readers of committed records stand before them for ever. It also saves the wait for the old session's end.
        """
        self.launch("controller")
        deadline = time.monotonic() + START_SECONDS_MAX
        metadata = self.folder / "data" / "__cluster_metadata-0"
        sizes: set[int] = set()
        # Decided is not yet written; but the log is written in order, and an idle controller goes on writing to it.
        # None is fenced if the broker died before it had registered: nothing depends on it then.
        while self.pid is not None and len(sizes) < 3 and time.monotonic() < deadline:
            values = self._log_now()
            if READY.search(values):
                deadline = min(deadline, time.monotonic() + FENCE_SECONDS_MAX)
            if FENCED.search(values):
                sizes.add(sum(log.stat().st_size for log in metadata.glob("*.log")))
            time.sleep(0.02)
        self.end(signal.SIGTERM)

    def launch(self, role: str = "server") -> None:
        with open(self.log, "ab") as log:
            self._log_from = log.tell()
            self._process = subprocess.Popen(
                self._java("kafka.Kafka", str(self.folder / f"{role}.properties"), options=self.java_options),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for us; we then stop the broker in order
            )
        # If this process is killed with SIGKILL, its end of the pipe closes, and the keeper takes the broker along.
        self._keeper = subprocess.Popen(
            ["sh", "-c", 'read -r _; kill -9 "$0"', str(self._process.pid)],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _log_now(self) -> bytes:
        with open(self.log, "rb") as log:
            log.seek(self._log_from)
            return log.read()

    def started(self) -> bool:
        """True when the node says that it serves: it does so once the controller has let it in.

        Raises BrokerFailed when it has ended, PortTaken when another process has its port.
        """
        values = self._log_now()
        if self.pid is None:
            self._forget()
            if PORT_TAKEN.search(values):
                raise PortTaken(f"a port of {self.port}, {self.controller_port} is taken")
            raise BrokerFailed(f"Kafka ended while starting; see {self.log}")
        return READY.search(values) is not None

    def _forget(self) -> None:
        if self._keeper is not None:
            self._keeper.kill()  # before the pid can belong to another process
            self._keeper.wait()
            assert self._keeper.stdin is not None
            self._keeper.stdin.close()
        self._process = self._keeper = None

    def end(self, how: signal.Signals, seconds_max: float = STOP_SECONDS_MAX) -> bool:
        """Sends the signal and waits for the end; after so long with SIGKILL, and False. Nothing if not running."""
        process = self._process
        if process is None:
            return True
        in_time = True
        if process.poll() is None:
            process.send_signal(how)
            try:
                process.wait(seconds_max)
            except subprocess.TimeoutExpired:
                in_time = False
                process.kill()
                process.wait()
        self._forget()
        return in_time


class PortTaken(BrokerFailed):
    """Another process took a port first."""


class Cluster:
    """One broker, or several nodes that are broker and controller at once, in a folder of their own.

    settings: broker settings beyond SETTINGS, see `set`. port: of the first node; by default any free one.
    java_options: beyond JAVA_OPTIONS, in place of classes that are kept. The folder keeps data, settings and logs;
    `start` on a folder that was used before takes its data up again, on the same ports if this object chose them. A
    context manager: leaving it stops everything.
    """

    def __init__(
        self,
        folder: Path,
        *,
        nodes: int = 1,
        settings: Mapping[str, object] | None = None,
        port: int = 0,
        cache: Path | None = None,
        java_options: Sequence[str] = (),
    ) -> None:
        self.folder = folder
        self._port = port
        self.settings = dict(settings or {})
        libs = jars(cache)
        self.nodes = [Node(folder / str(number), number, libs, java_options) for number in range(1, nodes + 1)]
        self._lock = threading.Lock()

    @property
    def bootstrap(self) -> str:
        """Addresses for clients, as in `bootstrap.servers`."""
        return ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)

    def _choose_ports(self) -> None:
        ports = free_ports(2 * len(self.nodes))
        for node in self.nodes:
            node.port, node.controller_port = ports.pop(), ports.pop()
        if self._port:
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as Kafka does
                try:
                    probe.bind(("127.0.0.1", self._port))
                except OSError as error:
                    raise BrokerFailed(f"port {self._port} of 127.0.0.1 cannot be had: {error.strerror}") from error
            self.nodes[0].port = self._port
        self._write_settings()

    def _write_settings(self) -> None:
        voters = ",".join(f"{node.node_id}@127.0.0.1:{node.controller_port}" for node in self.nodes)
        replicas, in_sync = min(3, len(self.nodes)), min(2, len(self.nodes))
        for node in self.nodes:
            own = {
                "node.id": node.node_id,
                "controller.quorum.voters": voters,
                "listeners": f"PLAINTEXT://127.0.0.1:{node.port},CONTROLLER://127.0.0.1:{node.controller_port}",
                "advertised.listeners": f"PLAINTEXT://127.0.0.1:{node.port}",
                "log.dirs": node.folder / "data",
                "default.replication.factor": replicas,
                "min.insync.replicas": in_sync,
                "offsets.topic.replication.factor": replicas,
                "transaction.state.log.replication.factor": replicas,
                "transaction.state.log.min.isr": in_sync,
                "share.coordinator.state.topic.replication.factor": replicas,
                "share.coordinator.state.topic.min.isr": in_sync,
            }
            node.write_settings({**SETTINGS, **own, **self.settings})

    def set(self, **settings: object) -> None:
        """Further broker settings, in force from the next `start` or `restart` on."""
        self.settings.update(settings)
        self._write_settings()

    def start(self) -> "Cluster":
        """Formats the folder if it is new, starts all nodes and returns when each serves.

        Raises BrokerFailed when Java is missing, a node ends, or START_SECONDS_MAX pass.
        """
        with self._lock:
            if not self.nodes[0].port:
                self._choose_ports()
            if not (self.nodes[0].folder / "data" / "meta.properties").exists():
                cluster_id = _uuid()
                for node in self.nodes:
                    node.format(cluster_id)
            for attempt in range(PORT_ATTEMPTS):
                try:
                    self._launch(self.nodes)
                    return self
                except PortTaken:
                    self._end(signal.SIGKILL)
                    if attempt + 1 == PORT_ATTEMPTS:
                        raise
                    self._choose_ports()
                except BaseException:
                    self._end(signal.SIGKILL)
                    raise
            raise AssertionError("unreachable")

    def _launch(self, nodes: list[Node]) -> None:
        if len(self.nodes) == 1 and nodes[0].died():
            nodes[0].forget_session()
        for node in nodes:
            node.launch()
        deadline = time.monotonic() + START_SECONDS_MAX
        for node in nodes:
            while not node.started():
                if time.monotonic() > deadline:
                    raise BrokerFailed(f"Kafka was not ready in {START_SECONDS_MAX:.0f} s; see {node.log}")
                time.sleep(0.05)

    def kill(self, node_id: int = 1) -> None:
        """SIGKILL to one node, and waits for its end."""
        self.nodes[node_id - 1].end(signal.SIGKILL)

    def restart(self, node_id: int = 1) -> None:
        """Starts a node that was killed or stopped, on its ports and data; returns when it serves again."""
        with self._lock:
            self._launch([self.nodes[node_id - 1]])

    def running(self, node_id: int = 1) -> bool:
        """Whether there is such a process, be it paused or not."""
        return self.nodes[node_id - 1].pid is not None

    def pause(self, node_id: int = 1) -> None:
        """SIGSTOP: connections stay open and nothing answers. Returns when all threads have stopped.

        On a busy machine they go on for tens of milliseconds after the signal, enough for a whole transaction.
        """
        os.waitid(os.P_PID, self._signal(node_id, signal.SIGSTOP), os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self, node_id: int = 1) -> None:
        self._signal(node_id, signal.SIGCONT)

    def _signal(self, node_id: int, which: signal.Signals) -> int:
        pid = self.nodes[node_id - 1].pid
        if pid is None:
            raise BrokerFailed(f"node {node_id} does not run")
        os.kill(pid, which)
        return pid

    def stop(self) -> None:
        """Ends all nodes: one in order with SIGTERM, several with SIGKILL, for they would wait for one another."""
        with self._lock:
            self._end(signal.SIGTERM if len(self.nodes) == 1 else signal.SIGKILL)

    def _end(self, how: signal.Signals) -> None:
        for node in self.nodes:
            node.end(how)

    def __enter__(self) -> "Cluster":
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


#: Keepers that this process has started: others may use their brokers for longer, so it waits for none.
_keepers: list["subprocess.Popen[bytes]"] = []


@contextlib.contextmanager
def shared(folder: Path) -> Iterator[str]:
    """The address of one broker that all processes calling this with the same folder share.

    The first caller starts it, in a process of its own; it ends, and its data go, when the last caller has left,
    however that one ended. Raises BrokerFailed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    address, log = folder / "address", folder / "keeper.log"
    with open(folder / "users", "w") as users:
        with open(folder / "starting", "w") as starting:
            fcntl.flock(starting, fcntl.LOCK_EX)
            fcntl.flock(users, fcntl.LOCK_SH)  # waits while a broker without users is on its way out
            if not address.exists():
                with open(log, "wb") as out:
                    keeper = subprocess.Popen(
                        [sys.executable, str(HERE / "broker.py"), "--while-used", str(folder)],
                        stdin=subprocess.DEVNULL,
                        stdout=out,
                        stderr=out,
                        start_new_session=True,
                    )
                _keepers.append(keeper)
                while not address.exists():
                    if keeper.poll() is not None:
                        raise BrokerFailed(log.read_text().strip() or f"the broker's keeper ended; see {log}")
                    time.sleep(0.05)
        yield address.read_text()


def _serve_while_used(folder: Path) -> None:
    """The keeper of `shared`: it gets the exclusive lock on `users` when no process uses the broker any more."""
    address = folder / "address"
    # It is never killed. On a busy machine it misses a session of 3 s; then no partition has a leader for a while.
    # The other two halve what it takes while idle: a hundredth of a core for as long as it runs.
    session = {
        "broker.session.timeout.ms": 60_000,
        "broker.heartbeat.interval.ms": 2_000,
        "metadata.max.idle.interval.ms": 10_000,
    }
    with (
        tempfile.TemporaryDirectory(dir=folder, prefix="broker-") as data,
        Cluster(Path(data), settings=session) as cluster,
    ):
        part = folder / "address.part"
        part.write_text(cluster.bootstrap)
        part.rename(address)
        with open(folder / "users", "w") as users:
            try:
                fcntl.flock(users, fcntl.LOCK_EX)
            finally:
                address.unlink()
            # The lock is held until the broker is gone: a new user must find it either running or absent.
            cluster.stop()


def _leave_behind(arguments: list[str]) -> int:
    """Starts this program again, with these arguments, in a session of its own; returns when it serves or fails."""
    jars()  # says here what it fetches
    command = [sys.executable, str(Path(__file__).resolve()), *arguments]
    # It inherits no file of this process: a reader of this program's output would wait for its end.
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        if address:
            print(f"{address}, until: kill {process.pid}")
            return 0
        code = process.wait()
        errors.seek(0)
        sys.stderr.write(errors.read())
        return code


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1, help="1, or 3 for a cluster with replication")
    parser.add_argument("--port", type=int, default=0, help="of the first node (default: a free one)")
    parser.add_argument("--behind", action="store_true", help="return once it serves; says how to end it")
    parser.add_argument("--folder", type=Path, help="keep data here (default: a temporary folder)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a further broker setting")
    parser.add_argument("--fetch", action="store_true", help="only fetch what is needed, and prepare it")
    parser.add_argument("--while-used", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()

    def leave(*_: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, leave)
    try:
        if given.fetch:
            keep_classes()
            return 0
        if given.behind:
            return _leave_behind([word for word in sys.argv[1:] if word != "--behind"])
        if given.while_used:
            _serve_while_used(given.while_used)
            return 0
        settings = dict(pair.split("=", 1) for pair in given.set)
        with contextlib.ExitStack() as stack:
            folder = given.folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="neardup-kafka-")))
            cluster = stack.enter_context(Cluster(folder, nodes=given.nodes, settings=settings, port=given.port))
            print(cluster.bootstrap, flush=True)
            while True:
                signal.pause()
    except KeyboardInterrupt:
        return 0
    except BrokerFailed as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
