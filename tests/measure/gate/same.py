"""Generators of pages that must merge. Each is a seeded function (n, seed) -> samples in order of arrival."""

from collections.abc import Callable
from itertools import count
from random import Random

from tests.measure.gate.language import Language
from tests.measure.gate.sites import Sample, Site, make_sites, time_stamp


def article(language: Language, random: Random, title: str) -> str:
    """HTML of a main part of 100 to 1,200 tokens, mostly some hundreds."""
    size = min(1200, max(100, int(random.lognormvariate(5.8, 0.6))))
    first = random.randint(40, size // 2)
    return (
        f"<h1>{title}</h1><p>By {language.name(random)} {language.name(random)}</p>"
        f"{language.paragraphs(random, first)}"
        f'<img src="/img/{random.randint(1, 99999)}.jpg" alt="{language.label(random)}">'
        f"<h2>{language.topic(random)}</h2>{language.paragraphs(random, size - first)}"
    )


def slug(text: str) -> str:
    return "".join(char if char.isalnum() else "-" for char in text.lower())


def begun(seed: int) -> tuple[Random, Language, list[Site]]:
    """Random numbers, a language and sites of a seed."""
    random, language = Random(seed), Language(seed)
    return random, language, make_sites(language, random)


def drawn(n: int, random: Random, copies: Callable[[], list[Sample]]) -> list[Sample]:
    """copies: draws an item and makes its pages."""
    samples: list[Sample] = []
    while len(samples) < n:
        samples += copies()
    random.shuffle(samples)
    return samples[:n]


def parked_domains(n: int, seed: int) -> list[Sample]:
    """Four providers; a provider's pages differ only in the name of the domain, in the title and 2 to 6 places."""
    random, language = Random(seed), Language(seed)
    providers = []
    for i in range(4):
        titles = ("{}", "{} - " + language.topic(random), "{} | " + language.label(random), language.topic(random))
        links = "".join(
            f'<li><a href="/?q={k}">{language.label(random)}</a></li>' for k in range(random.randint(10, 30))
        )
        mentions = "".join(
            f"<p>{{}} {language.text(random, random.randint(5, 25))}</p>" for _ in range(random.randint(2, 5))
        )
        providers.append(
            (
                titles[i],
                f"<h1>{{}}</h1><p>{language.text(random, random.randint(10, 40))}</p><ul>{links}</ul>{mentions}"
                f"<p>{language.text(random, random.randint(80, 250))}</p>",
            )
        )
    samples: dict[str, Sample] = {}
    while len(samples) < n:
        k = random.randrange(4)
        title, body = providers[k]
        label = random.choice(("", "", "-")).join(language.name(random).lower() for _ in range(random.randint(1, 2)))
        domain = f"{label}.{random.choice(('com', 'com', 'net', 'org', 'info', 'co.uk', 'de'))}"
        page = (
            f"<html><head><title>{title.format(domain)}</title></head><body>{body.replace('{}', domain)}</body></html>"
        )
        host = random.choice(("", "www.")) + domain
        samples[host] = Sample(f"http://{host}/", page.encode(), f"provider {k}", "parked domains")
    return list(samples.values())


def session_ids(n: int, seed: int) -> list[Sample]:
    """Articles fetched 2 to 4 times under other session ids: in URL and links, on two of four sites in the text too."""
    random, language, sites = begun(seed)

    def copies() -> list[Sample]:
        k = random.randrange(4)
        title = language.topic(random)
        main = article(language, random, title)
        path, samples = slug(title), []
        for _ in range(random.randint(2, 4)):
            session = f"{random.getrandbits(128):032x}"
            links = (
                f'<a href="/{path}?sid={session}&amp;page=2">{sites[k].name}</a>'
                f'<input type="hidden" name="sid" value="{session}">'
                + (f'<img src="/count.gif?sid={session}">' if k == 2 else "")
            )
            stamp = f"Session: {session}" if k % 2 else ""
            html = sites[k].html(f"{title} | {sites[k].name}", main + links, stamp)
            samples.append(Sample(f"http://{sites[k].host}/{path}?sid={session}", html, title, "session ids"))
        return samples

    return drawn(n, random, copies)


def time_stamps(n: int, seed: int) -> list[Sample]:
    """Articles fetched 2 to 4 times under other URLs; date, clock, duration or visitor count differ."""
    random, language, sites = begun(seed)

    def copies() -> list[Sample]:
        site = random.choice(sites)
        title = language.topic(random)
        main = article(language, random, title)
        samples = []
        for copy in range(random.randint(2, 4)):
            html = site.html(f"{title} | {site.name}", f"<p>{time_stamp(random)}</p>{main}", time_stamp(random))
            samples.append(Sample(f"http://{site.host}/{copy}/{slug(title)}", html, title, "time stamps"))
        return samples

    return drawn(n, random, copies)


def _printer(n: int, seed: int, kind: str, retitled: bool) -> list[Sample]:
    random, language, sites = begun(seed)

    def copies() -> list[Sample]:
        site = random.choice(sites)
        topic = language.topic(random)
        main = article(language, random, topic)
        url = f"http://{site.host}/{slug(topic)}"
        title = f"{topic} | {site.name}"
        usual = Sample(url, site.html(title, main), topic, kind)
        if retitled:
            title = f"{topic} - printer friendly"
        printed = (
            f"<html><head><title>{title}</title></head><body onload='print()'><a href='javascript:close()'>Close</a> "
            f"<a href='javascript:print()'>Print</a>{main}<hr><p>Printed from {url} on {time_stamp(random)}</p>"
            "</body></html>"
        )
        return [usual, Sample(url + "?print=1", printed.encode(), topic, kind)]

    return drawn(n, random, copies)


def printer_versions(n: int, seed: int) -> list[Sample]:
    """Each article within its site's boilerplate and without it, under one title."""
    return _printer(n, seed, "printer versions", False)


def retitled_printer_versions(n: int, seed: int) -> list[Sample]:
    """The same, but the printer version's title says so in place of the site's name."""
    return _printer(n, seed, "printer versions, retitled", True)


def clocks(n: int, seed: int) -> list[Sample]:
    """What newcomers try: six pages of 300 equal words and a clock under one title; an article at twenty addresses.

    The addresses of the article differ in their slugs, as in crawls of news, and each copy has its own clock.
    """
    random, language = Random(seed), Language(seed)
    samples: list[Sample] = []
    while len(samples) < n:
        k, name = len(samples), language.name(random).lower()
        clock = (f"{random.randint(0, 23):02}:{random.randint(0, 59):02}:{random.randint(0, 59):02}" for _ in range(20))
        if random.random() < 0.5:
            text = " ".join(language.draw(random, 300))
            for at in random.sample(language.words, 6):
                html = f"<title>{name}</title><p>{text}</p><p>{next(clock)}</p>".encode()
                samples.append(Sample(f"http://{name}{k}.example/{at}", html, f"{k}", "clocks"))
        else:
            title = language.topic(random, 5, 8)
            text = article(language, random, title)
            for _ in range(20):
                html = f"<title>{title}</title><nav>{name} home</nav>{text}<p>{next(clock)} March 2024</p>".encode()
                url = f"http://{name}{k}.example/article/{slug(language.topic(random, 3, 5))}-{random.randrange(10**6)}"
                samples.append(Sample(url, html, f"{k}", "clocks"))
    random.shuffle(samples)
    return samples[:n]


def filed_twice(n: int, seed: int) -> list[Sample]:
    """Articles that a site has under two headings of its menu; the heading stands above each, and in the menu, too."""
    random, language, sites = begun(seed)
    menus = {site.host: random.sample(language.words[200:900], 6) for site in sites}

    def copies() -> list[Sample]:
        site, title = random.choice(sites), language.topic(random, 4, 8)
        text, menu = article(language, random, title), menus[site.host]
        samples = []
        for at in random.sample(menu, random.randint(1, 3)):
            main = f"<nav>{' '.join(menu)}</nav><p>{site.name} / {at}</p>{text}"
            url = f"http://{site.host}/{slug(at)}/{slug(title)}"
            samples.append(Sample(url, site.html(f"{title} | {site.name}", main), title, "filed twice"))
        return samples

    return drawn(n, random, copies)


def two_headlines(n: int, seed: int) -> list[Sample]:
    """Articles that come again on their site under another headline and address, word for word."""
    random, language, sites = begun(seed)
    numbers = count(0, 2)

    def copies() -> list[Sample]:
        site, item, text = random.choice(sites), f"{next(numbers)}", article(language, random, "")
        first, samples = language.topic(random, 5, 9).split(), []
        for copy in range(2):
            words = [language.topic(random, 1, 1) if copy and random.random() < 0.4 else word for word in first]
            title = " ".join(words)
            html = site.html(title, text.replace("<h1></h1>", f"<h1>{title}</h1>"))
            samples.append(Sample(f"http://{site.host}/{copy}{item}-{slug(title)}", html, item, "two headlines"))
        return samples

    return drawn(n, random, copies)
