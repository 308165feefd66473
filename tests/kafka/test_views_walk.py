"""An operator's way through all pages in a real browser, over a real line: crawl, hostile pages, a page sent again."""

import http.client
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson
import pytest
from broker import eventually
from line import Line, Make
from roles import Role
from test_views import Worker

from neardup.evaluation.labels import read_labels
from neardup.page import Page
from streams.config.settings import Topics
from streams.kafka import Writer, topics
from tests.streams import archives

pytest.importorskip("faust", reason="faust-streaming is not installed")

TOKEN, LABELS = "0123456789abcdef", "labels.jsonl"
HOST = "http://shop.example/"
COPY, FIRST = HOST + "copy2.html", HOST + "page2.html"
REJECTED = HOST + "broken.html"
REASON = "HTTP status 503"
SCRIPT = "<script>window.hurt=1</script><img src=x onerror='window.hurt=2'>"
#: Of each: the title as a page writes it, and what of it a person must read.
HOSTILE = {
    "markup": (SCRIPT.replace("<", "&lt;"), SCRIPT),
    "turned": ("pay \u202egnp.exe", "gnp.exe"),
    "homograph": ("\u0440\u0430ypal", "\u0440\u0430ypal"),
    "terminal": ("clear \x1b[2J\x1b]0;owned\x07", "owned"),
}
#: Of a rule that only looks on, and nearly always disagrees: then pairs are drawn.
STRICT = "tape_min=0.999,two_sites_tape_min=0.999,short_tape_min=0.999"
WORD_BYTES = 10_000_000
WORD = "http://long.example/word.html"


def address(name: str) -> str:
    return f"http://evil.example/{name}.html"


def crawl() -> list[Page]:
    pages = [Page(HOST + each.path, each.body, "text/html", each.ms) for each in archives.crawl(6)]
    pages.append(Page(REJECTED, b"oops", "text/html", 1, status=503))
    for number, (name, (title, _)) in enumerate(HOSTILE.items()):
        body = f"<title>{title}</title><p>{title} {archives.text(100 + number)}".encode()
        pages += [Page(address(name), body, "text/html; charset=utf-8", 1)]
        pages += [Page(address(name + "2"), body + b" again", "text/html; charset=utf-8", 1)]
    return pages


def publish_word(line: Line, folder: Path) -> None:
    """A page of one word of 10 MB; no record holds it, so that it travels beside Kafka."""
    (folder / "word").write_bytes(b"<title>" + b"W" * WORD_BYTES + b"</title><p>" + b"w" * WORD_BYTES)
    source = line.admin.topic(line.names.pages).id.hex()
    writer = Writer(line.connection, line.names.pages)
    reference = f"file://{folder}/word".encode()
    writer.send(b"", key=WORD.encode(), headers=[("content-type", b"text/html"), ("body-ref", reference)], partition=0)
    writer.flush()
    line.published.setdefault((source, 0), []).append(Page(WORD, b"", "text/html"))


class Walk:
    """A browser's page, that looks at each page it comes to."""

    def __init__(self, browser: Any, worker: Worker, **how: Any) -> None:
        self.url = f"http://127.0.0.1:{worker.port}/"
        credentials = {"username": "anybody", "password": TOKEN}
        self.page = browser.new_page(http_credentials=credentials, viewport={"width": 360, "height": 740}, **how)
        self.wrong: list[str] = []
        self.page.on("console", lambda message: self.wrong.append(message.text))
        self.page.on("dialog", lambda dialog: self.wrong.append("a dialog"))
        self.page.on("request", lambda asked: None if asked.url.startswith(self.url) else self.wrong.append(asked.url))

    def go(self, path: str) -> "Walk":
        answer = self.page.goto(self.url + path)
        assert answer.status == 200, path
        return self.look()

    def look(self) -> "Walk":
        """Nothing of a page runs or loads, nothing turns the reading order round, and a phone is wide enough."""
        page = self.page
        page.wait_for_load_state()  # with its style: a form that is sent goes on before
        assert page.locator("main script, main img, main iframe, main [style], main [onerror]").count() == 0, page.url
        assert page.evaluate("window.hurt") is None
        text = page.evaluate("document.body.innerText")
        assert not {"\u202e", "\x1b", "\x07"} & set(text), page.url
        assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"], page.url
        assert self.wrong == [], page.url
        return self

    def sees(self, text: str) -> "Walk":
        self.page.get_by_text(text).first.wait_for()
        return self

    def follow(self, name: str, heading: str) -> "Walk":
        self.page.get_by_role("link", name=name, exact=True).first.click()
        self.page.get_by_role("heading", name=heading).first.wait_for()
        return self.look()


def asked(worker: Worker, path: str) -> dict[str, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", worker.port, timeout=60)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {TOKEN}"})
        return dict(orjson.loads(connection.getresponse().read()))
    finally:
        connection.close()


def address_of(role: Role) -> str:
    """Of its metrics, as its log names it."""
    return str(eventually(lambda: re.findall(r"http://\S+/metrics", role.output()), "the role's metrics")[0])


@contextmanager
def views(line: Line, folder: Path, *roles: Role) -> Iterator[Worker]:
    names, settings = line.names, line.settings
    own = ["--pages-topic", names.pages, "--sketches-topic", names.sketches, "--group", settings.group]
    audits = ["--audit-topic", settings.audit_topic, "--labels", str(folder / LABELS)]
    prefixes = ["--body-ref-prefixes", ",".join(settings.body_ref_prefixes)]
    metrics = ["--views-metrics", ",".join(address_of(role) for role in roles)]
    worker = Worker(line.bootstrap, names, folder / "tables", *own, *prefixes, *audits, *metrics)
    try:
        yield worker
    except BaseException:
        print(worker.log())
        raise
    finally:
        worker.kill()
        worker.process.wait(60)


@pytest.mark.slow
def test_an_operator_walks_every_page(
    make: Make, names: Topics, tmp_path: Path, browser: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = names._replace(audit=f"{names.verdicts}.audit")
    line = make(body_ref_prefixes=(f"file://{tmp_path}/",), audit_topic=names.audit, audit_rate=1.0, shadow_set=STRICT)
    topics.create(line.admin, names, line.sizes)
    sketcher = line.start("sketch")
    matcher = line.start("match")
    line.publish(crawl(), partition=0)
    publish_word(line, tmp_path)
    line.settle()
    monkeypatch.setenv("NEARDUP_VIEWS_TOKEN", TOKEN)
    with views(line, tmp_path, sketcher, matcher) as worker:
        eventually(lambda: asked(worker, "/overview.json")["verdicts"] >= line.total(), "all verdicts taken in")
        walk = Walk(browser, worker)
        why_a_page_was_dropped(walk)
        which_pages_are_in_a_cluster(walk)
        what_is_happening(walk)
        hostile_pages_are_text(walk)
        a_pair_is_labelled(walk, tmp_path / LABELS)
        a_rejected_page_is_sent_again(walk, worker)
        what_stands_still_is_reported(walk, line, sketcher)
        walk.page.close()


def why_a_page_was_dropped(walk: Walk) -> None:
    walk.go("")
    walk.page.get_by_role("textbox").first.fill(COPY.removeprefix("http://"))
    walk.page.keyboard.press("Enter")
    walk.sees("The same words in the same order").look().follow("compare", "Comparison")
    walk.sees("The same words in the same order.")
    walk.page.go_back()


def which_pages_are_in_a_cluster(walk: Walk) -> None:
    cluster = walk.page.locator("a[href^='cluster?']").first
    number = cluster.inner_text()
    walk.follow(number, f"Cluster {number}")
    for url in (FIRST, COPY):
        assert walk.page.get_by_role("link", name=url).first.is_visible()
    walk.follow(FIRST, "Item").follow("shop.example", "shop.example").sees("verdicts about this site")
    assert walk.page.get_by_role("row").filter(has_text=COPY).filter(has_text=FIRST).first.is_visible()


def what_is_happening(walk: Walk) -> None:
    walk.follow("neardup", "Overview").sees("The views have applied every verdict of the topic.")
    walk.follow("Sites", "Largest sites").follow("Closest calls", "Closest calls").follow("Health", "Health")
    walk.sees("No problem is known.")
    assert walk.page.get_by_role("rowheader", name="sketch").first.is_visible()
    assert walk.page.get_by_role("heading").filter(has_text="match http").is_visible()
    assert walk.page.get_by_role("definition").filter(has_text="free on its disk").is_visible()
    walk.page.get_by_role("textbox").first.fill("evil.example")
    walk.page.keyboard.press("Enter")
    walk.sees("verdicts about this site").look()


def hostile_pages_are_text(walk: Walk) -> None:
    for name, (_, read) in HOSTILE.items():
        two = address(name), address(name + "2")
        walk.go(f"url?url={quote(two[0])}")
        assert read in walk.page.get_by_role("heading").first.inner_text()
        walk.go(f"compare?a={quote(two[0])}&b={quote(two[1])}")
        assert read in walk.page.evaluate("document.body.textContent")
    walk.go(f"url?url={quote(WORD)}").go(f"compare?a={quote(WORD)}&b={quote(address('turned'))}").sees("Rules")
    assert len(walk.page.evaluate("document.body.textContent")) < WORD_BYTES / 10


def a_pair_is_labelled(walk: Walk, labels: Path) -> None:
    walk.go("").follow("Audits", "Audited pairs")
    page = walk.page
    page.get_by_role("link", name="Label them").click()
    page.locator("#labeller:focus").wait_for()  # the browser says so where a person was first
    page.get_by_label("Your name").fill("ana")
    page.keyboard.press("Enter")
    page.locator("#judge[data-ready]").wait_for()
    page.keyboard.press("d")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Pair 2 of").wait_for()
    assert [str(label.label) for label in read_labels(labels)] == ["correct"]
    # The sandbox that shows both pages as they are speaks up of each script that it stops.
    walk.wrong[:] = [values for values in walk.wrong if "sandbox" not in values]
    walk.go("audits").sees("duplicates")


def a_rejected_page_is_sent_again(walk: Walk, worker: Worker) -> None:
    walk.go("").follow("Rejected", "Rejected pages").follow(f"1: {REASON}", REASON)
    walk.page.get_by_role("button", name=f"Send {REJECTED} again").click()
    walk.sees("sent again").look()
    path = f"/url.json?url={quote(REJECTED)}"
    eventually(lambda: len(asked(worker, path)["history"]) == 2, "a verdict of the page sent again")
    walk.go(f"url?url={quote(REJECTED)}").sees(REASON)


def what_stands_still_is_reported(walk: Walk, line: Line, sketcher: Any) -> None:
    sketcher.stop()
    line.publish([Page(HOST + "new.html", b"<p>news", "text/html", 2)])
    eventually(lambda: line.members() == 0, "the sketcher's leave")
    walk.go("health").sees("start neardup sketch")
