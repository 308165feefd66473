"""Generators of views that one site gives of its stock: pages of lists, of months, error pages; they must not merge.

Each is a seeded function (n, seed) -> samples in order of arrival, with one repeat in ten as in
`tests.measure.gate.items`.
"""

from calendar import monthrange
from datetime import date
from random import Random

from tests.measure.gate.items import arrival, fetches
from tests.measure.gate.language import Language
from tests.measure.gate.same import article, slug
from tests.measure.gate.sites import DAYS, FAMILIES, MONTHS, Sample, make_site, make_sites


def pagination(n: int, seed: int) -> list[Sample]:
    """Pages of lists: 10 to 30 entries of 4 to 25 words, none twice. Titles of a list differ in the page's number."""
    random, language = Random(seed), Language(seed)
    sites = make_sites(language, random)
    shapes = {site.host: (random.randint(10, 30), random.randint(4, 25)) for site in sites}
    samples: list[Sample] = []
    while len(samples) < n:
        site = random.choice(sites)
        entries, words = shapes[site.host]
        category, last = f"{language.label(random)} {language.name(random)}", random.randint(5, 60)
        for page in range(1, last + 1):
            pager = " ".join(f'<a href="?page={i}">{i}</a>' for i in range(max(1, page - 4), min(last, page + 4) + 1))
            rows = "".join(
                f'<li><a href="/{random.randint(1, 9**9)}">{language.topic(random, 2, 4)}</a> '
                f"{' '.join(language.draw(random, max(1, words - 3)))}</li>"
                for _ in range(entries)
            )
            main = f"<h1>{category}</h1><p>Page {page} of {last}</p><ol>{rows}</ol><p>{pager}</p>"
            title = f"{category} - page {page} | {site.name}"
            item = f"{site.host} {category} {page}"
            samples += fetches(random, site, title, main, f"{slug(category)}?page={page}", item, "pagination")
    return arrival(random, samples, n)


def _calendars(n: int, seed: int, kind: str, in_words: bool) -> list[Sample]:
    random, language = Random(seed), Language(seed)
    samples: list[Sample] = []
    for k in range(-(-n // 144)):
        site = make_site(language, random, FAMILIES[k % 4])
        chance = random.choice((0.02, 0.1, 0.3))
        tools = "".join(f'<a href="?view={i}">{language.label(random, 2)}</a> ' for i in range(6))
        heads = "".join(f"<th>{day}</th>" for day in DAYS)
        for i in range(144):
            year, month = 2012 + i // 12, 1 + i % 12
            if k // 4 % 2:  # half of the sites show one day, the others a month
                day = date(year, month, random.randint(1, 28))
                words, digits = f"{day:%A}, {day.day} {MONTHS[month - 1]} {year}", day.isoformat()
                grid = f"<div>{_events(language, random, 3 * chance)}</div>"
            else:
                words, digits = f"{MONTHS[month - 1]} {year}", f"{month:02}/{year}"
                days = range(1, 1 + monthrange(year, month)[1])
                cells = "".join(f"<td>{day} {_events(language, random, chance)}</td>" for day in days)
                grid = f"<table><tr>{heads}</tr><tr>{cells}</tr></table>"
            title = words if in_words else digits
            main = f"<h1>{title}</h1>{tools}{grid}"
            item = f"{site.host} {title}"
            samples += fetches(random, site, f"{title} | {site.name}", main, f"calendar/{digits}", item, kind)
    return arrival(random, samples, n)


def _events(language: Language, random: Random, chance: float) -> str:
    if random.random() >= chance:
        return ""
    return f"{random.randint(7, 20)}:{random.choice(('00', '30'))} {language.topic(random, 3, 10)}"


def calendars(n: int, seed: int) -> list[Sample]:
    """Months and days of 12 years with few events, 144 pages a site. Titles: `March 2024`, `Tuesday, 12 March 2024`."""
    return _calendars(n, seed, "calendars", True)


def calendars_in_digits(n: int, seed: int) -> list[Sample]:
    """The same with titles `03/2024` and `2024-03-12`."""
    return _calendars(n, seed, "calendars in digits", False)


def resorted_lists(n: int, seed: int) -> list[Sample]:
    """Lists of 15 to 60 entries of 6 to 20 tokens, each in five orders under one title."""
    random, language = Random(seed), Language(seed)
    sites = make_sites(language, random)
    samples: list[Sample] = []
    while len(samples) < n:
        site = random.choice(sites)
        category, words = f"{language.label(random)} {language.name(random)}", random.randint(6, 20)
        entries = [
            (
                language.topic(random, 2, 4),
                random.randint(1, 999),
                random.random(),
                " ".join(language.draw(random, words)),
            )
            for _ in range(random.randint(15, 60))
        ]
        orders = {
            "name": sorted(entries),
            "cheapest": sorted(entries, key=lambda entry: entry[1]),
            "dearest": sorted(entries, key=lambda entry: -entry[1]),
            "rating": sorted(entries, key=lambda entry: entry[2]),
            "newest": random.sample(entries, len(entries)),
        }
        for order, rows in orders.items():
            items = "".join(f"<li><b>{name}</b> $ {price}.00 {text}</li>" for name, price, _, text in rows)
            main = f"<h1>{category}</h1><p>Sorted by: {order}</p><ul>{items}</ul>"
            path, item = f"{slug(category)}?sort={order}", f"{site.host} {category} {order}"
            samples += fetches(random, site, f"{category} | {site.name}", main, path, item, "re-sorted lists")
    return arrival(random, samples, n)


def soft_404s(n: int, seed: int) -> list[Sample]:
    """Two live pages in three, half of them stubs of 20 to 80 words; the rest say that the URL was not found.

    The error pages of a site, which differ in the URL they name, say the same; they must not swallow live pages, nor
    these each other. On half of the sites all titles are the site's.
    """
    random, language = Random(seed), Language(seed)
    sites = make_sites(language, random)
    sorry = {site.host: language.text(random, random.randint(20, 80)) for site in sites}
    samples: list[Sample] = []
    while len(samples) < n:
        k = random.randrange(4)
        site, topic = sites[k], language.topic(random)
        path, item = slug(topic), f"{sites[k].host} {topic}"
        if random.random() < 1 / 3:
            title, item = "Page not found", f"{site.host} not found"
            main = f"<h1>Page not found</h1><p>/{path}</p><p>{sorry[site.host]}</p>"
        else:
            title = topic
            stub = f"<h1>{topic}</h1><p>{language.text(random, random.randint(20, 80))}</p>"
            main = stub if random.random() < 0.5 else article(language, random, topic)
        title = site.slogan if k % 2 else f"{title} | {site.name}"
        samples += fetches(random, site, title, main, path, item, "soft 404s")
    return arrival(random, samples, n)


def _walls(n: int, seed: int, kind: str, named: bool) -> list[Sample]:
    random, language = Random(seed), Language(seed)
    sites = make_sites(language, random)
    walls = {
        site.host: f"<form><p>{language.text(random, random.randint(40, 150))}</p>"
        f"<label>{language.label(random)}</label><input name=user>"
        f"<label>{language.label(random)}</label><input type=password></form>"
        for site in sites
    }
    samples: list[Sample] = []
    while len(samples) < n:
        site, topic = random.choice(sites), language.topic(random)
        teaser = language.text(random, random.randint(20, 60))
        main = (
            f"<h1>{topic}</h1><p>{teaser} ...</p>{walls[site.host]}"
            if named
            else f"<p>{teaser} ...</p>{walls[site.host]}"
        )
        title = f"{topic} | {site.name}" if named else site.slogan
        samples += fetches(random, site, title, main, slug(topic), f"{site.host} {topic}", kind)
    return arrival(random, samples, n)


def login_walls(n: int, seed: int) -> list[Sample]:
    """Of each article 20 to 60 words and a form of 40 to 150 words; title and heading are the article's."""
    return _walls(n, seed, "login walls", True)


def unnamed_login_walls(n: int, seed: int) -> list[Sample]:
    """The same without the heading, under one title."""
    return _walls(n, seed, "login walls, unnamed", False)


def _figures(n: int, seed: int, kind: str, rows: tuple[int, int], money: bool) -> list[Sample]:
    random, language = Random(seed), Language(seed)
    samples: list[Sample] = []
    for site in make_sites(language, random):
        labels = [f"{language.label(random)} {language.name(random)}" for _ in range(random.randint(*rows))]
        notes = language.text(random, random.randint(20, 80))
        for i in range(-(-n // 4)):
            cells = "".join(
                f"<tr><td>{label}</td><td>{random.randint(1, 999)}.{random.randint(0, 99):02}</td></tr>"
                if money
                else f"<tr><td>{label}</td><td>{random.randint(0, 99_999)}</td><td>{random.randint(0, 99)}%</td></tr>"
                for label in labels
            )
            main = f"<p>{notes}</p><table>{cells}</table>"
            path = f"tables/{i}" if len(site.name) % 2 else f"tables?id={i}"
            samples += fetches(random, site, site.slogan, main, path, f"{site.host} {i}", kind)
    return arrival(random, samples, n)


def vote_tables(n: int, seed: int) -> list[Sample]:
    """Votes of one election by districts under one title: the parties are those of every table, the figures are not."""
    return _figures(n, seed, "vote tables", (15, 60), False)


def price_lists(n: int, seed: int) -> list[Sample]:
    """The same goods at other prices under one title, in tables of 40 to 150 rows."""
    return _figures(n, seed, "price lists", (40, 150), True)
