"""Requests of one views worker to another: no host that the group merely names gets the token."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

from streams.errors import BrokerError
from streams.views import peers
from streams.views.peers import SIGNED_SECONDS_MAX, Peers, Signer
from tests.streams.views.random_verdicts import Held, random_verdicts
from tests.streams.views.test_views_web import TOKEN, Server

#: The source here has no tables: an admitted request gets this answer.
ROWS, MAY = "/own-rows.json?table=none&key=x", 404


class Listening(BaseHTTPRequestHandler):
    """A member of the group that only wants to know what it is sent."""

    heard: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.heard.append(f"{self.requestline}\n{self.headers}")
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"[]")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def stranger() -> Iterator[str]:
    Listening.heard.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Listening)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def worker() -> Iterator[Server]:
    server = Server(Held(random_verdicts(10, 2)), token=TOKEN, names=["other.example:8379"])
    yield server
    server.close()


def test_a_host_that_a_member_names_gets_no_token_and_nothing_to_use_elsewhere(stranger: str, worker: Server) -> None:
    Peers("http://me.example", TOKEN).rows(stranger, [0], "none", "x")
    (heard,) = Listening.heard
    assert TOKEN not in heard
    (signature,) = [line.partition(": ")[2] for line in heard.splitlines() if line.startswith("Authorization")]
    assert worker.get(ROWS, Authorization=signature)[0] == 401  # made for the stranger's host
    assert worker.get("/overview.json", Authorization=signature)[0] == 401


def test_workers_with_one_token_answer_each_other(worker: Server) -> None:
    for token, status in ((TOKEN, MAY), ("another-token-0123", 401), (None, 401)):
        with pytest.raises(BrokerError, match=f"HTTP status {status}"):
            Peers("http://me.example", token).rows(worker.url, [0], "none", "x")


def test_a_signature_is_for_one_request_and_some_minutes(worker: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    host, signer = worker.url.split("/")[2], Signer(TOKEN)
    good = signer.header(host, ROWS)
    assert worker.get(ROWS, Authorization=good)[0] == MAY
    for path in ("/own-rows.json?table=none&key=y", "/own.json", "/", "/overview.json"):
        assert worker.get(path, Authorization=good)[0] == 401
    assert worker.get(ROWS, Host="other.example:8379", Authorization=good)[0] == 401
    for wrong in (good[:-1], f"{good}0", good.replace(":", ":0"), "Neardup-Worker", "Neardup-Worker 1:x"):
        assert worker.get(ROWS, Authorization=wrong)[0] == 401
    for page in ("/", "/overview.json"):  # a signature opens no page of a person
        assert worker.get(page, Authorization=signer.header(host, page))[0] == 401
    now = peers.time.time()
    for apart in (-SIGNED_SECONDS_MAX - 60, SIGNED_SECONDS_MAX + 60):
        with monkeypatch.context() as patched:
            patched.setattr(peers.time, "time", lambda apart=apart: now + apart)
            late = signer.header(host, ROWS)
        assert worker.get(ROWS, Authorization=late)[0] == 401
