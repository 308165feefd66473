"""The description of the JSON twins, held against what they take and answer."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import orjson
import pytest

pytest.importorskip("aiohttp", reason="aiohttp is not installed")

from aiohttp import web

from streams.views.audits import AuditedPairs
from streams.views.openapi import TWINS
from streams.views.source import ScanSource
from streams.views.web import Views
from tests.streams.shell import Shell, site
from tests.streams.views.random_verdicts import DECIDER, Held
from tests.streams.views.test_views_audits import line
from tests.streams.views.test_views_web import Server

A, B = ("https://a.example/a.html", "https://a.example/b.html")
ASKED = {
    "overview": "", "url": f"?url={B}", "cluster": "?id=0", "site": "?name=a.example", "sites": "?page=1",
    "patterns": "?site=a.example",
    "clusters": "?page=1", "kind": "?name=near_duplicate&page=1", "search": "?text=html",
    "compare": f"?a={A}&b={B}&shown=3", "close": "", "rejects": "", "health": "", "audits": "?page=1",
}  # fmt: skip


@pytest.fixture
def server(shell: Shell, tmp_path: Path) -> Iterator[Server]:
    site(tmp_path / "site")
    assert shell("scan", "site", "--base-url", "https://a.example/").code == 0
    audits = AuditedPairs()
    audits.take(line(A, B))
    made = Server(ScanSource(tmp_path / "neardup-state", audits))
    yield made
    made.close()


def test_every_answer_is_as_described(server: Server) -> None:
    described: dict[str, Any] = orjson.loads(server.get("/openapi.json")[2])
    assert described["paths"].keys() == {f"/{name}.json" for name in ASKED}
    for name, query in ASKED.items():
        status, _, text = server.get(f"/{name}.json{query}")
        schema = described["paths"][f"/{name}.json"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        answer = orjson.loads(text)
        assert status == 200
        jsonschema.validate(answer, schema)
        assert answer.keys() == schema["properties"].keys(), name
        assert set(re.findall(r"[?&](\w+)=", query)) <= TWINS[name].takes.keys()


def test_no_twin_is_left_out() -> None:
    app = web.Application()
    Views(Held([]), DECIDER, hosts=()).add_to(app)
    routes = {route.resource.canonical for route in app.router.routes() if route.resource is not None}
    twins = {path for path in routes if path.endswith(".json")} - {
        "/openapi.json",
        "/own.json",
        "/own-rows.json",
        "/own-search.json",
    }
    assert twins == {f"/{name}.json" for name in TWINS}
