"""A real crawl in a process of its own: python crawl.py URL SETTINGS, with Scrapy's settings as JSON.

Follows every link below URL. Says `waits N` while pages wait for room, and at the end the stats as one line of JSON.
"""

import json
import sys
from collections.abc import Iterator
from typing import Any

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.http import Response, TextResponse
from scrapy.utils.asyncio import create_looping_call

url, given = sys.argv[1], json.loads(sys.argv[2])


class Links(scrapy.Spider):
    name = "links"
    start_urls = [url]  # noqa: RUF012 - Scrapy's way
    handle_httpstatus_list = [404, 500]  # noqa: RUF012

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
            print("waits", waits, flush=True)

    def parse(self, response: Response) -> Iterator[scrapy.Request]:
        if isinstance(response, TextResponse):
            for link in response.css("a"):
                meta = {"neardup": False} if "private" in link.attrib["href"] else {}
                if "wanted" in link.attrib["href"]:
                    meta["neardup_skip"] = False
                yield response.follow(link, meta=meta)
            for form in response.css("form"):
                yield response.follow(form.attrib["action"], method="POST")


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
process.crawl(crawler)
process.start()
if process.bootstrap_failed:
    sys.exit(1)
assert crawler.stats is not None
stats = {name: value for name, value in crawler.stats.get_stats().items() if name.startswith(("neardup/", "finish_r"))}
print(json.dumps(stats), flush=True)
