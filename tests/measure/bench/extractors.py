"""Other extractors of main content, run by the Python of their own environment: JSON in, JSON out.

In: [[path, HTML], ...]; out: {extractor: {path: [text, seconds]}}. One that fails on a page has found nothing there.
"""

import json
import logging
import sys
import time


def trafilatura(html):
    from trafilatura import extract

    return extract(html, include_comments=False) or ""


def resiliparse(html):
    from resiliparse.extract.html2text import extract_plain_text

    return extract_plain_text(html, main_content=True, alt_texts=False, comments=False)


def readability(html):
    from lxml.html import fromstring
    from readability import Document

    return fromstring(Document(html).summary()).text_content()


def answer(pages):
    out = {}
    for extractor in (trafilatura, resiliparse, readability):
        texts = out[extractor.__name__] = {}
        for path, html in pages:
            began = time.perf_counter()
            try:
                text = extractor(html)
            except Exception:  # noqa: BLE001 - whatever is wrong with a peer, it has found nothing
                text = ""
            texts[path] = [text, time.perf_counter() - began]
    return out


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    json.dump(answer(json.load(sys.stdin)), sys.stdout)
