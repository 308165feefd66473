"""A real crawl, for a process of its own: it follows every link below a URL.

Says `waits N` while pages wait for room, and at the end the stats as one line of JSON.
"""

import gc
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.http import Response, TextResponse
from scrapy.utils.asyncio import create_looping_call


class Links(scrapy.Spider):
    name = "links"
    handle_httpstatus_list = [404, 500]  # noqa: RUF012
    say: Callable[[str], object]

    @classmethod
    def from_crawler(cls, crawler: Any, *args: Any, **kwargs: Any) -> "Links":
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.opened, scrapy.signals.spider_opened)
        crawler.signals.connect(spider.closed_, scrapy.signals.spider_closed)
        return spider

    def opened(self) -> None:
        self.watching = create_looping_call(self.watch)
        self.watching.start(0.05)

    def closed_(self) -> None:
        self.watching.stop()

    def watch(self) -> None:
        waits = self.crawler.stats.get_value("neardup/waits", 0)
        if waits:
            self.say(f"waits {waits}")

    def parse(self, response: Response) -> Iterator[scrapy.Request]:
        if isinstance(response, TextResponse):
            for link in response.css("a"):
                meta = {"neardup": False} if "private" in link.attrib["href"] else {}
                if "wanted" in link.attrib["href"]:
                    meta["neardup_skip"] = False
                yield response.follow(link, meta=meta)
            for form in response.css("form"):
                yield response.follow(form.attrib["action"], method="POST")


def crawl(url: str, given: dict[str, Any], out: Path) -> None:
    """given: Scrapy's settings. out: the file that what the crawl says is added to."""

    def say(line: str) -> None:
        with out.open("a") as file:
            file.write(line + "\n")

    process = CrawlerProcess(
        {
            "DOWNLOADER_MIDDLEWARES": {"streams.scrapy.PublishMiddleware": 50},
            "ROBOTSTXT_OBEY": True,
            "RETRY_ENABLED": False,
            "DOWNLOAD_DELAY": 0,
            "TELNETCONSOLE_ENABLED": False,
            "LOG_LEVEL": "ERROR",
            **given,
        }
    )
    crawler = process.create_crawler(Links)
    process.crawl(crawler, start_urls=[url], say=say)
    process.start()
    if process.bootstrap_failed:
        gc.collect()  # Twisted logs an error that no code has seen once it is collected, and a fork collects nothing
        sys.exit(1)
    assert crawler.stats is not None
    stats = crawler.stats.get_stats().items()
    say(json.dumps({name: value for name, value in stats if name.startswith(("neardup/", "finish_r"))}))
