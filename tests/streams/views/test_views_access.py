"""Every page before axe-core: no violation, light and dark, wide and narrow. `make test-axe` fetches and runs it."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="aiohttp is not installed")

from streams.views.audited_pairs import AuditedPairs
from streams.views.source import ScanSource
from tests.streams.shell import Shell, site
from tests.streams.views.test_audited_pairs import line
from tests.streams.views.test_views_web import TOKEN, Server

#: `make test-axe` and `make test-all` fetch it with npm.
AXE = Path(__file__).parents[3] / "build" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
URL = "https://a.example/b.html"
PATHS = [
    "", f"url?url={URL}", "cluster?id=0", "site?name=a.example", "sites", "patterns", "close",
    "rejects", "health", "audits",
    f"compare?a={URL}&b=https://a.example/a.html", f"compare?a={URL}&b=https://a.example/c.html", "url?url=nowhere",
]  # fmt: skip


@pytest.mark.whole
def test_no_page_keeps_anybody_out(shell: Shell, tmp_path: Path, browser: Any) -> None:
    source = AXE.read_text(encoding="utf-8")
    site(tmp_path / "site")
    assert shell("scan", "site", "--base-url", "https://a.example/").code == 0
    audits = AuditedPairs()
    audits.take(line("https://a.example/a.html", URL))
    server = Server(ScanSource(tmp_path / "neardup-state", audits), token=TOKEN)
    try:
        for scheme, width in (("light", 1200), ("dark", 360)):
            page = browser.new_page(
                bypass_csp=True,
                color_scheme=scheme,
                viewport={"width": width, "height": 800},
                http_credentials={"username": "anybody", "password": TOKEN},
            )
            found = {f"{path} ({scheme})": _violations(page, server.url + path, source) for path in PATHS}
            assert {path: values for path, values in found.items() if values} == {}
            page.close()
    finally:
        server.close()


def _violations(page: Any, address: str, source: str) -> list[str]:
    page.goto(address)
    page.evaluate(source)
    for violation in (found := page.evaluate("axe.run()"))["violations"]:
        print(violation["id"], [node["html"] for node in violation["nodes"]])
    return [f"{one['impact']}: {one['help']}" for one in found["violations"]]
