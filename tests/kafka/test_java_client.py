"""The Java client beside the Python one, on a real broker. The plugin of Nutch is part of `make test-java` only."""

import base64
import importlib.util
import json
import random
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import orjson
import pytest
from broker import PATIENCE_SECONDS, eventually, kafka
from confluent_kafka import Producer
from published import read_pages

from neardup.page import Page
from streams.client import LiveVerdicts, PageProducer, duplicate_of
from streams.config.settings import Topics
from streams.kafka import Admin, Connection, ControlTopic, TopicReader
from tests import processes
from tests.streams.views.random_verdicts import random_verdicts

ROOT = Path(__file__).parents[2]
JAVA = ROOT / "deploy" / "java"
DRIVERS = Path(__file__).parent / "java"
PLACE = {"source": "1" * 32, "partition": 0, "offset": 5, "position": 2}

compiled = pytest.mark.skipif(shutil.which("javac") is None, reason="needs a JDK: apt-get install openjdk-17-jdk")


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"neardup_java_{name}", JAVA / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A class path of client and driver, with the broker's libraries. The documented example is compiled beside the
    driver: each compiler takes more than a second."""
    build, folder, libs = module("build"), tmp_path_factory.mktemp("java"), kafka.jars()
    client = build.compile_java(JAVA / "src", folder / "client", libs)
    sources = shutil.copytree(DRIVERS / "client", folder / "sources")
    (code,) = re.findall(r"(?ms)^```java\n(.*?)^```$", (JAVA / "README.md").read_text())
    (sources / "Example.java").write_text(code)
    driver = build.compile_java(sources, folder / "driver", libs, client)
    return f"{libs}/*:{client}:{driver}"  # the broker's libraries first: of those Java has kept the classes


@pytest.fixture
def drive(classes: str) -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Starts the driver with these arguments."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> "subprocess.Popen[str]":
        options = [
            "-XX:TieredStopAtLevel=1",
            "-XX:+UseSerialGC",
            f"-XX:SharedArchiveFile={kafka.classes(kafka.jars())}",
        ]
        command = ["java", *options, "-cp", classes, "Driver", *arguments]
        started.append(processes.start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=1))
        return started[-1]

    yield start
    for each in started:
        each.kill()
        each.wait()
        for pipe in (each.stdin, each.stdout):
            assert pipe is not None
            pipe.close()


def line(page: Page) -> str:
    body = None if page.body is None else base64.b64encode(page.body).decode()
    fields = {name: getattr(page, name) for name in ("url", "content_type", "fetched_at", "status", "score")}
    return json.dumps({**fields, "body": body}) + "\n"


def records(broker: str, topic: str) -> set[tuple[Any, ...]]:
    """Partition, key, value and headers of each record."""
    reader = TopicReader(Connection(broker), topic, committed_only=True)
    ends = reader.ends()
    reader.assign(reader.first_offsets())
    found = set()
    while any(position < ends[partition] for partition, position in reader.positions().items()):
        for each in reader.read(1000, wait_s=1.0):
            found.add((each.partition(), each.key(), each.value(), tuple(each.headers() or ())))
    reader.close()
    return found


def test_the_class_of_a_verdict_follows_the_schema() -> None:
    generated = module("verdict")
    assert generated.TARGET.read_text() == generated.render(), "run: python deploy/java/verdict.py"


@pytest.mark.whole
@compiled
def test_the_documented_example_compiles(classes: str) -> None:
    assert (Path(classes.rpartition(":")[2]) / "Example.class").exists()


@pytest.mark.whole
@compiled
def test_pages_published_from_java_are_the_records_that_python_writes(
    broker: str, admin: Admin, names: Topics, drive: Callable[..., "subprocess.Popen[str]"]
) -> None:
    for topic in (names.pages, names.rejected):
        admin.create(topic, 3, 1, {"max.message.bytes": "20000"})
    pages = [
        *(
            Page(f"https://a.example/{number}", b"<p>\xff\x00" * number, "text/html", 1767225600000)
            for number in range(9)
        ),
        Page("https://a.example/ü?q=日本", "grün".encode(), "text/html; charset=utf-8", None, score=0.25),
        Page("https://a.example/broken", b"oops", "text/html; name=\u0107", 1767225600001, status=503),
        Page("https://a.example/empty", b"", "", None, score=1.0),
        Page("https://a.example/gone", b"<h1>Gone", "text/html", None, status=410),
        Page("https://a.example/missing", None, fetched_at=1767225600002, status=404),
        Page("https://a.example/deleted", None),
        Page("https://a.example/deleted-then", None, fetched_at=1767225600003),
    ]
    large = Page("https://a.example/large", b"x" * 20_000, "text/html")
    driver = drive("publish", broker, names.rejected)
    output, _ = driver.communicate("".join(map(line, [*pages[:9], large, *pages[9:]])), PATIENCE_SECONDS)
    with PageProducer(broker, names.pages) as producer:
        for page in pages:
            producer.send(page)
    assert driver.returncode == 0
    assert records(broker, names.rejected) == records(broker, names.pages)
    assert len(read_pages(broker, names.rejected, "raw")) == len(pages)
    errors = [orjson.loads(each) for each in output.splitlines()][1:]
    # 1,024 bytes are Kafka's own; the rest: key, header names and their values.
    size = f"{20_000 + 1_024 + len(large.url) + len('http-status200content-typetext/html'):,}"
    advice = "raise its max.message.bytes"
    refused = f"{large.url}: a record of {size} bytes, and topic {names.rejected} takes 20,000: {advice}"
    assert errors == [{"error": "RecordTooLarge", "message": refused}]


@pytest.mark.whole
@compiled
def test_java_names_a_topic_that_does_not_exist(
    broker: str, names: Topics, drive: Callable[..., "subprocess.Popen[str]"]
) -> None:
    message = f"topic {names.pages} does not exist; create it: neardup topics create"
    for arguments in (("publish", broker, names.pages), ("verdicts", broker, names.pages, "none.generations")):
        output, _ = drive(*arguments).communicate("{}\n", PATIENCE_SECONDS)
        assert orjson.loads(output) == {"error": "NeardupException", "message": message}


class Indexer:
    """A reader in Java. table: what it answers a question."""

    def __init__(self, driver: "subprocess.Popen[str]", positions: dict[str, int]) -> None:
        self._driver = driver
        self._write(json.dumps(positions))

    def _write(self, text: str) -> None:
        assert self._driver.stdin is not None
        self._driver.stdin.write(text + "\n")
        self._driver.stdin.flush()

    def table(self) -> dict[str, Any]:
        assert self._driver.stdout is not None
        self._write("table")
        found: dict[str, Any] = orjson.loads(self._driver.stdout.readline())
        return found

    def shows(self, generation: str) -> dict[str, Any]:
        """The table, once that of the generation is complete."""
        found: dict[str, Any] = {}

        def complete() -> bool:
            found.update(self.table())
            return found["generation"] == generation and found["complete"]

        eventually(complete, f"the verdicts of generation {generation!r}")
        return found

    def end(self) -> None:
        self._write("end")
        assert self._driver.wait(PATIENCE_SECONDS) == 0


def judged(seed: int, generation: str) -> list[dict[str, Any]]:
    """Verdicts with all required fields, as one generation has them."""
    verdicts = random_verdicts(120, seed)
    for verdict in verdicts:
        verdict |= {"coordinates": PLACE, "log": "2" * 32, **({"generation": generation} if generation else {})}
        for holder in (verdict, verdict.get("standing", {})):
            if holder.get("verdict") == "near_duplicate":
                first = {"page_id": 0, "url": "https://www.site0.example/0", "fetched_at": 1}
                holder["representative"] = {**first, "coordinates": PLACE}
    return verdicts


def write(broker: str, topic: str, verdicts: list[dict[str, Any]], *, commit: bool = True) -> None:
    """One transaction, as the matcher's."""
    producer = Producer({"bootstrap.servers": broker, "transactional.id": topic, "partitioner": "murmur2_random"})
    producer.init_transactions(PATIENCE_SECONDS)
    producer.begin_transaction()
    for verdict in verdicts:
        producer.produce(topic, orjson.dumps(verdict), verdict["url"].encode())
    assert producer.flush(PATIENCE_SECONDS) == 0
    (producer.commit_transaction if commit else producer.abort_transaction)(PATIENCE_SECONDS)


def held(verdicts: list[dict[str, Any]]) -> dict[str, Any]:
    """The last verdict of each URL."""
    return {verdict["url"]: plain(verdict) for verdict in verdicts}


def plain(value: Any) -> Any:
    """The same without fields that are false: Java does not tell them from absent ones."""
    if not isinstance(value, dict):
        return value
    return {name: plain(each) for name, each in value.items() if each is not False}


@pytest.mark.whole
@compiled
def test_java_keeps_the_newest_verdict_of_each_url_over_a_cut_over_and_back(
    broker: str, admin: Admin, names: Topics, connection: Connection, drive: Callable[..., "subprocess.Popen[str]"]
) -> None:
    first, second = judged(1, ""), judged(2, "second")
    group, other = names.verdicts, f"{names.verdicts}.second"
    for topic in (names.verdicts, other):
        admin.create(topic, 2, 1, {})
    control = ControlTopic(connection, f"{group}.generations")
    control.create()
    write(broker, names.verdicts, first[:60])
    write(broker, names.verdicts, [{**each, "page_id": 9_999} for each in first], commit=False)
    write(broker, names.verdicts, first[60:])
    write(broker, names.verdicts, random.Random(3).sample(first, 40))  # what a repeated read would give, out of order
    write(broker, other, second)
    arguments = ("verdicts", broker, names.verdicts, f"{group}.generations")

    indexer = Indexer(drive(*arguments), {})
    found = indexer.shows("")
    assert plain(found["verdicts"]) == held(first)
    assert found["duplicates"] == {url: it for url, each in held(first).items() if (it := duplicate_of(each))}
    control.cut_over("second", "")
    found = indexer.shows("second")
    assert plain(found["verdicts"]) == held(second)
    control.cut_over("", "second")
    assert plain(indexer.shows("")["verdicts"]) == held(first)
    fresh = {**first[-1], "page_id": first[-1]["page_id"] + 7, "log": "3" * 32}
    anew = {**fresh, "page_id": 1, "log": "4" * 32}  # of a log made anew: its page ids are not compared
    write(broker, names.verdicts, [fresh, anew])
    eventually(lambda: plain(indexer.table()["verdicts"])[anew["url"]] == anew, "a verdict of a new log")
    positions = indexer.table()["positions"]
    indexer.end()

    # Another process goes on behind what was stored; so does the Python client.
    again = Indexer(drive(*arguments), positions)
    assert again.shows("")["verdicts"] == {}
    again.end()
    assert python_reads(broker, names, group, positions) == []
    write(broker, names.verdicts, [first[0]])
    assert python_reads(broker, names, group, positions) == [first[0]]


def python_reads(broker: str, names: Topics, group: str, positions: dict[str, int]) -> list[dict[str, Any]]:
    class Stored:
        def load(self) -> dict[str, int]:
            return positions

    with LiveVerdicts(broker, Stored(), names.verdicts, group=group) as consumer:
        return [verdict for batch in consumer.batches(follow=False) for verdict in batch.verdicts]


@pytest.mark.whole
@compiled
def test_java_names_the_record_that_is_no_verdict_and_the_position_that_is_lost(
    broker: str, admin: Admin, names: Topics, drive: Callable[..., "subprocess.Popen[str]"]
) -> None:
    admin.create(names.verdicts, 1, 1, {})
    producer = Producer({"bootstrap.servers": broker})
    producer.produce(names.verdicts, None, b"https://a.example/")  # an operator deletes a URL from a compacted topic
    producer.produce(names.verdicts, orjson.dumps({"verdict": "unique", "url": "https://a.example/"}), b"")
    assert producer.flush(PATIENCE_SECONDS) == 0
    arguments = ("verdicts", broker, names.verdicts, "none.generations")
    for positions, error, text in (
        ({}, "CorruptRecord", f"topic {names.verdicts}, partition 0, offset 1: no verdict of neardup"),
        ({f"{admin.topic(names.verdicts).id.hex()}/0": 99}, "PositionLost", "clear the stored positions"),
    ):
        output, _ = drive(*arguments).communicate(json.dumps(positions) + "\n", PATIENCE_SECONDS)
        assert orjson.loads(output)["error"] == error
        assert text in orjson.loads(output)["message"]


@pytest.mark.whole
@compiled
def test_java_names_the_pages_that_a_dead_broker_did_not_take(
    own_broker: Any, names: Topics, drive: Callable[..., "subprocess.Popen[str]"]
) -> None:
    Admin(Connection(own_broker.bootstrap)).create(names.pages, 1, 1, {})
    driver = drive("publish", own_broker.bootstrap, names.pages)
    assert driver.stdout is not None
    driver.stdout.readline()
    own_broker.kill()
    output, _ = driver.communicate(line(Page("https://a.example/lost", b"x")), PATIENCE_SECONDS)
    error = orjson.loads(output)
    assert error["error"] in ("NotDelivered", "NeardupException")
    assert "https://a.example/lost: " in error["message"]
    assert f"not written to topic {names.pages}" in error["message"]


def of_nutch(url: str, body: bytes, header: str) -> bytes:
    """A page as Nutch stores it in a segment."""

    def text(value: str) -> bytes:
        return struct.pack("b", len(value)) + value.encode()  # a length below 128 is one byte

    start = struct.pack(">i", -1) + text(url) + text(url) + struct.pack(">i", len(body)) + body + text("text/html")
    return start + struct.pack(">i", 1) + text("Content-Type") + struct.pack(">i", 1) + text(header)


@pytest.mark.whole
def test_the_plugin_of_nutch_publishes_a_page_as_it_was_fetched(
    broker: str, admin: Admin, names: Topics, tmp_path: Path
) -> None:
    admin.create(names.pages, 1, 1, {})
    subprocess.run([sys.executable, str(JAVA / "build.py"), "--nutch", "--out", str(tmp_path)], check=True, timeout=600)
    plugin = tmp_path / "neardup-publish"
    described = ElementTree.parse(plugin / "plugin.xml").getroot()
    libraries = [plugin / each.attrib["name"] for each in described.iterfind("runtime/library")]
    assert sorted(libraries) == sorted(plugin.glob("*.jar"))
    extension, implementation = described.find("extension"), described.find("extension/implementation")
    assert extension is not None
    assert implementation is not None
    build = module("build")
    nutch = build.compile_java(DRIVERS / "nutch", tmp_path / "driver", tmp_path / "provided", tmp_path / "classes")
    # The stand-in of Hadoop's configuration comes first; the logging of Nutch and Hadoop is that of the broker.
    path = [nutch, *libraries, tmp_path / "provided" / "*", tmp_path / "libs" / "*"]
    url, body = "https://a.example/nutch", "<p>grün".encode("latin-1")
    done = subprocess.run(
        [
            *("java", "-cp", ":".join(map(str, path)), "Parsed", extension.attrib["point"]),
            *(implementation.attrib["class"], broker, names.pages),
        ],
        input=of_nutch(url, body, "text/html; charset=latin1"),
        capture_output=True,
        timeout=PATIENCE_SECONDS,
    )
    assert done.returncode == 0, done.stderr.decode()
    ((page,),) = read_pages(broker, names.pages, "raw").values()
    assert (page.url, page.body, page.content_type, page.status) == (url, body, "text/html; charset=latin1", 200)
