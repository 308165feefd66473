"""Bodies beside Kafka: only what lies under an allowed prefix is read, from any file system, never too much of it."""

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import fsspec
import pytest
from fsspec import AbstractFileSystem

from neardup.errors import BadPage
from streams.errors import BodiesAway
from streams.formats.bodies import Bodies


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
def test_what_may_not_or_cannot_be_read_is_told(stored: str, url: str) -> None:
    with pytest.raises(BadPage, match="body-ref"):
        Bodies([stored], 10_000).read(url)


def test_a_scheme_that_nothing_reads_is_told() -> None:
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


class Store(BaseHTTPRequestHandler):
    """Answers by what its path asks for."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        what = self.path.rsplit("/", 1)[-1]
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


def test_an_answer_that_is_always_cut_is_the_pages_own_fault(web: str) -> None:
    with pytest.raises(BadPage, match="cut off 3 times"):
        Bodies([web], 10_000).read(web + "cut")
    assert len(Store.asked) == 3


@pytest.mark.parametrize(("status", "error"), [(404, BadPage), (403, BadPage), (500, BodiesAway), (503, BodiesAway)])
def test_what_is_not_there_and_what_is_away_are_two_things(web: str, status: int, error: type[Exception]) -> None:
    with pytest.raises(error, match=str(status)):
        Bodies([web], 100).read(f"{web}{status}")


def test_a_store_that_is_down_is_away() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/"
        with pytest.raises(BodiesAway, match="does not answer"):
            Bodies([url], 100).read(url + "a")
