"""A small site to be crawled, with the repetitions that a crawl meets: for the demo, and its test.

    python site.py --host 127.0.0.1 --port 8000

Under each host name it answers the same, so that a second name is a mirror. Its pages:

/articles/ARTICLE          the article, with a clock that changes with each request
/print/ARTICLE             its printer version: the same text, no surroundings
/articles/ARTICLE?session= links of the overview carry session ids
/product/ITEM              one template, each about something else: nothing here repeats anything
/old/ARTICLE               410 from the second round on; /moved/ARTICLE redirects
/broken, /huge             500; and a page without an end of its markup

Each request for `/` under a name begins a round there: from the second on some articles are edited. Nothing depends on
chance but the order of words, which a seed fixes.
"""

import argparse
import random
import re
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

ARTICLES, ITEMS = 24, 12
#: Every third article changes a sentence a round; every fourth is taken away after the first.
EDITED, REMOVED = 3, 4
_WORDS = re.findall(
    r"\w+",
    "wool sheep shear spindle carding loom weft warp felt dye madder indigo lanolin fleece yarn skein bobbin hank ply "
    "twist worsted merino shuttle heddle treadle selvage nap fulling tenter teasel comb staple crimp micron grease",
)
_COLOURS = ("amber", "azure", "coral", "ebony", "ivory", "jade", "khaki", "lilac", "mauve", "ochre", "russet", "sepia")


def sentence(chance: random.Random) -> str:
    return " ".join(chance.choices(_WORDS, k=12)).capitalize() + "."


def article(number: int, round_: int = 1) -> tuple[str, str]:
    """Title and text."""
    chance = random.Random(number)
    name = f"{chance.choice(_WORDS)} and {chance.choice(_WORDS)}, part {number}".capitalize()
    lines = [sentence(chance) for _ in range(18)]
    if number % EDITED == 0 and round_ > 1:
        lines[5] = sentence(random.Random(number * 1000 + round_))
    return name, "".join(f"<p>{line}</p>" for line in lines)


def product(number: int) -> tuple[str, str]:
    colour = _COLOURS[number % len(_COLOURS)]
    chance = random.Random(10_000 + number)
    about = "".join(f"<p>{colour} {sentence(chance)}</p>" for _ in range(6))
    return f"{colour.capitalize()} scarf no. {number}", f"<p>Price {chance.randrange(20, 90)} crowns.</p>{about}"


def page(title: str, body: str, *, surroundings: bool = True) -> bytes:
    menu = "<nav><ul><li><a href='/'>Home</a><li>Contact<li>Imprint<li>Basket</ul></nav>" if surroundings else ""
    foot = f"<footer>Served at {time.strftime('%H:%M:%S')}</footer>" if surroundings else ""
    return f"<!doctype html><title>{title}</title>{menu}<h1>{title}</h1>{body}{foot}".encode()


def home(round_: int) -> bytes:
    rows = []
    for number in range(1, ARTICLES + 1):
        session = f"?session={random.Random(f'{number} {round_}').getrandbits(64):016x}"
        links = (f"/articles/{number}", f"/articles/{number}{session}", f"/print/{number}", f"/moved/{number}")
        rows += [f"<li><a href='{link}'>{link}</a>" for link in links]
        if number % REMOVED == 0:
            rows.append(f"<li><a href='/old/{number}'>old {number}</a>")
    rows += [f"<li><a href='/product/{number}'>product {number}</a>" for number in range(ITEMS)]
    rows += ["<li><a href='/broken'>broken</a><li><a href='/huge'>huge</a>"]
    return page("A shop of wool", f"<ul>{''.join(rows)}</ul>")


def answer(path: str, round_: int) -> tuple[int, dict[str, str], bytes]:
    """Status, headers, body."""
    kind, _, name = path.strip("/").partition("/")
    number = int(name) if name.isascii() and name.isdigit() else 0
    known = 0 < number <= ARTICLES
    if path == "/":
        return 200, {}, home(round_)
    if kind == "articles" and known:
        return 200, {}, page(*article(number, round_))
    if kind == "print" and known:
        return 200, {}, page(*article(number, round_), surroundings=False)
    if kind == "product" and number < ITEMS:
        return 200, {}, page(*product(number))
    if kind == "moved" and known:
        return 301, {"Location": f"/articles/{number}"}, b""
    if kind == "old" and known:
        title, text = article(1000 + number)
        return (200, {}, page(title, text)) if round_ == 1 else (410, {}, page("Gone", "<p>Gone."))
    if path == "/robots.txt":
        return 200, {"Content-Type": "text/plain"}, b"User-agent: *\nDisallow: /private\n"
    if path == "/broken":
        return 500, {}, page("Error", "<p>Something broke.")
    if path == "/huge":
        return 200, {}, b"<!doctype html><title>Endless</title><p" + b" wool" * 50_000
    return 404, {}, page("Not found", "<p>There is no such page.")


class Site(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, host: str, port: int) -> None:
        self.rounds: Counter[str] = Counter()  # by host name
        super().__init__((host, port), SiteHandler)


class SiteHandler(BaseHTTPRequestHandler):
    server: Site

    def do_GET(self) -> None:
        path, host = urlsplit(self.path).path, self.headers.get("Host", "")
        if path == "/":
            self.server.rounds[host] += 1
        status, headers, body = answer(path, max(1, self.server.rounds[host]))
        self.send_response(status)
        for name, value in {"Content-Type": "text/html; charset=utf-8", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    given = parser.parse_args()
    with Site(given.host, given.port) as site:
        print(f"http://{given.host}:{site.server_port}/", flush=True)
        site.serve_forever()


if __name__ == "__main__":
    main()
