"""The Scrapy middleware without a broker: its start, and its warnings while `neardup ask` is away."""

import logging
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

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
