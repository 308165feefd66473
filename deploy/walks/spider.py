"""A spider that publishes every page of a site, and does nothing else with them.

    scrapy runspider deploy/walks/spider.py -a url=http://127.0.0.1:8000/ -s NEARDUP_BOOTSTRAP=127.0.0.1:9092

A spider of your own needs the middleware and that setting; see `streams/scrapy.py` for others. Links to other hosts are
not followed.
"""

from collections.abc import Iterator
from typing import Any, ClassVar
from urllib.parse import urlsplit

import scrapy
from scrapy.http import Response, TextResponse
from scrapy.linkextractors import LinkExtractor


class PageSpider(scrapy.Spider):
    name = "pages"
    custom_settings: ClassVar[dict[str, Any]] = {
        "DOWNLOADER_MIDDLEWARES": {"streams.scrapy.PublishMiddleware": 50},
        # So that 404 and 410 reach the middleware, which says that these pages are gone.
        "HTTPERROR_ALLOWED_CODES": [404, 410],
    }

    def __init__(self, url: str, **given: Any) -> None:
        super().__init__(**given)
        self.start_urls = [url]
        self.allowed_domains = [urlsplit(url).hostname or ""]

    def parse(self, response: Response) -> Iterator[scrapy.Request]:
        if isinstance(response, TextResponse) and response.status == 200:
            yield from (response.follow(link) for link in LinkExtractor().extract_links(response))
