"""The Scrapy middlewares without a broker: start, warnings while `neardup ask` is away, filter by URL patterns."""

import json
import logging
import os
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from neardup.errors import BadInput
from streams.client import PageProducer
from streams.errors import NoAnswer

if find_spec("scrapy") is None:  # it is not imported here: each worker would, for half a second
    pytest.skip("scrapy is not installed", allow_module_level=True)

#: Nothing listens there.
NOWHERE = "127.0.0.1:1"
SPIDER = Path("deploy/walks/spider.py").resolve()
#: A crawl whose broker is away; it waits for 0.2 s.
CRAWL = f"""
import sys, streams.client
streams.client.START_SECONDS_MAX = 0.2
sys.argv = ["scrapy", "runspider", {str(SPIDER)!r}, "-L", "WARNING", "-s", "NEARDUP_BOOTSTRAP={NOWHERE}",
            "-a", "url=http://{NOWHERE}/"]
from scrapy.cmdline import execute
execute()
"""


def test_page_producer_without_a_broker_fails_within_its_start_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.client.START_SECONDS_MAX", 0.2)
    with pytest.raises(NoAnswer, match="no broker can be reached"):
        PageProducer(NOWHERE)


def test_crawl_without_a_broker_ends_with_one_sentence(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", CRAWL], cwd=tmp_path, env=dict(os.environ), capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    (line,) = ended.stderr.splitlines()
    assert f"the crawl does not start: Kafka at {NOWHERE}" in line


def test_ask_that_is_away_is_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    from streams.scrapy import UnansweredLog

    now = 100.0
    unanswered = UnansweredLog(lambda: now)
    with caplog.at_level(logging.WARNING):
        for second in range(130):
            now = 100.0 + second
            unanswered.add(f"http://a.example/{second}", OSError("Connection refused"))
    assert [record.getMessage() for record in caplog.records] == [
        "no answer for http://a.example/0: Connection refused; pages without an answer reach the spider, and are "
        "logged once a minute",
        "no answer for http://a.example/60: Connection refused; nor for 59 pages since the last warning",
        "no answer for http://a.example/120: Connection refused; nor for 59 pages since the last warning",
    ]


def test_patterns_middleware_drops_requests_of_repeating_urls(tmp_path: Path) -> None:
    from scrapy import Request
    from scrapy.exceptions import IgnoreRequest, NotConfigured
    from scrapy.settings import Settings

    from streams.scrapy import PatternsMiddleware

    counts: Counter[str] = Counter()

    def middleware(**settings: Any) -> PatternsMiddleware:
        stats = SimpleNamespace(inc_value=lambda name: counts.update([name]))
        return PatternsMiddleware.from_crawler(cast(Any, SimpleNamespace(settings=Settings(settings), stats=stats)))

    row = {"site": "a.example", "pattern": "?sort=", "pages": 50, "repeats": 49, "share": 0.98}
    kept = tmp_path / "patterns.json"
    kept.write_text(json.dumps({"patterns": [row]}))
    url = "http://a.example/list?sort=price"
    made = middleware(NEARDUP_PATTERNS=str(kept))
    with pytest.raises(IgnoreRequest, match=r"\?sort="):
        made.process_request(Request(url))
    made.process_request(Request("http://a.example/list"))
    made.process_request(Request(url, meta={"neardup_skip": False}))
    assert counts == {"neardup/skipped/pattern": 1}
    middleware(NEARDUP_PATTERNS=str(kept), NEARDUP_PATTERNS_SHARE=0.99).process_request(Request(url))
    middleware(NEARDUP_PATTERNS=str(kept), NEARDUP_PATTERNS_PAGES=51).process_request(Request(url))
    with pytest.raises(NotConfigured):
        middleware()
    with pytest.raises(BadInput, match=r"NEARDUP_PATTERNS: .*none\.json"):
        middleware(NEARDUP_PATTERNS=str(tmp_path / "none.json"))
