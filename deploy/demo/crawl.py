"""A crawler of the demo: Scrapy follows every link of some sites, and each response goes to Kafka.

    NEARDUP_BOOTSTRAP=127.0.0.1:9092 python crawl.py http://127.0.0.1:8000/ ...

All that a crawler of one's own needs of neardup is in SETTINGS. Exit code 1 if a page could not be published.
"""

import os
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.parse import urlsplit

from scrapy import Request, Spider
from scrapy.crawler import CrawlerProcess
from scrapy.http import Response, TextResponse

SETTINGS = {
    "DOWNLOADER_MIDDLEWARES": {"streams.scrapy.PublishMiddleware": 50},
    "NEARDUP_BOOTSTRAP": os.environ.get("NEARDUP_BOOTSTRAP", "127.0.0.1:9092"),
    "NEARDUP_PAGES_TOPIC": os.environ.get("NEARDUP_PAGES_TOPIC", "pages"),
    # Of Scrapy alone.
    "USER_AGENT": "neardup-demo",
    "ROBOTSTXT_OBEY": True,
    "RETRY_TIMES": 1,
    "LOG_LEVEL": "WARNING",
    "TELNETCONSOLE_ENABLED": False,
}


class DemoSpider(Spider):
    name = "demo"
    # Statuses other than 2xx reach the spider, too; what becomes of them is the middleware's to say.
    handle_httpstatus_list = (404, 410)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.hosts = {urlsplit(url).netloc for url in self.start_urls}

    async def start(self) -> AsyncIterator[Request]:
        for url in self.start_urls:
            yield Request(url)  # and not again when a page links there

    def parse(self, response: Response, **_: Any) -> Iterator[Request]:
        if isinstance(response, TextResponse):
            for link in response.css("a::attr(href)").getall():
                url = response.urljoin(link)
                if urlsplit(url).netloc in self.hosts:
                    yield Request(url)


def main(urls: list[str]) -> int:
    if not urls or urls[0].startswith("-"):
        print(__doc__)
        return 2
    process = CrawlerProcess(SETTINGS)
    crawler = process.create_crawler(DemoSpider)
    process.crawl(crawler, start_urls=urls)
    process.start()
    stats = crawler.stats.get_stats() if crawler.stats else {}
    published, gone, errors = (stats.get(f"neardup/{name}", 0) for name in ("published", "gone", "errors"))
    print(f"published {published}, gone {gone}, errors {errors}", flush=True)
    return 1 if errors or not published else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
