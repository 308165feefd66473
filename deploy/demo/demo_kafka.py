"""The demo of the stream: Kafka, a sketcher, a matcher and a crawl on this machine, and verdicts as they arrive.

    python deploy/demo/demo_kafka.py FOLDER            # ends by itself
    python deploy/demo/demo_kafka.py FOLDER --stay     # Kafka and the roles run on until Ctrl-C, to be tried by hand

FOLDER is made, and only files below it are written; what an earlier run of this demo left there is replaced. Kafka's
jars come from Maven's registry, once. Everything listens on 127.0.0.1 and ends with this process, however that ends.
"""

import argparse
import ctypes
import importlib.util
import logging
import os
import secrets
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from rich.console import Console

from neardup.errors import NeardupError
from streams import client
from streams.client import VerdictConsumer
from streams.commands.scan_summary import KINDS
from streams.config.settings import Settings
from streams.kafka import Admin, Connection, topics
from streams.kafka.topics import Sizes
from streams.operate.publish import Published, publish
from streams.verdicts.print_verdicts import table

# isort: split
from demo import pack

HERE = Path(__file__).resolve().parent
BROKER = HERE.parent / "kafka" / "broker.py"
NEARDUP = Path(sys.executable).with_name("neardup")
#: One of pages and of verdicts: then the log has the order of the crawl, and verdicts come in it.
PARTITIONS = 1

#: Without a verdict for so long something is wrong.
PATIENCE_SECONDS = 120.0
STOP_SECONDS_MAX = 15.0
_WAIT_SECONDS = 0.2
_PR_SET_PDEATHSIG = 1

console = Console(highlight=False, soft_wrap=True, markup=False)


class Broken(Exception):
    """The demo cannot go on; the text is for people."""


def load_broker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("neardup_kafka_broker", BROKER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def end_with_parent() -> None:
    """In a new process: SIGTERM when the demo dies, even of SIGKILL."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


class Role:
    """One role in a process of its own, with its log in a file."""

    def __init__(self, name: str, bootstrap: str, log: Path, seed: str, *arguments: str) -> None:
        self.name = name
        self.log = log
        command = [str(NEARDUP), name, "--bootstrap", bootstrap, *arguments]
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "NEARDUP_SEED": seed},
                start_new_session=True,  # Ctrl-C is for the demo; it then stops the roles in order
                preexec_fn=end_with_parent,
            )

    def must_run(self) -> None:
        """Raises Broken with the end of its log."""
        code = self._process.poll()
        if code is not None:
            lines = self.log.read_text(errors="replace").strip().splitlines()[-5:]
            raise Broken("\n".join([f"neardup {self.name} ended with {code}; its log ({self.log}) ends with:", *lines]))

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


class Crawler:
    """Publishes the crawl in a thread of its own."""

    def __init__(self, crawl: Path, settings: Settings) -> None:
        self._crawl, self._settings = crawl, settings
        self._stop = threading.Event()
        self._result: Published | BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="crawler", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._result = publish([self._crawl], self._settings, stop=self._stop)
        except BaseException as error:  # noqa: BLE001 - raised again by the other thread
            self._result = error

    def published(self) -> int | None:
        """How many pages Kafka has; None while it is not known. Raises what `publish` raised."""
        if isinstance(self._result, BaseException):
            raise self._result
        return None if self._result is None else self._result.pages + self._result.gone

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(STOP_SECONDS_MAX)


class NoPositions:
    def load(self) -> Mapping[str, int]:
        return {}


def watch(settings: Settings, crawler: Crawler, roles: list[Role]) -> Counter[str]:
    """Shows verdicts as they arrive until each published page has its own; how many there are of each kind."""
    counts: Counter[str] = Counter()
    own = 0  # verdicts but `promoted`, which answer no page
    heard = time.monotonic()
    with VerdictConsumer(settings.bootstrap, NoPositions(), settings.topics.verdicts) as consumer:
        while own != crawler.published():
            for batch in consumer.batches(wait_s=_WAIT_SECONDS):
                console.print(table(batch.verdicts, console.width, header=not counts))
                counts.update(verdict["verdict"] for verdict in batch.verdicts)
                own += sum(verdict["n"] == 0 for verdict in batch.verdicts)
                heard = time.monotonic()
            for role in roles:
                role.must_run()
            if time.monotonic() - heard > PATIENCE_SECONDS:
                raise Broken(f"no verdict for {PATIENCE_SECONDS:.0f} s; see {roles[0].log.parent}/*.log")
    return counts


def tell(counts: Counter[str], seconds: float) -> None:
    console.print(f"\n{counts.total():,} verdicts in {seconds:.1f} s, the start of the roles included")
    for kind, (_, meaning) in KINDS.items():
        if counts[kind]:
            console.print(f"  {counts[kind]:>6,}  {kind:<15}  {meaning}")


def write_consumer(folder: Path, bootstrap: str) -> Path:
    """An indexer of one's own: the example that `streams.client` explains, as a program."""
    text = client.__doc__ or ""
    lines = text[text.index("    import sqlite3") : text.index("\n`(page_id, n)`")].splitlines()
    code = "\n".join(line.removeprefix("    ") for line in lines).rstrip()
    code = code.replace('"127.0.0.1:9092"', f'"{bootstrap}"').replace('"index.db"', repr(str(folder / "index.db")))
    path = folder / "consumer.py"
    path.write_text(
        f'"""Takes each verdict once into a table of its own. Run it again: it goes on where it was."""\n\n{code}\n'
    )
    return path


def run_consumer(program: Path) -> None:
    subprocess.run([sys.executable, str(program)], check=True)
    with sqlite3.connect(program.with_name("index.db")) as db:
        (shown,) = db.execute("SELECT count(*) FROM pages WHERE duplicate_of IS NULL AND kind != 'gone'").fetchone()
        hidden = db.execute(
            "SELECT url, duplicate_of FROM pages WHERE duplicate_of IS NOT NULL ORDER BY url"
        ).fetchall()
    console.print(f"\n{program} took them into index.db beside it:")
    console.print(f"  {shown:,} pages to show, {len(hidden):,} hidden behind another one, as")
    for url, other in hidden[:: max(1, len(hidden) // 3)][:3]:
        console.print(f"    {url}\n      {other}")


def stay(settings: Settings, program: Path, roles: list[Role]) -> None:
    console.print(f"\nKafka and the roles run on at {settings.bootstrap}. In another terminal, for instance:")
    console.print(f"  {NEARDUP} verdicts --bootstrap {settings.bootstrap} --kind near_duplicate")
    console.print(f"  {NEARDUP} publish more.warc.gz --bootstrap {settings.bootstrap}")
    console.print(f"  {sys.executable} {program}")
    console.print("Ctrl-C ends all of it.")
    while True:
        for role in roles:
            role.must_run()
        time.sleep(_WAIT_SECONDS)


@contextmanager
def running(folder: Path, cluster: Any) -> Iterator[tuple[Settings, list[Role]]]:
    """Kafka with its topics, a sketcher and a matcher; all of it has ended afterwards."""
    with ExitStack() as held:
        held.enter_context(cluster)
        settings = Settings(bootstrap=cluster.bootstrap)
        console.print(f"Kafka runs at {settings.bootstrap}")
        made = topics.create(Admin(Connection(settings.bootstrap)), settings.topics, Sizes(partitions=PARTITIONS))
        console.print(f"topics: {', '.join(made)}")
        seed = str(secrets.randbits(64))
        roles = []
        for name, *arguments in (("sketch",), ("match", "--state", str(folder / "state"))):
            roles.append(Role(name, settings.bootstrap, folder / f"{name}.log", seed, *arguments))
            held.callback(roles[-1].stop)
        console.print(f"a sketcher and a matcher run; their logs: {folder}/*.log")
        yield settings, roles


def run(folder: Path, *, staying: bool) -> None:
    crawl = pack(folder)
    stream = folder / "stream"
    shutil.rmtree(stream, ignore_errors=True)
    stream.mkdir()
    broker = load_broker()
    try:
        cluster = broker.Cluster(stream / "kafka")
        console.print("starting Kafka")
        with running(stream, cluster) as (settings, roles):
            began = time.monotonic()
            crawler = Crawler(crawl, settings)
            console.print(f"publishing {crawl}\n")
            try:
                counts = watch(settings, crawler, roles)
            finally:
                crawler.stop()
            tell(counts, time.monotonic() - began)
            program = write_consumer(stream, settings.bootstrap)
            run_consumer(program)
            if staying:
                stay(settings, program, roles)
    except broker.BrokerFailed as error:
        raise Broken(str(error)) from None
    shutil.rmtree(stream / "kafka", ignore_errors=True)
    console.print("\nEverything has ended. To have it stay, and to try it by hand: make demo-kafka STAY=1")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--stay", action="store_true", help="run on until Ctrl-C")
    given = parser.parse_args()

    def leave(*_: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, leave)
    given.folder.mkdir(exist_ok=True)
    logging.getLogger("neardup.kafka").setLevel(logging.ERROR)  # a young broker makes its clients wait, and they say so
    try:
        run(given.folder, staying=given.stay)
    except KeyboardInterrupt:
        console.print("\nended")
        return 0 if given.stay else 130
    except (Broken, NeardupError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    with suppress(BrokenPipeError):
        sys.exit(main())
