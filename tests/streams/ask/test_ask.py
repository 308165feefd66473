"""`neardup ask`: the verdict that adding a page would give, from the index of a directory that is in use."""

import asyncio
import json
import shutil
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson
import pytest

import neardup
from neardup.errors import StateError
from neardup.page import Page
from streams.ask import answers, http_service
from streams.ask.answers import IndexSnapshot
from streams.process import web_server
from tests.streams.archives import html, text
from tests.streams.shell import Shell

TOKEN = "a-token-of-16-letters"


def page(number: int, words: str = "") -> Page:
    return Page(f"http://a.example/{number}.html", html(f"Page {number}", text(number) + words))


@contextmanager
def serving(directory: Path, token: str | None = None, names: Sequence[str] = ()) -> Iterator[str]:
    """The service in a thread -> its URL."""
    sock = socket.create_server(("127.0.0.1", 0))
    url: list[str] = []
    started = threading.Event()
    index = IndexSnapshot(directory)
    stop, loop = asyncio.Event(), asyncio.new_event_loop()

    def ready(at: str) -> None:
        url.append(at)
        started.set()

    thread = threading.Thread(
        target=loop.run_until_complete, args=(http_service.serve(index, sock, token, ready, stop.wait(), names=names),)
    )
    thread.start()
    try:
        assert started.wait(30)
        yield url[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()
        index.close()
        sock.close()


def post(url: str, body: Any, token: str = "", more: Mapping[str, str] | None = None) -> tuple[int, dict[str, Any]]:
    """more: further headers."""
    data = body if isinstance(body, bytes) else orjson.dumps(body)
    headers = ({"Authorization": f"Bearer {token}"} if token else {}) | dict(more or {})
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=30) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def as_json(asked: Page) -> dict[str, Any]:
    return {"url": asked.url, "body": (asked.body or b"").decode()}


def test_answer_equals_adding_and_follows_each_flush(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "CATCH_UP_S", 0)
    with neardup.open_index(tmp_path / "state") as index:
        index.add([page(number) for number in range(20)])
        index.flush()
        with serving(tmp_path / "state") as url:
            for asked in (
                page(3),
                page(3, " and three more words"),
                page(500),
                Page("http://b.example/", page(4).body),
            ):
                code, answer = post(url, as_json(asked))
                expected = index.query(asked).to_dict()
                assert (code, answer["verdict"]["verdict"]) == (200, expected["verdict"])
                for name in ("url", "title", "representative", "evidence", "standing", "cluster_size"):
                    assert answer["verdict"].get(name) == expected.get(name), name
            assert answer["index"]["messages"] == 1
            assert post(url, as_json(page(500)))[1]["verdict"]["verdict"] == "unique", "asking adds nothing"
            index.add([page(500)])
            assert post(url, as_json(Page("http://b.example/", page(500).body)))[1]["index"]["messages"] == 1
            index.flush()
            answer = post(url, as_json(Page("http://b.example/", page(500).body)))[1]
            assert (answer["verdict"]["verdict"], answer["index"]["messages"]) == ("exact_duplicate", 2)
            with urllib.request.urlopen(url.replace("/ask", "/metrics"), timeout=30) as metrics:
                assert 'neardup_ask_verdicts_total{verdict="exact_duplicate"} 2.0' in metrics.read().decode()


@pytest.mark.parametrize("log", [True, False])
def test_front_page_names_the_age_of_the_index_and_the_option_for_it(tmp_path: Path, log: bool) -> None:
    with neardup.open_index(tmp_path / "state") as index:
        index.add([page(1)])
    if not log:  # as in the directory of a matcher, whose log is a topic
        shutil.rmtree(tmp_path / "state" / "log")
    with serving(tmp_path / "state", TOKEN) as url:
        front = url.removesuffix("ask")
        with urllib.request.urlopen(front, timeout=30) as answer:
            told = json.loads(answer.read())
        foreign = urllib.request.Request(front, headers={"Host": "rebound.example"})
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(foreign, timeout=30)
        answered = post(url, as_json(page(1)), TOKEN)[1]["index"]
    assert told["ask"].startswith("POST /ask")
    assert told["index"].keys() == answered.keys()
    assert (told["index"]["messages"], told["index"]["log_time"]) == (answered["messages"], answered["log_time"])
    assert 0 <= told["index"]["age_s"] <= answered["age_s"]
    assert ("--flush-ms" in told["flushes"]) is not log, told


def test_bad_questions_get_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with neardup.open_index(tmp_path / "state") as index:
        index.add([page(1)])
    good = as_json(page(1))
    with serving(tmp_path / "state", TOKEN) as url:
        assert post(url, good)[0] == 401
        assert post(url, good, "wrong")[0] == 401
        assert post(url, good, TOKEN)[0] == 200
        for body, words in [
            (b"{", "not JSON"),
            (b"[]", "not a JSON object"),
            ({"body": "x"}, "no url"),
            ({"url": "http://a.example/", "body_ref": "http://169.254.169.254/"}, "body_ref is not fetched"),
        ]:
            code, answer = post(url, body, TOKEN)
            assert (code, words in answer["error"]) == (400, True), answer
        code, answer = post(url, {"url": "no url", "body": "text"}, TOKEN)
        assert (code, answer["verdict"]["verdict"]) == (200, "rejected")
        size = index.scheme.body_bytes_max * 4 // 3 + (1 << 20)
        assert post(url, {"url": "http://a.example/", "body": "x" * size}, TOKEN)[0] == 413
        monkeypatch.setattr(http_service, "WAITING_MAX", 0)
        assert post(url, good, TOKEN)[0] == 503


def test_slow_bodies_hold_no_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later request replaces the oldest whose body is being read; a body that never ends is waited for in vain."""
    with neardup.open_index(tmp_path / "state") as index:
        index.add([page(1)])
    monkeypatch.setattr(http_service, "READING_MAX", 2)
    monkeypatch.setattr(http_service, "WAITING_MAX", 2)
    with serving(tmp_path / "state") as url, ExitStack() as held:
        address = urlsplit(url)

        def begin() -> socket.socket:
            """A request whose body never ends, once the service waits for that."""
            sock = held.enter_context(socket.create_connection((str(address.hostname), int(address.port or 0)), 30))
            head = f"POST /ask HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n"
            sock.sendall(head.encode())
            assert sock.recv(100).startswith(b"HTTP/1.1 100")
            sock.sendall(b"{")
            return sock

        slow = [begin() for _ in range(6)]
        assert [one.recv(12) for one in slow[:4]] == [b"HTTP/1.1 503"] * 4
        assert post(url, as_json(page(1)))[0] == 200
        assert slow[4].recv(12) == b"HTTP/1.1 503"
        monkeypatch.setattr(web_server, "BODY_SECONDS_MAX", 0.05)
        assert begin().recv(12) == b"HTTP/1.1 408"
        assert post(url, as_json(page(1)))[0] == 200


def test_requests_that_another_site_causes_are_refused(tmp_path: Path) -> None:
    with neardup.open_index(tmp_path / "state") as index:
        index.add([page(1)])
    good = as_json(page(1))
    with serving(tmp_path / "state", TOKEN, names=["ask.example"]) as url:
        for headers, code in (
            ({}, 200),
            ({"Host": "ask.example"}, 200),
            ({"Host": "rebound.example"}, 403),
            ({"Origin": "http://rebound.example"}, 403),
            ({"Sec-Fetch-Site": "cross-site"}, 403),
        ):
            assert post(url, good, TOKEN, headers)[0] == code, headers
        for path in ("/metrics", "/live", "/ready"):
            probe = urllib.request.Request(url.replace("/ask", path), headers={"Host": "rebound.example"})
            with pytest.raises(urllib.error.HTTPError, match="403"):
                urllib.request.urlopen(probe, timeout=30)


def test_index_replaced_by_a_restored_checkpoint_is_reopened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "CATCH_UP_S", 0)
    asked, path = Page("http://b.example/", page(1).body), tmp_path / "state" / "index"
    with neardup.open_index(tmp_path / "state"):
        pass
    shutil.copytree(tmp_path / "state", tmp_path / "other")
    for name, pages in (("state", range(2, 40)), ("other", range(3))):
        for number in pages:
            with neardup.open_index(tmp_path / name) as index:
                index.add([page(number)])
    ask = IndexSnapshot(tmp_path / "state")
    try:
        assert ask.query(asked).verdict.verdict == "unique"
        path.rename(tmp_path / "outlived")
        with pytest.raises(StateError):
            ask.query(asked)
        (tmp_path / "other" / "index").rename(path)
        assert ask.query(asked).verdict.verdict == "exact_duplicate"
    finally:
        ask.close()


def test_the_service_waits_for_the_first_index_if_configured(tmp_path: Path) -> None:
    command = [Path(sys.executable).parent / "neardup", "ask", str(tmp_path / "state"), "--port", "0", "--wait"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            assert process.poll() is None
            with neardup.open_index(tmp_path / "state") as index:
                index.add([page(1)])
            assert " s old: a scan flushes " in next(line for line in process.stderr if "the index is" in line)
            url = next(line for line in process.stderr if "serving" in line).split()[2].rstrip(",")
            assert post(url, as_json(page(1)))[1]["verdict"]["verdict"] == "unchanged"
        finally:
            process.terminate()
            assert process.wait(30) == 0


def test_a_directory_without_an_index_is_named(tmp_path: Path, shell: Shell) -> None:
    with pytest.raises(StateError, match=r"scheme\.json"):
        IndexSnapshot(tmp_path)
    ended = shell("ask", "nowhere")
    assert (ended.code, "nowhere" in ended.err) == (2, True)
    with neardup.open_index(tmp_path / "state") as index:
        index.add([page(1)])
    ended = shell("ask", str(tmp_path / "state"), "--host", "0.0.0.0")
    assert (ended.code, "NEARDUP_ASK_TOKEN" in ended.err) == (2, True)
