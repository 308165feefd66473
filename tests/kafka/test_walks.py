"""The walks through the line, typed into a shell as `deploy/walks/README.md` has them."""

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from broker import eventually, kafka

from streams.client import VerdictConsumer
from streams.config.settings import Topics
from tests.streams.archives import Sample, html, text, write_warc
from tests.streams.typist import ROOT, Typist, commands, strangers

pytestmark = pytest.mark.whole

pytest.importorskip("scrapy")

#: What the archive holds of two releases: a page that is the same but for some words, and one that is not in the other.
OLD, NEW = "https://mako.example/1.3.2/doc/", "https://mako.example/1.3.8/doc/"
TITLE = "Inheritance"
CHAIN = text(1) + " inheritance chain "


class Everything:
    def load(self) -> dict[str, int]:
        return {}


def pages() -> list[Sample]:
    old = [
        Sample("1.3.2/doc/inheritance.html", html(TITLE, CHAIN)),
        Sample("1.3.2/doc/caching.html", html("C", text(2))),
    ]
    return [*old, Sample("1.3.8/doc/inheritance.html", html(TITLE, CHAIN + "new in this release"), old[0].ms + 1000)]


def package(path: Path) -> None:
    """The same page again, and one that links to it, as a source package has them."""
    path.parent.mkdir(parents=True)
    files = {
        "index.html": html("Index", '<a href="inheritance.html">x</a> ' + text(3)),
        "inheritance.html": html(TITLE, CHAIN),
    }
    with tarfile.open(path, "w:gz") as tar:
        for name, body in files.items():
            member = tarfile.TarInfo(f"mako-1.3.8/doc/{name}")
            member.size = len(body)
            tar.addfile(member, io.BytesIO(body))


@pytest.fixture
def typist(tmp_path: Path, broker: str, names: Topics) -> Iterator[Typist]:
    """In a folder like the repository's after `make demo`, at a line of this test's own."""
    (tmp_path / "deploy").symlink_to(ROOT / "deploy")
    (tmp_path / "demo").mkdir()
    write_warc(tmp_path / "demo" / "crawl.warc.gz", pages(), "https://mako.example/")
    package(tmp_path / "demo" / "packages" / "Mako-1.3.8" / "mako-1.3.8.tar.gz")
    prefix = names.pages.removesuffix("pages")
    (port,) = kafka.free_ports(1)
    environment = {"NEARDUP_BOOTSTRAP": broker, "NEARDUP_TOPIC_PREFIX": prefix, "NEARDUP_GROUP": prefix + "line"}
    instead = {
        "8765": str(port),  # first: it may stand in what is typed for the others
        'PageProducer("127.0.0.1:9092")': f'PageProducer("{broker}", "{prefix}pages")',
        "127.0.0.1:9092 verdicts ": f"{broker} {prefix}verdicts ",
        "NEARDUP_BOOTSTRAP=127.0.0.1:9092": f"NEARDUP_BOOTSTRAP={broker} -s NEARDUP_PAGES_TOPIC={prefix}pages",
    }
    with Typist(tmp_path, environment, instead) as made:
        yield made


@pytest.mark.slow
def test_the_walks_of_a_crawler_and_of_an_indexer(typist: Typist, broker: str, names: Topics) -> None:
    def output(kind: str) -> set[str]:
        with VerdictConsumer(broker, Everything(), names.verdicts) as consumer:
            return {
                v["url"] for batch in consumer.batches(follow=False) for v in batch.verdicts if v["verdict"] == kind
            }

    start, *crawl = commands("Crawler engineer")
    assert start == "python deploy/kafka/broker.py --port 9092 --behind"
    reported = {}
    for command in crawl:
        reported[command.split()[1]] = typist(command)
        if "http.server" in command:
            eventually(lambda: typist.answers("127.0.0.1", typist.instead["8765"]), "the site is up")
        elif command.startswith("neardup publish"):
            # The archive is judged first, as in the tutorial; otherwise the representatives would not be known.
            eventually(lambda: output("near_duplicate") == {f"{NEW}inheritance.html"}, "the archive is judged")
    assert "unique, page id" in reported["topics"]
    site = f"http://127.0.0.1:{typist.instead['8765']}/"
    eventually(lambda: f"{site}inheritance.html" in output("exact_duplicate"), "the crawl is judged")
    assert f"{NEW}inheritance.html\t{OLD}inheritance.html" in typist(crawl[-1])

    fill, find, gone, promoted, take, find_again, stop = commands("Indexer engineer")
    assert "3 texts" in typist(fill)
    assert typist(find).split() == [f"{OLD}inheritance.html"]
    typist(gone)
    shown = f"{NEW}inheritance.html"
    eventually(lambda: output("promoted") == {shown}, "the next one stands for it")
    assert "promoted" in typist(promoted)
    typist(take)
    assert typist(find_again).split() == [shown]
    typist(stop)
    typist("wait")  # until both have ended
    assert not typist.answers("127.0.0.1", typist.instead["8765"])
    assert strangers(typist.folder) == set()
