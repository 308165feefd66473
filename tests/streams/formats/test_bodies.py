"""Bodies beside Kafka: only what lies under an allowed prefix is read, from any file system, never too much of it."""

import base64
import contextlib
import random
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar
from urllib.parse import unquote

import fsspec
import pytest
from fsspec import AbstractFileSystem

from neardup.errors import BadPage
from streams.errors import BodiesAway
from streams.formats.bodies import Bodies
from tests.fuzz.mutating import changed


@pytest.fixture
def stored() -> str:
    prefix = "memory://bodies/"
    with fsspec.open(prefix + "a/b.html", "wb") as file:
        file.write(b"<p>wool " * 100)
    return prefix


def test_a_body_elsewhere_is_read_up_to_its_bound(stored: str) -> None:
    assert Bodies([stored], 10_000).read(stored + "a/b.html") == b"<p>wool " * 100
    assert len(Bodies([stored], 10).read(stored + "a/b.html")) == 11  # one more tells that it was cut


@pytest.mark.parametrize(
    "url",
    [
        "memory://bodies/a/none.html",
        "memory://other/a/b.html",
        "memory://bodies/../bodies/a/b.html",
        "memory://bodies/%2e%2e/bodies/a/b.html",
        "simplecache::memory://bodies/a/b.html",
        "memory://bodies/a/b.html?versionId=1",
    ],
)
def test_forbidden_and_unreadable_bodies_are_reported(stored: str, url: str) -> None:
    with pytest.raises(BadPage, match="body-ref"):
        Bodies([stored], 10_000).read(url)


def test_a_scheme_that_nothing_reads_is_reported() -> None:
    with pytest.raises(BadPage, match="body-ref"):
        Bodies(["nothing://bodies/"], 10_000).read("nothing://bodies/a")


class Breaking(AbstractFileSystem):
    """A store whose client has errors of its own, as those of clouds do."""

    protocol = "breaking"

    def _open(self, path: str, *_: object, **__: object) -> None:
        class Disconnected(Exception):
            pass

        raise Disconnected("server disconnected")


def test_a_client_that_breaks_is_a_store_that_is_away() -> None:
    fsspec.register_implementation("breaking", Breaking, clobber=True)
    with pytest.raises(BodiesAway, match="server disconnected"):
        Bodies(["breaking://bodies/"], 100).read("breaking://bodies/a")


def test_a_link_does_not_lead_out_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "bodies").mkdir()
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "bodies" / "link").symlink_to(tmp_path / "secret")
    prefix = (tmp_path / "bodies").as_uri() + "/"
    with pytest.raises(BadPage, match="out of its prefix"):
        Bodies([prefix], 100).read(prefix + "link")


@pytest.mark.parametrize("hidden", [".\t.", ".\n.", "\r..", "%09..", ".%0a.", "\x00"])
def test_a_way_up_that_parsers_uncover_is_refused(hidden: str) -> None:
    prefix = "https://bodies.example/crawl/"
    with pytest.raises(BadPage, match="not under an allowed prefix"):
        Bodies([prefix], 100).read(f"{prefix}{hidden}/secret")


def test_a_link_leads_out_under_no_name_of_the_file_system(tmp_path: Path) -> None:
    (tmp_path / "bodies").mkdir()
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "bodies" / "link").symlink_to(tmp_path / "secret")
    prefix = f"local://{tmp_path}/bodies/"
    with pytest.raises(BadPage, match="out of its prefix"):
        Bodies([prefix], 100).read(prefix + "link")


#: Answers that are no HTTP, each under its name.
RAW_ANSWERS = {
    "bad-status-line": b"wool\r\n\r\n",
    "bad-status": b"HTTP/1.1 wool\r\n\r\n",
    "no-answer": b"",
    "long-line": b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000 + b"\r\n\r\n",
    "101-headers": b"HTTP/1.1 200 OK\r\n" + b"X: x\r\n" * 101 + b"\r\n",
    "bad-chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nwool\r\n",
    "cut-chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n99\r\nwool",
}


class Store(BaseHTTPRequestHandler):
    """Answers by what its path asks for."""

    asked: ClassVar[list[str]] = []

    authorizations: ClassVar[list[str | None]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.authorizations.append(self.headers["Authorization"])
        what = self.path.rsplit("/", 1)[-1]
        if what.startswith("neardup-"):
            self.send_error(404)
            return
        if what in RAW_ANSWERS:
            self.wfile.write(RAW_ANSWERS[what])
            return
        if what == "elsewhere":
            self.send_response(302)
            self.send_header("Location", "/secret/key")
            self.end_headers()
            return
        if what.isdigit():
            self.send_error(int(what))
            return
        body = b"<p>wool " * 100
        self.send_response(200)
        self.send_header("Content-Length", str(len(body) + (what == "cut")))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def web() -> Iterator[str]:
    Store.asked.clear()
    Store.authorizations.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Store)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/bodies/"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_body_of_the_web_is_read_up_to_its_bound(web: str) -> None:
    assert Bodies([web], 10_000).read(web + "a") == b"<p>wool " * 100
    assert len(Bodies([web], 10).read(web + "a")) == 11


def test_a_redirect_is_not_followed(web: str) -> None:
    with pytest.raises(BadPage, match="HTTP status 302"):
        Bodies([web], 100).read(web + "elsewhere")
    assert Store.asked == ["/bodies/elsewhere"]


@pytest.mark.parametrize("what", ["cut", *RAW_ANSWERS])
def test_a_broken_answer_is_no_answer(web: str, what: str) -> None:
    with pytest.raises(BodiesAway, match=what):
        Bodies([web], 10_000).read(web + what)


@pytest.mark.parametrize("rest", ["a b", "é", "a%0db", "\ud800", "a" * 300 + "/../" + "b"])
def test_a_url_that_http_cannot_send_is_rejected(web: str, rest: str) -> None:
    with pytest.raises(BadPage, match="body-ref"):
        Bodies([web], 10_000).read(web + rest)


def test_a_file_name_that_is_too_long_is_rejected(tmp_path: Path) -> None:
    prefix = tmp_path.as_uri() + "/"
    with pytest.raises(BadPage, match="too long"):
        Bodies([prefix], 100).read(prefix + "a" * 300)


def test_the_store_answers_for_another_object(web: str, stored: str, tmp_path: Path) -> None:
    folder = tmp_path.as_uri() + "/"
    for prefix in (web, stored, folder):
        assert Bodies([prefix], 100).answers(prefix + "500")
    assert Store.asked[0].startswith("/bodies/neardup-")


def test_a_store_that_is_down_answers_for_no_object() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/"
        assert not Bodies([url], 100).answers(url + "a")
    fsspec.register_implementation("breaking", Breaking, clobber=True)
    assert not Bodies(["breaking://bodies/"], 100).answers("breaking://bodies/a")


@pytest.mark.parametrize("password", ["wool", "w:l", "w%40l", "1234", "w ol", "w,l'\""])
@pytest.mark.parametrize("named", [False, True], ids=["url-without", "url-with"])
def test_the_credentials_of_a_prefix_are_sent_and_never_shown(web: str, password: str, named: bool) -> None:
    prefix = web.replace("://", f"://carder:{password}@")
    bodies, under = Bodies([prefix], 10_000), prefix if named else web
    assert bodies.read(under + "a") == b"<p>wool " * 100
    sent = base64.b64encode(f"carder:{unquote(password)}".encode()).decode()
    assert Store.authorizations == [f"Basic {sent}"]
    for what in ("500", "404", "302", "cut", "a b", "../a", *RAW_ANSWERS):
        with pytest.raises((BadPage, BodiesAway)) as caught:
            bodies.read(under + what)
        assert f"carder:{password}" not in str(caught.value)
        assert "carder" not in str(vars(caught.value))


def test_a_client_of_a_store_does_not_show_credentials() -> None:
    class Telling(Breaking):
        protocol = "telling"

        def _open(self, path: str, *_: object, **__: object) -> None:
            raise RuntimeError("cannot log in as carder:w ol@store, password w ol")

    fsspec.register_implementation("telling", Telling, clobber=True)
    with pytest.raises(BodiesAway) as caught:
        Bodies(["telling://carder:w ol@store/"], 100).read("telling://store/a")
    assert "w ol" not in str(caught.value)


def test_nothing_but_two_errors_leaves_under_any_answer(broken_store: tuple[str, list[bytes]]) -> None:
    prefix, answers = broken_store
    bodies, chance = Bodies([prefix], 1_000), random.Random(1)
    whole = [*RAW_ANSWERS.values(), b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwool", b"HTTP/1.1 100 \r\n\r\n" * 3]
    for _ in range(100):
        answers.append(changed(whole, chance))
        with contextlib.suppress(BadPage, BodiesAway):
            bodies.read(prefix + "a")


@pytest.fixture
def broken_store() -> Iterator[tuple[str, list[bytes]]]:
    """(prefix, answers): a server that sends the last of the answers to each request, and closes."""
    answers: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection, contextlib.suppress(OSError):
                    connection.recv(4096)
                    connection.sendall(answers[-1])

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/bodies/", answers
        listening.shutdown(socket.SHUT_RDWR)
    thread.join()


@pytest.mark.parametrize(
    ("status", "error"), [(404, BadPage), (403, BadPage), (500, BodiesAway), (503, BodiesAway), (429, BodiesAway)]
)
def test_missing_body_differs_from_an_unreachable_store(web: str, status: int, error: type[Exception]) -> None:
    with pytest.raises(error, match=str(status)):
        Bodies([web], 100).read(f"{web}{status}")


def test_a_store_that_is_down_is_away() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/"
        with pytest.raises(BodiesAway, match="does not answer"):
            Bodies([url], 100).read(url + "a")
