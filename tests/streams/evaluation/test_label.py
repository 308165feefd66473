"""`neardup label`: the views over real sockets, what they refuse, and a person's way through them in a browser."""

import asyncio
import html
import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

pytest.importorskip("aiohttp", reason="aiohttp is not installed")
from aiohttp import web

from neardup.decider import Decider
from neardup.errors import BadInput
from neardup.evaluation.graphs import b_graph, c_graph
from neardup.evaluation.labelling_criteria import JUDGEMENTS, KEYS, MEANINGS, NAMES
from neardup.evaluation.labelling_rounds import Labelling
from neardup.evaluation.labels import REASONS, Judgement, read_labels
from neardup.evaluation.runs import judged
from neardup.evaluation.sampling import draw, draw_of_verdicts
from neardup.page import Page
from neardup.report.reasons import Reason
from neardup.rules.base import margin
from neardup.scheme import Scheme
from neardup.urls import id_of
from streams.evaluation.evaluate import open_crawl
from streams.evaluation.label import LabelFile, LabelViews, label_command
from streams.scan.scan import scan
from streams.state.scan_directory import ScanDirectory
from tests import processes
from tests.neardup.evaluation.crawl import crawl_of, manual, page, words

#: Keys with other functions on the page of a pair (`neardup/evaluation/label.js`).
TAKEN = frozenset("dnusazv?")

#: What a page might try to run, to load, or to reach at CANARY.
HOSTILE = (
    "<LINK rel=preconnect href='CANARY'><link/rel=dns-prefetch href='CANARY'><link rel=stylesheet href='CANARY/s.css'>"
    "<link rel=icon href='CANARY/i.png'><link rel=prefetch href='CANARY/p'><link rel=preload as=image href='CANARY/l'>"
    "<meta http-equiv=refresh content='0;url=CANARY/r'><base href='CANARY/'>"
    "<script>window.hurt=1</script><script src='CANARY/x.js'></script><img src='CANARY/x.png' onerror='window.hurt=2'>"
    "<style>@import 'CANARY/x.css'; @font-face { font-family: f; src: url(CANARY/f) } "
    "* { font-family: f; background: url(CANARY/b.png) }</style>"
    "<iframe src='CANARY/f'></iframe><iframe srcdoc='<img src=CANARY/d.png>'></iframe>"
    "<object data='CANARY/o'></object><embed src='CANARY/e'><video src='CANARY/v' poster='CANARY/w.png'></video>"
    "<svg><image href='CANARY/g.png' /><use href='CANARY/u.svg#u' /></svg><table background='CANARY/t.png'></table>"
    "<form action='CANARY/form'><input autofocus onfocus='window.hurt=6'><input type=image src='CANARY/n.png'></form>"
    "<a href='CANARY/a' ping='CANARY/ping'>a link</a> <a href='CANARY/top' target=_top>another</a>"
    "&lt;script&gt;window.hurt=3&lt;/script&gt; &quot;&gt;&lt;img src=x onerror=window.hurt=4&gt;"
)
#: Links that a page makes live again, whatever a sheet says of links.
LIVE = (
    "<a name=top id='top'>No link</a>"
    "<a style='pointer-events: auto !important' href='CANARY/1'>live</a>"
    "<style>html body a#x#x { pointer-events: auto !important }</style><A\nid=x HREF=CANARY/2>live</A>"
    "<a/href='CANARY/3'target=_blank><b style='pointer-events: auto'>live</b></a>"
    "<a title='>' name=\"<a href='CANARY/4'>\" href='CANARY/4'><b style='pointer-events: auto'>live</b></a>"
    "<svg width=90 height=30><a xlink:href='CANARY/5'><text y=20 pointer-events=all>live</text></a></svg>"
    "<svg width=90 height=30><a><set attributeName=href to='CANARY/6' />"
    "<text y=20 pointer-events=all>live</text></a></svg>"
    "<svg width=90 height=30><a href='#'><animate attributeName=href values='CANARY/7' begin=0s dur=1s fill=freeze />"
    "<text y=20 pointer-events=all>live</text></a></svg>"
    "<img usemap='#m' width=90 height=30 alt=live src='data:image/gif;base64,R0lGODlhAQABAAAAACw='>"
    "<map name=m><area style='pointer-events: auto !important' shape=default href='CANARY/8'></map>"
)


class Server:
    """The views on a free port, in a thread of their own. more: pages beside the made-up ones."""

    def __init__(self, path: Path, prefix: str = "", count: int = 4, more: Sequence[Page] = ()) -> None:
        pages = [*manual(items=6), *more]
        text = words(77, 120)
        self.canary = socket.create_server(("127.0.0.1", 0))
        self.canary.setblocking(False)
        evil = (LIVE + HOSTILE).replace("CANARY", f"http://127.0.0.1:{self.canary.getsockname()[1]}")
        pages += [
            page(f"https://evil.example/{i}?a=<b>", "Evil &lt;b&gt;", text, f"{evil} visitor {i}") for i in (1, 2)
        ]
        crawl = crawl_of(pages)
        b, c = b_graph(crawl.corpus), c_graph(crawl.corpus)
        first = [one for one in draw(crawl.corpus, b, c, count=10**6) if "evil" in crawl.corpus.urls[one.a]]
        self.pairs = [*first[:1], *draw(crawl.corpus, b, c, count=count)]
        self.file = LabelFile(path)
        self.labelling = Labelling(self.pairs, crawl.corpus, self.file.labels, self.file.append)
        self.texts, self.prefix, self.urls = crawl.texts, prefix, crawl.corpus.urls
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._run(),))
        self._thread.start()
        assert self._ready.wait(30)

    async def _run(self) -> None:
        app = web.Application()
        runner = web.AppRunner(app)
        sock = socket.socket()
        sock.bind(("127.0.0.1", 0))
        self.port = sock.getsockname()[1]
        self.host = f"127.0.0.1:{self.port}"
        views = LabelViews(self.labelling, self.texts, hosts=[self.host], prefix=self.prefix, now_ms=lambda: 1234)
        views.add_to(app)
        await runner.setup()
        await web.SockSite(runner, sock).start()
        self._ready.set()
        await self._stop.wait()
        await runner.cleanup()

    def ask(
        self, method: str, path: str, form: dict[str, str] | None = None, **headers: str
    ) -> tuple[int, str, dict[str, str]]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        body = urlencode(form) if form is not None else None
        sent = {"Host": self.host, **{name.replace("_", "-"): value for name, value in headers.items()}}
        if body is not None:
            sent["Content-Type"] = "application/x-www-form-urlencoded"
        connection.request(method, self.prefix + path, body, sent)
        answer = connection.getresponse()
        found = answer.status, answer.read().decode(), dict(answer.getheaders())
        connection.close()
        return found

    def token(self) -> str:
        text = self.ask("GET", "/pair?labeller=ana")[1]
        found = re.search(r'name="token" value="([^"]+)"', text)
        assert found
        return found[1]

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(30)
        self._loop.close()
        self.file.close()
        self.canary.close()

    def nobody_came(self) -> bool:
        """Whether nothing has ever connected to what the evil pages name."""
        try:
            self.canary.accept()
        except BlockingIOError:
            return True
        return False


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    running = Server(tmp_path / "labels.jsonl")
    yield running
    running.close()


def form(server: Server, **more: str) -> dict[str, str]:
    return {"token": server.token(), "labeller": "ana", "place": "0", "judgement": "correct", **more}


def test_a_label_is_written_and_the_next_pair_comes(server: Server, tmp_path: Path) -> None:
    status, _, headers = server.ask("POST", "/label", {**form(server), "reason-correct": "visitor_count"})
    assert (status, headers["Location"]) == (303, "/pair?labeller=ana&after=0")
    (label,) = read_labels(tmp_path / "labels.jsonl")
    assert (label.label, label.labeller, label.labelled_at, label.reasons) == (
        Judgement.CORRECT,
        "ana",
        1234,
        ("visitor_count",),
    )
    assert "Pair 2 of 5" in server.ask("GET", headers["Location"])[1]
    status, _, headers = server.ask("POST", "/undo", {"token": server.token(), "labeller": "ana"})
    assert (status, headers["Location"]) == (303, "/pair?labeller=ana&place=0")
    assert read_labels(tmp_path / "labels.jsonl") == []


def test_reasons_of_another_judgement_in_the_form_do_not_count(server: Server, tmp_path: Path) -> None:
    sent = {**form(server, judgement="incorrect"), "reason-correct": "time_stamp", "reason-incorrect": "main_item"}
    assert server.ask("POST", "/label", sent)[0] == 303
    assert read_labels(tmp_path / "labels.jsonl")[0].reasons == ("main_item",)


@pytest.mark.parametrize(
    ("headers", "token"),
    [
        ({"Host": "evil.example"}, True),
        ({"Host": "localhost"}, True),
        ({"Origin": "https://evil.example"}, True),
        ({"Origin": "null"}, True),
        ({"Sec_Fetch_Site": "cross-site"}, True),
        ({}, False),
    ],
)
def test_other_sites_cannot_label(server: Server, tmp_path: Path, headers: dict[str, str], token: bool) -> None:
    sent = form(server)
    if not token:
        sent["token"] = "guessed"
    for path in ("/label", "/undo"):
        assert server.ask("POST", path, sent, **headers)[0] == 403
    if headers:
        assert server.ask("GET", "/pair?labeller=ana", **headers)[0] == 403
    assert (tmp_path / "labels.jsonl").read_bytes() == b""


def test_the_pages_own_origin_may(server: Server) -> None:
    sent = form(server)
    assert server.ask("POST", "/label", sent, Origin=f"http://{server.host}", Sec_Fetch_Site="same-origin")[0] == 303


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/pair", 400),
        ("/pair?labeller=" + "x" * 61, 400),
        ("/pair?labeller=ana&place=x", 400),
        ("/pair?labeller=ana&place=99", 404),
        ("/pair?labeller=ana&place=-1", 400),
        ("/pair?labeller=ana&place=%D9%A3", 400),
        ("/nowhere", 404),
    ],
)
def test_bad_addresses(server: Server, path: str, status: int) -> None:
    assert server.ask("GET", path)[0] == status


@pytest.mark.parametrize(
    "more", [{"judgement": ""}, {"judgement": "withdrawn"}, {"place": "77"}, {"place": "x"}, {"labeller": ""}]
)
def test_bad_forms_are_refused_with_the_reason(server: Server, tmp_path: Path, more: dict[str, str]) -> None:
    status, text, _ = server.ask("POST", "/label", form(server, **more))
    assert status == 400
    assert 'role="alert"' in text
    assert (tmp_path / "labels.jsonl").read_bytes() == b""


def test_every_answer_has_a_content_security_policy(server: Server) -> None:
    for path in ("/", "/pair?labeller=ana", "/label.css", "/label.js", "/pair?labeller=ana&place=99"):
        headers = server.ask("GET", path)[2]
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-store"
    text = server.ask("GET", "/pair?labeller=%22%3E%3Cscript%3E")[1]
    assert "<script>" not in text
    assert str(server.canary.getsockname()[1]) not in re.sub(r">[^<]*<", "><", text)


def test_pages_are_sent_to_frames_behind_a_wall(server: Server) -> None:
    text = server.ask("GET", "/pair?labeller=ana")[1]
    frames = re.findall(r"<iframe [^>]*>", text)
    assert len(frames) == 2
    assert all(' sandbox=""' in frame for frame in frames), "nothing is allowed to what it shows"
    for side in ("left", "right"):
        assert f'src="/page?place=0&amp;side={side}"' in text
        status, body, headers = server.ask("GET", f"/page?place=0&side={side}")
        assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
        policy = [part.strip() for part in headers["Content-Security-Policy"].split(";")]
        assert {"default-src 'none'", "sandbox", "base-uri 'none'", "form-action 'none'"} <= set(policy)
        allowed = {part.partition(" ")[2] for part in policy if part.partition(" ")[0].endswith("-src")}
        assert allowed == {"'none'", "'unsafe-inline'", "data:"}, "styles and pictures of its own alone"
        assert "frame-ancestors 'self'" in policy
        assert headers["X-DNS-Prefetch-Control"] == "off"
        assert "Evil" in body
        assert not re.search("<(?:link|meta|base|i?frame|object|embed)[ />]", body, re.IGNORECASE)
    for bad in ("place=0", "place=99&side=left", "place=x&side=left", "side=left", "place=0&side=top"):
        status, _, headers = server.ask("GET", f"/page?{bad}")
        assert status == 404
        assert "sandbox" in headers["Content-Security-Policy"]
    assert server.ask("GET", "/page?place=0&side=left", Sec_Fetch_Site="cross-site")[0] == 403


def test_a_text_is_sent_as_a_text(tmp_path: Path) -> None:
    lines = [" ".join(words(3, 200)), "<script>window.hurt=5</script> caf\u00e9 "]
    texts = [Page(f"https://evil.example/{i}.txt", (" ".join(lines) + str(i)).encode(), "text/plain") for i in (1, 2)]
    running = Server(tmp_path / "labels.jsonl", more=texts)
    try:
        place = next(i for i, pair in enumerate(running.pairs) if running.urls[pair.a].endswith(".txt"))
        status, body, headers = running.ask("GET", f"/page?place={place}&side=left")
        assert (status, headers["Content-Type"]) == (200, "text/plain; charset=utf-8")
        assert body == " ".join(lines) + "1"
    finally:
        running.close()


def test_criteria_and_a_key_for_every_reason_are_at_hand(server: Server) -> None:
    assert set(JUDGEMENTS) == set(REASONS)
    assert set(MEANINGS) == set(Reason)
    for judgement, reasons in REASONS.items():
        keys = [KEYS[judgement][reason] for reason in reasons]
        assert len(set(keys)) == len(keys)
        assert all(len(key) == 1 and key not in TAKEN for key in keys)
    for path in ("/", "/pair?labeller=ana"):
        text = html.unescape(server.ask("GET", path)[1])
        for expected in (*JUDGEMENTS.values(), *MEANINGS.values()):
            assert expected in text


def test_options_are_checked_before_a_crawl_is_read(tmp_path: Path) -> None:
    held = LabelFile(tmp_path / "held")
    wrong = [
        ({"rule": "D"}, "rule 'D'"),
        ({"by": "luck"}, "strata 'luck'"),
        ({"by": "site"}, "has strata"),
        ({"count": 0}, "at least one"),
        ({"queries": True, "state": tmp_path / "state"}, "instead of --state"),
    ]
    wrong += [({"audits": [tmp_path / "none"]}, "cannot read the audit"), ({"labels": tmp_path / "held"}, "in use")]
    for options, values in wrong:
        with pytest.raises(BadInput, match=values):  # and not that the crawl is missing
            label_command([tmp_path / "nowhere"], **{"labels": tmp_path / "labels", **options})
    held.close()


def test_views_can_be_mounted_under_a_prefix(tmp_path: Path) -> None:
    running = Server(tmp_path / "labels.jsonl", prefix="/label")
    try:
        assert 'href="/label/label.css"' in running.ask("GET", "/")[1]
        assert 'src="/label/page?place=0' in running.ask("GET", "/pair?labeller=ana")[1]
        assert running.ask("GET", "/page?place=0&side=left")[0] == 200
        assert running.ask("GET", "/label.js")[0] == 200
        status, _, headers = running.ask("POST", "/label", form(running))
        assert (status, headers["Location"]) == (303, "/label/pair?labeller=ana&after=0")
    finally:
        running.close()


def test_a_file_in_use_is_not_shared_and_a_torn_line_is_cut(server: Server, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="in use"):
        LabelFile(tmp_path / "labels.jsonl")
    server.ask("POST", "/label", form(server))
    whole = (tmp_path / "labels.jsonl").read_bytes()
    torn = tmp_path / "torn.jsonl"
    torn.write_bytes(whole + whole[:40])
    file = LabelFile(torn)
    assert (len(file.labels), len(file.messages), torn.read_bytes()) == (1, 1, whole)
    file.close()
    torn.write_bytes(whole[:-1])
    file = LabelFile(torn)
    assert (len(file.labels), file.messages) == (1, [])
    file.append(whole)
    file.close()
    assert torn.read_bytes() == whole * 2
    torn.write_bytes(b"nonsense\n" + whole)
    with pytest.raises(BadInput, match=r"torn\.jsonl:1"):
        LabelFile(torn)
    for place in (tmp_path, Path("/dev/zero")):
        with pytest.raises(BadInput, match="cannot write"):
            LabelFile(place)


RUN = """
import sys
from pathlib import Path
from streams.evaluation.label import label_command
label_command([sys.argv[1]], labels=Path(sys.argv[2]), base_url="https://m.example/", port=0, count=3,
              queries=len(sys.argv) > 3, ready=lambda url: print(url, flush=True))
"""


@contextmanager
def serving(*given: Path | str) -> Iterator[http.client.HTTPConnection]:
    """The command in a process of its own, which ends by a signal and writes nothing to stderr."""
    command = [sys.executable, "-c", RUN, *map(str, given)]
    with processes.start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        url = process.stdout.readline().strip()
        try:
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", url), process.stderr.read()
            connection = http.client.HTTPConnection(url.split("/")[2], timeout=30)
            yield connection
            connection.close()
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
        finally:
            process.kill()
        assert process.stderr.read() == ""


@pytest.mark.slow
def test_the_command_serves_until_it_is_stopped(tmp_path: Path) -> None:
    for one in manual(items=3, sites=("m.example",)):
        path = tmp_path / "site" / one.url.split("/", 3)[3]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(one.body or b"")
    with serving(tmp_path / "site", tmp_path / "labels.jsonl") as connection:
        connection.request("GET", "/pair?labeller=ana")
        assert connection.getresponse().status == 200


@pytest.mark.slow
def test_all_pairs_of_the_results_of_a_query_are_served_with_it(tmp_path: Path) -> None:
    """Three results of one query are three pairs; a query with one result gives none."""
    found = {"wool <b>": manual(items=3)[:3], "alone": manual(items=4)[3:4]}
    lines = [
        {"query": query, "url": one.url, "body": (one.body or b"").decode(), "content_type": "text/html"}
        for query, pages in found.items()
        for one in pages
    ]
    for line in lines[:3]:
        line["rendered"] = "<script src=x></script><a href='http://b.example/'>as a browser shows it é</a>"
    (tmp_path / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with serving(tmp_path / "results.jsonl", tmp_path / "labels.jsonl", "queries") as connection:
        connection.request("GET", "/pair?labeller=ana")
        shown = connection.getresponse().read().decode()
        connection.request("GET", "/page?place=0&side=left")
        framed = connection.getresponse().read().decode()
    assert "as a browser shows it é" in framed
    assert "<a href=# " in framed, "a link leads nowhere, as in a fetched page"
    assert "Pair 1 of 3" in shown
    assert 'Query: <strong dir="auto">wool &lt;b&gt;</strong>' in shown
    assert "the same content for the query" in shown


def arrived(view: Any, number: int) -> None:
    """The pair is shown, and its script listens: a key pressed before would be lost."""
    view.get_by_role("heading", name=f"Pair {number} of 5", exact=True).wait_for()
    view.locator("form#judge[data-ready]").wait_for()


@pytest.mark.whole
def test_a_person_labels_with_the_keyboard(browser: Any, server: Server, tmp_path: Path) -> None:
    complaints: list[str] = []
    refused: list[str] = []
    requests: list[str] = []
    labels = tmp_path / "labels.jsonl"

    def heard(message: Any) -> None:
        """A frame must complain of what its page tried; the page around it never."""
        places = "/page?", f":{server.canary.getsockname()[1]}"
        framed = any(place in message.location["url"] + message.text for place in places)
        (refused if framed else complaints).append(message.text)

    view = browser.new_page(viewport={"width": 1200, "height": 900})
    view.on("console", heard)
    view.on("pageerror", lambda error: complaints.append(str(error)))
    view.on("request", lambda request: requests.append(request.url))
    view.goto(f"http://{server.host}/")
    view.fill("#labeller", "Ana Zoë")
    view.press("#labeller", "Enter")
    view.wait_for_url("**/pair?labeller=Ana*")
    arrived(view, 1)
    assert view.locator("del").first.is_visible()
    assert "window.hurt=3" in view.locator(".row").first.inner_text()  # shown as text
    assert view.locator("#save").is_disabled()
    assert not view.locator('fieldset[data-for="correct"]').is_visible()

    view.keyboard.press("a")  # takes the draft: a visitor's number differs
    assert view.locator('input[value="visitor_count"]').is_checked()
    view.keyboard.press("Enter")
    arrived(view, 2)
    view.keyboard.press("n")
    assert view.locator('fieldset[data-for="incorrect"]').is_visible()
    view.keyboard.press("1")
    view.keyboard.press("Enter")
    arrived(view, 3)
    view.keyboard.press("s")
    arrived(view, 4)
    values = [(label.label, label.reasons, label.labeller) for label in read_labels(labels)]
    assert values == [("correct", ("visitor_count",), "Ana Zoë"), ("incorrect", ("main_item",), "Ana Zoë")]

    view.keyboard.press("z")
    arrived(view, 2)
    assert len(read_labels(labels)) == 1
    view.keyboard.press("u")
    view.click("#save")
    arrived(view, 3)
    view.goto(f"http://{server.host}/pair?labeller=Ana%20Zo%C3%AB&place=0")
    assert view.locator('input[value="correct"]').is_checked()  # the earlier label is shown
    view.click("#whole summary")
    assert view.locator("#whole .whole").first.is_visible()
    view.click("#token-diff summary")
    assert view.locator("#token-diff del").first.is_visible()
    for width in (360, 1200):
        view.set_viewport_size({"width": width, "height": 800})
        assert view.evaluate("document.documentElement.scrollWidth") <= width
    assert view.evaluate("window.hurt") is None
    assert view.locator("img, object, article script, iframe:not([sandbox=''])").count() == 0

    bob = browser.new_context(java_script_enabled=False).new_page()  # forms work without the script
    bob.goto(f"http://{server.host}/pair?labeller=bob")
    bob.check('input[value="incorrect"]')
    bob.click("#save")
    assert bob.locator("h1").inner_text() == "Pair 2 of 5"
    bob.goto(f"http://{server.host}/")
    assert "Ana Zoë, bob" in bob.locator("#agreement").inner_text()
    bob.context.close()
    view.close()
    assert complaints == []
    assert refused
    assert server.nobody_came()
    own = [url for url in requests if url.startswith(f"http://{server.host}/")]
    assert {f"http://{server.host}/page?place=0&side={side}" for side in ("left", "right")} <= set(own)


@pytest.mark.whole
def test_pages_are_seen_as_by_a_visitor_and_reach_nothing(browser: Any, server: Server) -> None:
    view = browser.new_page(viewport={"width": 1200, "height": 900})
    view.goto(f"http://{server.host}/pair?labeller=ana&place=0")
    view.locator("form#judge[data-ready]").wait_for()
    for frame in view.frames[1:3]:
        frame.locator("text=a link").wait_for()
        assert frame.locator("h1").inner_text() == "Evil <b>"
        assert frame.locator("h1").evaluate("h => getComputedStyle(h).fontWeight") == "700", "a heading, not a text"
        frame.wait_for_load_state("load")  # of all that it names; a frame on a busy machine may never be told idle
    assert view.locator("#visitor iframe").first.is_visible()
    assert view.locator(".words").first.bounding_box()["y"] < view.locator("#visitor").bounding_box()["y"]  # type: ignore[index]
    for choice in ("duplicates d", "not duplicates n", "undecided u"):
        assert view.locator("#judge").get_by_text(choice).first.is_visible()

    # A click into a frame goes nowhere, and takes no keys along.
    view.evaluate("addEventListener('blur', () => { window.left = true })")
    link = view.frames[1].locator("text=a link")
    link.scroll_into_view_if_needed()
    view.mouse.click(*_middle(link))
    view.wait_for_function("() => window.left && document.activeElement === document.body")
    view.focus("#visitor summary")
    view.keyboard.press("Tab")
    assert view.evaluate("document.activeElement.tagName") not in ("IFRAME", "BODY"), "keys pass the frames by"
    for key, judgement in (("d", "correct"), ("u", "undecided"), ("n", "incorrect")):
        view.keyboard.press(key)
        assert view.locator(f'input[value="{judgement}"]').is_checked()
    assert view.url == f"http://{server.host}/pair?labeller=ana&place=0"
    assert all(server.host in frame.url for frame in view.frames[1:3])

    # Nor does a click on what the page made live again, with whatever button.
    live = view.frames[1].get_by_text("live", exact=True).all() + view.frames[1].locator("img[usemap]").all()
    assert len(live) == 8
    for link in live:
        for button in ("left", "middle"):
            link.scroll_into_view_if_needed()
            view.mouse.click(*_middle(link), button=button)
    assert view.frames[1].get_by_text("No link").evaluate("a => a.matches(':any-link')") is False
    assert view.frames[1].locator("text=a link").evaluate("a => a.matches(':any-link')"), "it looks like one"
    view.goto(view.url)  # what was on its way has come
    for name, reasons in REASONS.items():
        view.keyboard.press(NAMES[name][0])
        for reason in reasons:
            box = view.locator(f'fieldset[data-for="{name}"] input[value="{reason}"]')
            assert box.is_visible()
            view.keyboard.press(KEYS[name][reason])
            assert box.is_checked(), reason

    view.keyboard.press("v")
    assert not view.locator("#visitor iframe").first.is_visible()
    view.keyboard.press("?")
    assert view.get_by_text(MEANINGS[Reason.OWN_URL]).is_visible()
    view.keyboard.press("s")
    view.wait_for_url("**after=0")
    view.locator("form#judge[data-ready]").wait_for()
    assert not view.locator("#visitor iframe").first.is_visible(), "what is folded stays folded"

    alone = browser.new_page()  # opened outside its frame it is as harmless
    alone.goto(f"http://{server.host}/page?place=0&side=left")
    alone.wait_for_load_state("networkidle")
    assert alone.locator("h1").inner_text() == "Evil <b>"
    assert alone.evaluate("[window.hurt, window.origin]") == [None, "null"]
    view.close()
    assert server.nobody_came()


def _middle(locator: Any) -> tuple[float, float]:
    box = locator.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_a_port_that_is_taken_is_reported_before_the_crawl_is_read(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(BadInput, match="cannot listen"):
            label_command([tmp_path / "none"], labels=tmp_path / "labels", port=taken.getsockname()[1])


def test_pairs_of_the_rule_in_use_come_closest_to_its_threshold_first(tmp_path: Path) -> None:
    """Documents of 200 words, of which another number is replaced in each copy."""
    texts = [[f"w{item}x{n}" for n in range(200)] for item in range(12)]
    rows = [(f"doc {item}", texts[item]) for item in range(12)]
    rows += [
        (f"copy {item}", [f"e{n}" if n < 6 * item else w for n, w in enumerate(texts[item])]) for item in range(12)
    ]
    lines = [json.dumps({"id": name, "text": " ".join(text)}) for name, text in rows]
    (tmp_path / "docs.jsonl").write_text("\n".join(lines))
    with ScanDirectory.open(
        tmp_path / "state", scheme=Scheme(seed=7), decider=lambda scheme: Decider(scheme.digest, rule="tape")
    ) as state:
        scan([tmp_path / "docs.jsonl"], state)
        verdicts = list(state.verdicts())
    scored = {}
    for verdict in verdicts:
        evidence = verdict["evidence"].get("nearest") or verdict["evidence"]
        if (above := margin(evidence)) is not None and id_of(verdict["url"]) != "copy 0":
            scored[id_of(verdict["url"])] = abs(above)
    with open_crawl(state=tmp_path / "state") as crawl:
        pairs = draw_of_verdicts(judged(crawl.corpus.records, crawl.decider), crawl.corpus, 100)
        few = draw_of_verdicts(judged(crawl.corpus.records, crawl.decider), crawl.corpus, 3)
        names = [(id_of(crawl.corpus.urls[pair.a]), id_of(crawl.corpus.urls[pair.b])) for pair in pairs]
        with pytest.raises(BadInput, match="compared no page"):
            draw_of_verdicts([], crawl.corpus, 5)
    assert [copy for _, copy in names] == sorted(scored, key=lambda name: scored[name])
    assert all(one.split()[1] == other.split()[1] for one, other in names if one and other)
    assert (few, len(pairs) > 6) == (pairs[:3], True)
