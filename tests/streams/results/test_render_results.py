"""Rendered bodies by a real Chromium: what pages become, and what hostile ones do not reach."""

import asyncio
import gzip
import http.server
import json
import os
import shutil
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright.async_api", reason="playwright is not installed")

from neardup.page import Page
from streams.results import render_browser as browsing
from streams.results import render_visit as visiting
from streams.results.query_results import read_results
from streams.results.render_browser import Chromium, Rendered
from streams.results.render_network import Network
from streams.results.render_results import RenderCounts, render_command
from streams.results.render_world import World
from tests.streams.shell import Shell

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("chromium") is None, reason="no chromium: apt-get install chromium"),
]

SANDBOX = os.geteuid() != 0  # for root there is none
#: Of pages that come to rest: long, as the machine may be busy.
AT_REST = 90.0


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPEN_SECONDS", "DOCUMENT_SECONDS", "CLOSE_SECONDS"):
        monkeypatch.setattr(browsing, name, AT_REST)


def one(url: str, body: str, **more: Any) -> dict[str, Any]:
    return {"query": "wool", "url": url, "body": body, "content_type": "text/html", **more}


def write(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def rendered(folder: Path, lines: list[dict[str, Any]], **asked: Any) -> tuple[dict[str, dict[str, Any]], RenderCounts]:
    """The lines that come of some results, by URL."""
    path, out = write(folder / "results.jsonl", lines), folder / "rendered.jsonl"
    tally = render_command([path], out, sandbox=SANDBOX, tabs=3, **asked)
    made = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["url"] for line in made] == [line["url"] for line in lines]
    return {line["url"]: line for line in made}, tally


def record(url: str, head: str, body: bytes = b"") -> bytes:
    content = f"HTTP/1.1 {head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
    start = f"WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\nWARC-Record-ID: <urn:uuid:{len(url)}>\r\n"
    kind = "Content-Type: application/http; msgtype=response\r\n"
    return gzip.compress(f"{start}{kind}Content-Length: {len(content)}\r\n\r\n".encode() + content + b"\r\n\r\n")


#: Two records, as an archive of a crawler has them: a redirect and a script; a second file has pages as JSON lines.
RECORDS = [
    record("http://a.example/old.js", "301 Moved\r\nLocation: /app.js"),
    record("http://a.example/app.js", "200 OK\r\nContent-Type: text/javascript", b"document.body.append('by script')"),
    record("http://a.example/gone", "302 Found\r\nLocation: http://b.example/inner"),
]
INNER = "<title>In</title><p>inner text</p>"
WORLD = [
    one("http://b.example/inner", INNER),
    one("http://a.example/outer", "<p>outer <iframe src='http://b.example/inner'></iframe> text</p>"),
    one("http://a.example/said", '{"said": "fetched text"}', content_type="application/json"),
]
FETCH = "fetch('/said').then(a => a.json()).then(a => document.body.append(a.said))"
PAGES = {
    "script": "<p>before</p><script src=old.js></script><script>document.body.append(' and inline')</script>",
    "fetch": f"<script>{FETCH}</script>",
    "frames": "<p>start</p><iframe src=outer></iframe><p>end</p>",
    "frameset": "<title>Set</title><frameset cols='50%,50%'><frame src=outer><frame src='http://b.example/inner'>",
    "refresh": "<meta http-equiv=refresh content='0; url=http://b.example/inner'>Moved",
    "soon": "<meta http-equiv=Refresh content='1;url=http://b.example/inner'>Moved",
    "redirected": "<script>location.href = '/gone'</script>",
    "late": "<meta http-equiv=refresh content='60;url=http://b.example/inner'>Stays",
    "nowhere": "<meta http-equiv=refresh content='0;url=/nowhere'>Kept",
    "tampered": "<script>Element.prototype.replaceWith = Document.prototype.createComment = () => { throw 1 };"
    "Object.defineProperty(Element.prototype, 'outerHTML', {get: () => 'a lie'});</script>"
    "<p>true</p><iframe src=outer></iframe>",
    "popup": "<script>open('/outer'); alert(1); confirm(2); print(); document.body.append('went on')</script>",
}


@pytest.mark.whole
def test_scripts_frames_and_refreshes_make_the_body(tmp_path: Path) -> None:
    (tmp_path / "world.warc.gz").write_bytes(b"".join(RECORDS))
    world = (tmp_path / "world.warc.gz", write(tmp_path / "world.jsonl", WORLD))
    lines = [one(f"http://a.example/{name}", body, fetch_ms=12.5) for name, body in PAGES.items()]
    lines += [
        one("http://a.example/known", "<p>x", rendered="<p>as it was"),
        one("http://a.example/text", "plain", content_type="text/plain"),
        one("file:///home/page.html", "<p>x"),
    ]
    made, tally = rendered(tmp_path, lines, world=world, page_seconds=AT_REST)
    assert tally.problems == ["file:///home/page.html: not rendered: its URL is neither http nor https"]
    bodies = {name: made[f"http://a.example/{name}"]["rendered"] for name in PAGES}
    assert "before" in bodies["script"]
    assert "by script" in bodies["script"]
    assert "and inline" in bodies["script"]
    assert "fetched text" in bodies["fetch"]
    grafted = "<p>start</p><div><p>outer <div><p>inner text</p></div> text</p></div><p>end</p>"
    assert grafted in bodies["frames"]
    assert "<frameset" not in bodies["frameset"]
    assert bodies["frameset"].count("inner text") == 2
    for name in ("refresh", "soon", "redirected"):
        assert "inner text" in bodies[name], name
        assert made[f"http://a.example/{name}"]["rendered_url"] == "http://b.example/inner"
    assert "Stays" in bodies["late"]
    assert "Kept" in bodies["nowhere"]
    assert "true" in bodies["tampered"]
    assert "inner text" in bodies["tampered"]
    assert "lie" not in bodies["tampered"].replace("'a lie'", "")
    assert "went on" in bodies["popup"]
    assert made["http://a.example/known"]["rendered"] == "<p>as it was"
    assert "rendered" not in made["http://a.example/text"]
    assert all(made[f"http://a.example/{name}"]["render_ms"] > 0 for name in PAGES)
    assert made["http://a.example/script"]["fetch_ms"] == 12.5
    assert not any("render_ms" in made[f"http://a.example/{name}"] for name in ("known", "text"))
    assert (tally.rendered, tally.others, tally.failed) == (len(PAGES), 2, 1)


#: Pages that want to keep the browser for ever, or to fill it.
GREEDY = {
    "timers": "<p>text</p><script>setInterval(() => fetch('/x?' + Math.random()), 200)</script>",
    "round": "<p>text</p><script>location.href = '/round?' + Math.random()</script>",
    "again": "<meta http-equiv=refresh content=0><p>text</p>",
    "itself": "<p>text</p><iframe src='/itself?'></iframe>",
    "frames": "<p>text</p>" + "<iframe src='/frames'></iframe>" * 60,
    "huge": "<p>text</p><script>document.body.append('x'.repeat(1000000))</script>",
    "closed": "<p>text</p><script>window.close()</script>",
    "honest": "<p>text</p>",
}


@pytest.mark.whole
def test_pages_that_never_end_are_cut_and_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visiting, "HTML_CHARACTERS_MAX", 50_000)
    monkeypatch.setattr(visiting, "FRAMES_MAX", 10)
    monkeypatch.setattr(visiting, "ANSWERS_MAX", 40)
    monkeypatch.setattr(visiting, "REQUESTS_MAX", 100)
    lines = [one(f"http://a.example/{name}", body) for name, body in GREEDY.items()]
    made, tally = rendered(tmp_path, lines, page_seconds=8.0)
    bodies = {name: made[f"http://a.example/{name}"].get("rendered") for name in GREEDY}
    assert all("<p>text</p>" in (body or "") for body in bodies.values()), tally.problems
    assert len(bodies["huge"]) == 50_000
    assert bodies["frames"].count("<div>") == 10
    assert "http://a.example/round: not at rest after 8 s" in tally.problems


@pytest.mark.whole
def test_scripts_that_never_stop_cost_their_page_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the limits of time they take a whole core, so they have short ones here, and the other page has not."""

    async def render(self: Chromium, page: Page) -> Rendered:
        self._seconds = 3.0 if page.url == "http://a.example/stuck" else AT_REST
        monkeypatch.setattr(browsing, "DOCUMENT_SECONDS", self._seconds)
        return await whole(self, page)

    whole = Chromium.render
    monkeypatch.setattr(Chromium, "render", render)
    stuck = "<p>text</p><script>while (true) {}</script>"
    lines = [one("http://a.example/stuck", stuck), one("http://b.example/", "<p>text</p>")]
    write(tmp_path / "results.jsonl", lines)
    out = tmp_path / "rendered.jsonl"
    tally = render_command([tmp_path / "results.jsonl"], out, sandbox=SANDBOX, tabs=1)
    assert (tally.rendered, tally.failed) == (1, 1)
    assert tally.problems[0].startswith("http://a.example/stuck: not rendered: ")


@pytest.mark.whole
def test_a_browser_that_dies_is_started_again(tmp_path: Path) -> None:
    async def kill_it_between_two_pages() -> list[str | None]:
        with World() as world:
            async with Chromium(world, None, sandbox=SANDBOX, page_seconds=AT_REST) as chromium:
                made = [await chromium.render(Page("http://a.example/", b"<p>one"))]
                assert chromium._browser is not None
                await chromium._browser.close()
                made.append(await chromium.render(Page("http://a.example/", b"<p>two")))
        return [each.html for each in made]

    first, second = asyncio.run(kill_it_between_two_pages())
    assert first is not None
    assert "one" in first
    assert second is not None
    assert "two" in second


class Ears:
    """A server on this machine, over TCP and UDP, that records its callers."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        ears = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                ears.asked.append(f"{self.command} {self.path}")
                moved = self.path.startswith("/away")
                self.send_response(302 if moved else 200)
                if moved:
                    self.send_header("Location", self.path.partition("?")[2])
                self.send_header("Content-Type", "text/javascript" if self.path.endswith(".js") else "text/html")
                self.end_headers()
                if not moved:
                    self.wfile.write(b"document.body.append('by server')" if ".js" in self.path else INNER.encode())

            do_POST = do_OPTIONS = do_HEAD = do_CONNECT = do_GET

            def log_message(self, *given: Any) -> None: ...

            def handle(self) -> None:
                ears.asked.append("a connection")
                super().handle()

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", self.port))
        self.udp.setblocking(False)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def datagrams(self) -> int:
        count = 0
        while True:
            try:
                self.udp.recv(2000)
                count += 1
            except BlockingIOError:
                return count

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.udp.close()


@pytest.fixture
def ears() -> Iterator[Ears]:
    found = Ears()
    yield found
    found.close()


def wicked(port: int) -> str:
    """All ways out of a page that browsers know, to this machine."""
    there = f"http://127.0.0.1:{port}"
    return f"""<link rel=preconnect href="{there}"><link rel=dns-prefetch href="{there}"><link rel=prefetch
    href="{there}/prefetch"><link rel=modulepreload href="{there}/module.js"><link rel=stylesheet href="{there}/style">
    <link rel=manifest href="{there}/manifest"><link rel=icon href="{there}/icon"><img src="{there}/img">
    <script type=speculationrules>{{"prefetch": [{{"urls": ["{there}/guess"]}}]}}</script>
    <script src="{there}/script.js"></script><iframe src="{there}/frame"></iframe>
    <object data="{there}/object"></object><embed src="{there}/embed"><video src="{there}/video"></video>
    <audio src="{there}/audio"></audio>
    <iframe srcdoc="<script src='{there}/inner.js'></script><img src='{there}/inner'>"></iframe>
    <form id=f method=post action="{there}/form" target=_blank><input name=a value=b></form><p id=x>text</p><a
    id=p href="/x" ping="{there}/ping">a</a><script>
    const go = [() => fetch("{there}/fetch", {{mode: "no-cors"}}), () => navigator.sendBeacon("{there}/beacon", "x"),
      () => new WebSocket("ws://127.0.0.1:{port}/socket"), () => new EventSource("{there}/events"),
      () => {{ const r = new XMLHttpRequest(); r.open("POST", "{there}/xhr"); r.send("x"); }},
      () => new Worker(URL.createObjectURL(new Blob(["importScripts('{there}/worker.js')"]))),
      () => new Worker(URL.createObjectURL(new Blob(["fetch('{there}/in-worker')"]))),
      () => new SharedWorker(URL.createObjectURL(new Blob(["fetch('{there}/in-shared')"]))),
      () => navigator.serviceWorker.register("/sw.js"), () => open("{there}/popup"),
      () => document.getElementById("f").submit(), () => document.getElementById("p").click(),
      () => new WebTransport("https://127.0.0.1:{port}/transport"),
      () => {{ const c = new RTCPeerConnection({{iceServers: [{{urls: ["stun:127.0.0.1:{port}",
        "turn:127.0.0.1:{port}?transport=tcp"], username: "a", credential: "b"}}]}});
        c.createDataChannel("x"); c.createOffer().then(o => c.setLocalDescription(o)); }}];
    for (const each of go) try {{ Promise.resolve(each()).catch(() => 0); }} catch (e) {{ }}
    document.body.append("tried all");
    </script>"""


def test_no_page_reaches_anything_else(tmp_path: Path, ears: Ears) -> None:
    """The world leads out as well: a redirect in an archive must not be followed by the browser itself."""
    away = record("http://a.example/away", f"302 Found\r\nLocation: http://127.0.0.1:{ears.port}/away")
    (tmp_path / "world.warc.gz").write_bytes(away)
    leave = f"<meta http-equiv=refresh content='0;url=http://127.0.0.1:{ears.port}/left'>text"
    lines = [
        one("http://a.example/all", wicked(ears.port)),
        one("http://a.example/led", "<p>text</p><script>location.href = '/away'</script>"),
        one(
            "http://a.example/drawn", "<p>text</p><img src=/away><script src=/away></script><iframe src=/away></iframe>"
        ),
        one("http://a.example/refreshed", leave),
        one(f"http://127.0.0.1:{ears.port}/itself", "<p>text</p><script src=own.js></script>"),
    ]
    made, tally = rendered(tmp_path, lines, world=(tmp_path / "world.warc.gz",), network=Network(), page_seconds=15.0)
    assert "tried all" in made["http://a.example/all"]["rendered"]
    assert all("text" in line["rendered"] for line in made.values()), tally.problems
    assert ears.asked == []
    assert ears.datagrams() == 0


@pytest.mark.whole
def test_a_page_loads_of_its_own_site_alone(tmp_path: Path, ears: Ears) -> None:
    other = Ears()
    own, its = f"http://127.0.0.1:{ears.port}", f"http://localhost:{other.port}"
    body = f"""<p>text</p><script src=/app.js></script><script src="/away?{own}/moved.js"></script>
    <script src="/away?{its}/other.js"></script><script src="{its}/other.js"></script><iframe src=/inner></iframe>
    <iframe src="/away?{its}/inner"></iframe><form id=f method=post action=/form target=_blank></form>
    <script>fetch("/post", {{method: "POST", body: "x"}}); document.getElementById("f").submit()</script>"""
    try:
        made, _ = rendered(tmp_path, [one(f"{own}/page", body)], network=Network(private=True), page_seconds=AT_REST)
        found = made[f"{own}/page"]["rendered"]
        assert found.count("by server") == 2
        assert found.count("inner text") == 1
        assert other.asked == []
        asked = [each for each in ears.asked if each != "a connection"]
        assert "GET /app.js" in asked
        assert "GET /moved.js" in asked
        assert all(each.startswith("GET ") for each in asked)
    finally:
        other.close()


def test_rendered_results_are_read_by_commands(shell: Shell) -> None:
    title = "<title>W\u00f6rter</title>"
    lines = [
        one("http://a.example/", f"{title}<script>document.write('\u96ea')</script>", lang="de"),
        # Chromium asks for https first where a domain may be registered, as .com and not .example.
        one("http://www.a-page-of-no-one.com/x", "<p>of http<script>document.write('<p>by script')</script>"),
    ]
    write(shell.folder / "results.jsonl", lines)
    flags = () if SANDBOX else ("--no-sandbox",)
    ended = shell("render", "results.jsonl", "--out", "made.jsonl", "--page-seconds", "90", *flags)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == "2 results: 2 rendered, 0 not, 0 left as they were; made.jsonl\n"
    problems: list[str] = []
    line, of_http = read_results([shell.folder / "made.jsonl"], None, problems)
    assert b"by script" in (of_http.rendered or b"")
    result = line.result()
    assert problems == []
    assert (result.query, result.lang, result.fetched.title) == ("wool", "de", "W\u00f6rter")
    assert result.rendered is not None
    assert result.rendered.title == "W\u00f6rter"
    assert "\u96ea" in result.rendered.text
    assert "\u96ea" not in result.fetched.text


def test_impossible_rendering_is_reported(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    write(shell.folder / "results.jsonl", [one("http://a.example/", "x")])
    for reason, *usage in (("Choose from", "--network", "all"), ("--private is for", "--private")):
        ended = shell("render", "results.jsonl", *usage)
        assert ended.code == 2
        assert reason in ended.err
    wrong = shell("render", "results.jsonl", "--no-sandbox", "--browser", "/bin/false")
    assert wrong.code == 1
    assert "/bin/false cannot be started" in wrong.err
    monkeypatch.setattr(browsing.shutil, "which", lambda name: None)
    assert "none of chromium" in shell("render", "results.jsonl", "--no-sandbox").err
    monkeypatch.setattr(browsing.os, "geteuid", lambda: 0)
    assert "does not work for root" in shell("render", "results.jsonl", "--browser", "/bin/false").err
    assert not (shell.folder / "rendered.jsonl").exists()


def test_delays_of_refreshes() -> None:
    fields = {"0;url=/x": 0, " 3 ; URL=x": 3, "5": 5, "": None, "url=/x": None, "99999999999999": 999999999, "1.5;x": 1}
    assert {text: visiting.delay_of(text) for text in fields} == fields
