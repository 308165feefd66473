"""Generators of what shops, forums and newsrooms publish by the thousand in one template; they must not merge.

Each is a seeded function (n, seed) -> samples in order of arrival, with one repeat in ten as in
`tests.measure.gate.items`. In the unnamed ones all pages of a site have one title and no heading of their own.
"""

from random import Random

from tests.measure.gate.items import arrival, fetches
from tests.measure.gate.language import Language
from tests.measure.gate.same import slug
from tests.measure.gate.sites import MONTHS, Sample, make_sites


def shop(n: int, seed: int) -> list[Sample]:
    """Products under one title, with `?id=`: name, price, 5 to 60 words; delivery terms and other offers."""
    random, language = Random(seed), Language(seed)
    samples: list[Sample] = []
    for site in make_sites(language, random):
        names = [f"{language.name(random)} {language.topic(random, 1, 3)}" for _ in range(60)]
        terms = language.text(random, random.randint(40, 200))
        labels = [language.label(random) for _ in range(5)]
        for i in range(-(-n // 4)):
            name = f"{language.name(random)} {language.topic(random, 1, 4)}"
            offers = "".join(f"<li>{offer}</li>" for offer in random.sample(names, 5))
            main = (
                f"<b>{name}</b><p>{labels[0]}: {random.randint(1, 999)}.{random.choice((0, 50, 95, 99)):02}</p>"
                f"<p>{labels[1]}: {random.randint(1, 30)} {labels[2]}</p>"
                f"<p>{language.text(random, random.randint(5, 60))}</p><h3>{labels[3]}</h3><p>{terms}</p>"
                f"<h3>{labels[4]}</h3><ul>{offers}</ul>"
            )
            item = f"{site.host} {i}"
            samples += fetches(random, site, site.slogan, main, f"shop/item?id={i}", item, "shop, unnamed")
    return arrival(random, samples, n)


def _day(random: Random) -> str:
    return f"{random.randint(1, 28)} {random.choice(MONTHS)} {random.randint(2003, 2024)}"


def forum_threads(n: int, seed: int) -> list[Sample]:
    """Threads under one title, with `?t=`: a subject, one to six posts of 3 to 80 words, users' signatures."""
    random, language = Random(seed), Language(seed)
    samples: list[Sample] = []
    for site in make_sites(language, random):
        users = [
            (language.name(random), language.text(random, random.randint(4, 25)) if random.random() < 0.5 else "")
            for _ in range(100)
        ]
        labels = [language.label(random) for _ in range(4)]
        rules = language.text(random, random.randint(30, 120))
        for i in range(-(-n // 4)):
            posts = ""
            for _ in range(random.randint(1, 6)):
                user, signature = random.choice(users)
                words = random.randint(3, 12) if random.random() < 0.5 else random.randint(12, 80)
                posts += (
                    f"<tr><td>{user}<br>{labels[0]}: {random.randint(1, 3000)}</td><td>{labels[1]} {_day(random)}"
                    f"<p>{language.text(random, words)}</p><hr>{signature}<br>{labels[2]} {labels[3]}</td></tr>"
                )
            main = f"<p>{rules}</p><b>{language.topic(random)}</b><table>{posts}</table>"
            item = f"{site.host} {i}"
            samples += fetches(random, site, site.slogan, main, f"viewtopic?t={i}", item, "forum threads, unnamed")
    return arrival(random, samples, n)


def _profiles(n: int, seed: int, kind: str, linked: bool) -> list[Sample]:
    random, language = Random(seed), Language(seed)
    samples: list[Sample] = []
    for k, site in enumerate(make_sites(language, random)):
        labels = [language.label(random, 2) for _ in range(7)]
        towns = [language.name(random) for _ in range(80)]
        rules = language.text(random, random.randint(40, 200))
        for i in range(-(-n // 4)):
            name = language.name(random) + random.choice(("", "", str(random.randint(1, 99))))
            about = language.text(random, random.randint(3, 20)) if random.random() < 0.5 else ""
            main = (
                f"<p>{labels[0]} {name}</p><p>{labels[1]} {_day(random)}</p><p>{labels[2]} {_day(random)}</p>"
                f"<p>{labels[3]} {random.randint(0, 5000)}</p><p>{labels[4]} {random.choice(towns)}</p>"
                f"<p>{labels[5]} {about}</p><p>{labels[6]}</p><p>{rules}</p>"
            )
            path = f"profile/{slug(name)}-{i}" if k % 2 else f"profile?u={i}"
            main += f"<p>http://{site.host}/{path}</p>" if linked else ""
            samples += fetches(random, site, site.slogan, main, path, f"{site.host} {i}", kind)
    return arrival(random, samples, n)


def forum_profiles(n: int, seed: int) -> list[Sample]:
    """Users under one title: name, two dates, posts, town, and of half of them 3 to 20 words about themselves."""
    return _profiles(n, seed, "forum profiles, unnamed", False)


def linked_profiles(n: int, seed: int) -> list[Sample]:
    """The same with each page's own URL in its text, as soft 404s have it."""
    return _profiles(n, seed, "forum profiles with own URL", True)


def _news(n: int, seed: int, kind: str, named: bool) -> list[Sample]:
    random, language = Random(seed), Language(seed)
    samples: list[Sample] = []
    for site in make_sites(language, random):
        # Weather, results, quotations: each rubric has a mould, in which names and figures change.
        moulds = [language.draw(random, random.randint(40, 200)) for _ in range(12)]
        places = [language.name(random) for _ in range(300)]
        for i in range(-(-n // 4)):
            mould = list(random.choice(moulds))
            for at in random.sample(range(len(mould)), random.randint(4, len(mould) // 4)):
                mould[at] = random.choice(
                    (random.choice(places), str(random.randint(1, 99)), language.label(random, 1))
                )
            town, day = random.choice(places), _day(random)
            headline = f"{town}: {language.topic(random, 2, 5)}"
            heading = f"<h1>{headline}</h1>" if named else f"<b>{headline}</b>"
            main = f"{heading}<p>{day}</p><p>{' '.join(mould)}.</p>"
            title = f"{headline} | {site.name}" if named else site.slogan
            samples += fetches(random, site, title, main, f"news/{i}", f"{site.host} {i}", kind)
    return arrival(random, samples, n)


def news(n: int, seed: int) -> list[Sample]:
    """Reports of 12 rubrics, of one mould each: 4 words to a quarter of them change; the headline is the title."""
    return _news(n, seed, "news", True)


def unnamed_news(n: int, seed: int) -> list[Sample]:
    """The same under one title, the headline in bold."""
    return _news(n, seed, "news, unnamed", False)
