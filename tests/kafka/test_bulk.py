"""A search engine's documents in step with the verdicts, over crashes and an engine that is busy.

The engine is a stand-in that does what the documentation of `_bulk` says of update, upsert and delete.
"""

import importlib.util
import json
import random
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import orjson
import pytest
from confluent_kafka import Producer
from test_fulltext import shown, story

from streams.client import duplicate_of
from streams.config.settings import Topics

SCRIPT = Path(__file__).parents[2] / "deploy" / "walks" / "bulk.py"


@pytest.fixture
def bulk(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("bulk", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "WAIT_SECONDS", 0.0)
    monkeypatch.setattr(module, "BATCH", 50)
    return module


class Documents:
    """Indices by name. busy: the share of requests, and of items, that are answered with 429."""

    def __init__(self) -> None:
        self.indices: dict[str, dict[str, dict[str, Any]]] = {}
        self.busy, self.refuse = 0.0, ""
        chance, documents = random.Random(5), self

        class Handler(BaseHTTPRequestHandler):
            def _answer(self, status: int, text: Any) -> None:
                body = json.dumps(text).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def _place(self) -> tuple[dict[str, dict[str, Any]], str]:
                index, _, document = self.path.strip("/").split("/")
                return documents.indices.setdefault(index, {}), document

            def do_GET(self) -> None:
                index, document = self._place()
                found = document in index
                self._answer(200 if found else 404, {"found": found, **({"_source": index[document]} if found else {})})

            def _body(self) -> bytes:
                return self.rfile.read(int(self.headers["Content-Length"]))

            def do_PUT(self) -> None:
                index, document = self._place()
                index[document] = json.loads(self._body())
                self._answer(201, {"result": "created"})

            def do_POST(self) -> None:
                lines = iter(self._body().decode().splitlines())
                if chance.random() < documents.busy:
                    self._answer(429, {"error": "too many requests"})
                    return
                index = documents.indices.setdefault(self.path.strip("/").partition("/")[0], {})
                items = [self._item(index, json.loads(line), lines) for line in lines]
                self._answer(200, {"errors": any("error" in next(iter(i.values())) for i in items), "items": items})

            def _item(self, index: dict[str, dict[str, Any]], action: dict[str, Any], lines: Iterator[str]) -> Any:
                ((kind, place),) = action.items()
                given = json.loads(next(lines)) if kind == "update" else {}
                document, text = place["_id"], {"_id": place["_id"]}
                if documents.refuse and given.get("doc", {}).get("url") == documents.refuse:
                    return {kind: {**text, "status": 400, "error": {"type": "mapper_parsing_exception"}}}
                if chance.random() < documents.busy:
                    return {kind: {**text, "status": 429, "error": {"type": "es_rejected_execution_exception"}}}
                if kind == "delete":
                    return {kind: {**text, "status": 200 if index.pop(document, None) else 404}}
                assert given["doc_as_upsert"]
                index.setdefault(document, {}).update(given["doc"])
                return {kind: {**text, "status": 200}}

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def documents() -> Iterator[Documents]:
    made = Documents()
    yield made
    made.close()


class Crash(Exception):
    pass


def test_bulk_index_follows_verdicts_under_failures(
    broker: str, made: Topics, bulk: ModuleType, documents: Documents, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdicts = story()
    producer = Producer({"bootstrap.servers": broker})
    for verdict in verdicts:
        producer.produce(made.verdicts, orjson.dumps(verdict), verdict["url"].encode())
    assert producer.flush(60) == 0
    command = [broker, made.verdicts, documents.url, "pages", "--once"]
    ask, left = bulk.SearchIndex._ask, iter(())

    def mortal(self: Any, *given: Any, **more: Any) -> Any:
        if next(left, None) is None:
            raise Crash
        return ask(self, *given, **more)

    monkeypatch.setattr(bulk.SearchIndex, "_ask", mortal)
    documents.busy = 0.1
    chance, crashes = random.Random(3), 0
    for requests in [*(chance.randint(2, 9) for _ in range(4)), 10_000]:
        left = iter(range(requests))
        try:
            assert bulk.main(command) == 0
        except Crash:
            crashes += 1
    assert crashes >= 2

    found = documents.indices["pages"]
    expected = shown(verdicts)
    assert {document["url"] for document in found.values() if document["shown"]} == expected
    last = {verdict["url"]: verdict for verdict in verdicts}
    instead = {url: duplicate_of(verdict) for url, verdict in last.items() if verdict["verdict"] != "gone"}
    assert len(instead) < len(last)
    assert {document["url"]: document["representative"] for document in found.values()} == instead
    assert sum(documents.indices["pages-positions"]["verdicts"].values()) >= len(verdicts)


def test_a_document_that_is_refused_stops_it_before_its_place_is_stored(
    broker: str, made: Topics, bulk: ModuleType, documents: Documents, capsys: pytest.CaptureFixture[str]
) -> None:
    verdict = story()[0]
    producer = Producer({"bootstrap.servers": broker})
    producer.produce(made.verdicts, orjson.dumps(verdict), verdict["url"].encode())
    assert producer.flush(60) == 0
    documents.refuse = verdict["url"]
    assert bulk.main([broker, made.verdicts, documents.url, "pages", "--once"]) == 1
    assert f"error: pages: update of {verdict['url']}" in capsys.readouterr().err
    assert "verdicts" not in documents.indices.get("pages-positions", {})
