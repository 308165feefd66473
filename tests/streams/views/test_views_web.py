"""The web pages of the views: access, hostile content as text, and a user's way through them in a browser."""

import asyncio
import http.client
import re
import threading
from base64 import b64encode
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import orjson
import pytest

pytest.importorskip("aiohttp", reason="aiohttp is not installed")

from neardup.errors import BadInput
from neardup.page import Page
from neardup.report.evidence_sentences import reason_kind
from neardup.verdict import Coordinates
from streams.process.web_server import listen
from streams.views.source import ScanSource
from streams.views.web import serve
from tests.neardup.report.test_report import HOSTILE, Outline
from tests.streams.shell import Shell, site
from tests.streams.views.random_verdicts import DECIDER, Held, Nowhere, random_verdicts

TOKEN = "0123456789abcdef"
EVIL = "https://evil.example/" + HOSTILE


class Server:
    """The pages on a free port, in a thread of their own."""

    def __init__(self, source: Any, **how: Any) -> None:
        self.url, self._ready = "", threading.Event()
        self._loop, self._stop = asyncio.new_event_loop(), asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._run(source, how),))
        self._thread.start()
        assert self._ready.wait(30)

    async def _run(self, source: Any, how: dict[str, Any]) -> None:
        def ready(url: str) -> None:
            self.url = url
            self._ready.set()

        await serve(source, DECIDER, listen("127.0.0.1", 0, None), ready=ready, until=self._stop.wait(), **how)

    def get(self, path: str, **headers: str) -> tuple[int, dict[str, str], str]:
        return self.ask("GET", path, None, headers)

    def ask(self, how: str, path: str, body: str | None, headers: dict[str, str]) -> tuple[int, dict[str, str], str]:
        connection = http.client.HTTPConnection(self.url.split("/")[2], timeout=30)
        connection.request(how, path, body, headers)
        answer = connection.getresponse()
        out = answer.status, dict(answer.getheaders()), answer.read().decode()
        connection.close()
        return out

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(30)
        assert not self._thread.is_alive()
        self._loop.close()


def hostile() -> list[dict[str, Any]]:
    """A page, and its duplicate, that put markup wherever a page may put text; and one of no site."""
    first = next(v for v in random_verdicts(50) if v["verdict"] == "near_duplicate")
    place = {"page_id": 1, "url": EVIL + "0", "fetched_at": 1, "coordinates": {}}
    one = {**first, "page_id": 1, "url": EVIL, "title": HOSTILE, "site": "evil.example", "cluster": 1,
           "coordinates": {"offset": 1}, "canonical": EVIL, "representative": {**place, "page_id": 0}}  # fmt: skip
    foreign = {
        **one,
        "page_id": 2,
        "coordinates": {"offset": 2},
        "url": EVIL + "2",
        "decider": "d" * 32,
        "evidence": {"by": HOSTILE, HOSTILE: HOSTILE, "turned_hot": [HOSTILE, f"wide:{HOSTILE}"]},
    }
    rejected = {**first, "page_id": 3, "url": HOSTILE, "verdict": "rejected", "reason": HOSTILE, "site": None}
    newer = {**first, "page_id": 4, "url": EVIL + "3", "verdict": HOSTILE, "site": "evil.example"}
    long = {**one, "page_id": 5, "url": "https://evil.example/long", "title": "W" * 100_000}
    return [one, foreign, rejected, newer, long]


class EvilOrigin(Nowhere):
    """Where two pages differ, their texts are markup, escapes of a terminal, and homographs; errors are as evil."""

    def record(self, page_id: int, log: str | None) -> bytes:
        raise BadInput(HOSTILE)

    def page(self, coordinates: Coordinates) -> Page:
        own = escape(HOSTILE) + "\x1b[2J \u0440\u0430ypal " + " ".join("same" * coordinates.offset)
        return Page(EVIL if coordinates.offset == 1 else EVIL + "2", f"<p>{own}".encode(), "text/html; charset=utf-8")


SHOWN = [EVIL, EVIL + "2", EVIL + "3", HOSTILE, "https://evil.example/long"]
COMPARED = [f"/compare?a={quote(EVIL)}&b={quote(other)}" for other in (EVIL, EVIL + "2", HOSTILE)]
KNOWN = ["/", *(f"/url?url={quote(url)}" for url in SHOWN), "/cluster?id=1", "/site?name=evil.example", *COMPARED]
KNOWN += ["/audits", "/clusters", "/kind?name=near_duplicate", "/search?text=evil"]
KNOWN += [
    "/health",
    "/sites",
    "/patterns",
    "/patterns?site=evil.example",
    "/close",
    "/rejects",
    f"/rejects?reason={quote(reason_kind(HOSTILE))}&page=9",
    "/sites?page=x",
]
UNKNOWN = [
    f"{page}={quote('nothing' + HOSTILE)}"
    for page in (
        "/url?url",
        "/cluster?id",
        "/site?name",
        "/compare?b=x&a",
        "/close?day",
        "/rejects?reason",
        "/kind?name",
    )
]
PATHS = KNOWN + UNKNOWN


@pytest.fixture(scope="module")
def evil() -> Iterator[Server]:
    source = Held(hostile(), "a test" + HOSTILE)
    source.origin = EvilOrigin()
    server = Server(source)
    yield server
    server.close()


@pytest.mark.parametrize("path", PATHS)
def test_hostile_content_shows_as_text(evil: Server, path: str) -> None:
    status, headers, page = evil.get(path)
    assert status == (200 if path in KNOWN else 404)
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    seen = Outline(page)
    assert not {"script", "img"} & seen.tags.keys()
    assert not {"onerror", "src", "style"} & seen.attributes.keys()
    assert "\u202e" not in page
    assert "\0" not in page


def test_each_page_has_a_twin_that_says_the_same(evil: Server) -> None:
    for path in ("/overview.json", *(re.sub(r"^(/\w+)", r"\1.json", path) for path in PATHS[1:])):
        status, headers, text = evil.get(path)
        assert headers["Content-Type"] == "application/json"
        assert ("error" in orjson.loads(text)) == (status == 404)
    assert orjson.loads(evil.get("/url.json?url=" + quote(EVIL))[2])["verdict"] == hostile()[0]


@pytest.mark.parametrize("path", ["/", "/overview.json", "/url?url=x", "/views.css"])
def test_other_names_other_sites_and_other_tokens_are_refused(evil: Server, path: str) -> None:
    assert evil.get(path, Host="evil.example")[0] == 403
    assert evil.get(path, **{"Sec-Fetch-Site": "cross-site"})[0] == 403
    server = Server(Held([]), token=TOKEN, names=["views.example"])
    try:
        assert server.get(path)[0] == 401
        assert server.get(path, Authorization="Bearer 0123456789abcdeX")[0] == 401
        status, headers, text = server.get(path, Authorization="Bearer \u00e9")
        assert (status, TOKEN in text + str(headers)) == (401, False)
        right = {"Authorization": f"Bearer {TOKEN}"}
        assert server.get(path, **right)[0] == server.get(path, Host="views.example", **right)[0] != 401
        assert "Basic" in headers["WWW-Authenticate"], "a browser asks its user"
        for credentials, good in (
            (b64encode(f"anybody:{TOKEN}".encode()), True),
            (b64encode(f"{TOKEN}:".encode()), False),
            (b64encode(TOKEN.encode()), False),
            (b64encode(b"\xff:\xff"), False),
            (b"!", False),
        ):
            status = server.get(path, Authorization=f"Basic {credentials.decode()}")[0]
            assert (status != 401) is good, credentials
    finally:
        server.close()


class SendingOrigin(Nowhere):
    """Notes what is sent again; of page 1 nothing is left."""

    sends_again = True

    def __init__(self) -> None:
        self.sent: list[Coordinates] = []

    def send_again(self, coordinates: Coordinates) -> None:
        if coordinates.offset == 1:
            raise BadInput("no such record is there any more")
        self.sent.append(coordinates)


REASON = "HTTP status 503"


@pytest.fixture
def sending() -> Iterator[tuple[Server, SendingOrigin]]:
    first = random_verdicts(1)[0]
    made = [
        {**first, "page_id": number, "url": f"https://a.example/{number}", "verdict": "rejected", "reason": REASON,
         "coordinates": {"offset": number}} for number in (1, 2)
    ]  # fmt: skip
    source = Held(made)
    source.origin = origin = SendingOrigin()
    server = Server(source, token=TOKEN)
    yield server, origin
    server.close()


def test_resending_a_rejected_page_needs_a_token(sending: tuple[Server, SendingOrigin]) -> None:
    server, origin = sending
    basic = {"Authorization": "Basic " + b64encode(f":{TOKEN}".encode()).decode()}
    page = server.get(f"/rejects?reason={quote(REASON)}", **basic)[2]
    form_token = re.findall(r'name="form_token" value="([^"]+)"', page)[0]
    own = server.url.rstrip("/")

    def send(page_id: int = 2, reason: str = REASON, form_token: str = form_token, **headers: str) -> tuple[int, str]:
        body = urlencode({"form_token": form_token, "reason": reason, "page_id": page_id})
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        status, _, text = server.ask("POST", "/send-again", body, {**kind, **basic, **headers})
        return status, text

    assert send(Authorization="")[0] == 401
    assert send(form_token="another")[0] == 403
    assert send(Origin="https://evil.example")[0] == 403
    assert send(Origin="null")[0] == 403
    assert send(**{"Sec-Fetch-Site": "cross-site"})[0] == 403
    assert send(page_id=7)[0] == send(reason="another")[0] == 404
    assert send(page_id=1) == (409, "the page could not be sent again: no such record is there any more")
    assert origin.sent == []
    assert send(Origin=own)[0] == 303
    assert send(form_token="", Authorization=f"Bearer {TOKEN}")[0] == 303
    assert origin.sent == [Coordinates(offset=2)] * 2
    assert "form_token" not in server.get(f"/rejects.json?reason={quote(REASON)}", **basic)[2]


def test_without_a_token_nothing_is_sent_again(evil: Server) -> None:
    assert "send-again" not in evil.get(f"/rejects?reason={quote(reason_kind(HOSTILE))}")[2]
    assert evil.ask("POST", "/send-again", "page_id=3", {})[0] == 403


@pytest.mark.whole
def test_a_person_sends_a_page_again(sending: tuple[Server, SendingOrigin], browser: Any) -> None:
    server, origin = sending
    page = browser.new_page(http_credentials={"username": "anybody", "password": TOKEN})
    page.goto(server.url + "rejects")
    page.get_by_role("link", name=REASON).click()
    page.get_by_role("button", name="Send https://a.example/2 again").click()
    page.get_by_text("sent again", exact=True).wait_for()
    assert origin.sent == [Coordinates(offset=2)]
    page.close()


def test_remote_access_needs_a_token() -> None:
    with pytest.raises(BadInput, match="NEARDUP_VIEWS_TOKEN"):
        listen("0.0.0.0", 0, None)
    listen("0.0.0.0", 0, TOKEN).close()


def test_wrong_usage_is_reported_in_a_line(shell: Shell) -> None:
    assert "is no state directory" in shell("views", "nowhere").err
    site(shell.folder / "site")
    assert shell("scan", "site").code == 0
    assert "delete DIR/views" in shell("views", "neardup-state", "--rebuild").err


def test_a_person_finds_out_why_a_page_was_dropped(shell: Shell, tmp_path: Path, browser: Any) -> None:
    site(tmp_path / "site")
    assert shell("scan", "site", "--base-url", "https://a.example/").code == 0
    source = ScanSource(tmp_path / "neardup-state")
    server = Server(source)
    try:
        page = browser.new_page(viewport={"width": 360, "height": 800})
        complaints: list[str] = []
        page.on("console", lambda message: complaints.append(message.text))
        page.on("request", lambda request: complaints.append(request.url) if server.url not in request.url else None)
        page.goto(server.url)
        assert page.get_by_text("3 verdicts of the scan").is_visible()
        page.get_by_role("textbox").first.fill("a.example/b.html")
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="Wool").wait_for()
        assert page.get_by_text("Both pages are on one site.").is_visible()
        page.get_by_role("link", name="compare").first.click()
        page.get_by_role("heading", name="Comparison").wait_for()
        page.wait_for_load_state()  # with its style sheet
        assert page.get_by_text("0 words only in A").is_visible() or page.get_by_text("only in B").is_visible()
        assert page.get_by_role("insertion").or_(page.get_by_role("deletion")).first.is_visible()
        assert page.get_by_role("rowheader", name="simhash64").is_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        page.go_back()
        page.get_by_role("link", name="0", exact=True).click()
        page.get_by_role("heading", name="Cluster 0").wait_for()
        assert page.get_by_role("link", name="https://a.example/b.html").is_visible()
        assert page.get_by_text("canonical", exact=True).is_visible()
        page.get_by_role("link", name="https://a.example/a.html").first.click()
        page.get_by_role("link", name="a.example", exact=True).click()
        page.get_by_text("3 verdicts about this site").wait_for()
        page.wait_for_load_state()
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        light = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.emulate_media(color_scheme="dark")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
        page.goto(server.url + "url?url=nowhere")
        assert page.get_by_text("No verdict about nowhere").is_visible()
        assert [c for c in complaints if "404" not in c] == []
        page.close()
    finally:
        server.close()
