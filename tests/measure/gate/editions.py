"""Generators of one text in several forms: editions, layouts of newspapers, padded copies, translations.

Each is a seeded function (n, seed) -> samples in order of arrival.
"""

from random import Random

from tests.measure.gate.items import arrival
from tests.measure.gate.language import Language
from tests.measure.gate.same import slug
from tests.measure.gate.sites import FAMILIES, Sample, make_site, make_sites, time_stamp


def editions(n: int, seed: int) -> list[Sample]:
    """Manuals in two or three editions: version numbers all over the page, up to 4% of the words; titles say which."""
    random, language = Random(seed), Language(seed)
    sites = make_sites(language, random)
    samples: list[Sample] = []
    while len(samples) < n:
        site, topic = random.choice(sites), language.topic(random)
        words = language.draw(random, random.randint(150, 900))
        places = random.sample(range(len(words)), random.randint(1, 12))
        for edition in random.sample((1, 2, 3), random.randint(2, 3)):
            values = list(words)
            for at in random.sample(range(len(values)), random.randint(0, len(values) // 25)):
                values[at] = random.choice(language.words)
            for at in places:
                values[at] = f"{edition}.{at % 7}"
            title = f"{topic} - {site.name} {edition}.0"
            main = f"<h1>{topic}</h1><p>{' '.join(values)}</p>"
            url = f"http://{site.host}/{edition}.0/{slug(topic)}.html"
            samples.append(Sample(url, site.html(title, main), f"{site.host} {topic}", "editions of one text"))
    return arrival(random, samples, n)


def syndicated(n: int, seed: int) -> list[Sample]:
    """One article in two to four newspapers, each with its own layout, headline of the same words, and comments.

    A paper adds a line of its own, up to eight comments of 5 to 60 words, and teasers of other articles.
    """
    random, language = Random(seed), Language(seed)
    papers = [make_site(language, random, FAMILIES[i % 4]) for i in range(20)]
    samples: list[Sample] = []
    while len(samples) < n:
        topic = language.topic(random, 5, 9)
        text = language.paragraphs(random, random.randint(150, 600))
        for paper in random.sample(papers, random.randint(2, 4)):
            comments = "".join(
                f"<li><b>{language.name(random)}</b><p>{language.text(random, random.randint(5, 60))}</p></li>"
                for _ in range(random.randint(0, 8))
            )
            teasers = "".join(f'<li><a href="/{i}">{language.topic(random)}</a></li>' for i in range(5))
            main = (
                f"<article><h1>{topic}</h1><p>{language.text(random, 8)}</p>{text}</article>"
                f"<section id=comments><ul>{comments}</ul></section><aside><ul>{teasers}</ul></aside>"
            )
            url = f"http://{paper.host}/news/{slug(topic)}"
            html = paper.html(f"{topic} | {paper.name}", main, time_stamp(random))
            samples.append(Sample(url, html, topic, "syndicated, comments"))
    return arrival(random, samples, n)


def padded(n: int, seed: int) -> list[Sample]:
    """Texts, and on another site the same with a few words repeated hundreds of times: stuffed for engines.

    A reader of the one has not read the other, so they are two items. One text in ten is mirrored as it is.
    """
    random, language = Random(seed), Language(seed)
    samples: list[Sample] = []
    while len(samples) < n:
        topic = language.topic(random)
        words, stuffing = random.randint(150, 350), language.topic(random, 2, 4)
        text = language.paragraphs(random, words)
        stuffed = " ".join([stuffing] * (2 * words // len(stuffing.split())))
        for more in ("", f"<p>{stuffed}</p>", *(("",) if random.random() < 0.1 else ())):
            host = f"{language.name(random).lower()}{random.randint(1, 9999)}.example"
            html = f"<title>{topic}</title><body><h1>{topic}</h1>{text}{more}</body>".encode()
            samples.append(
                Sample(f"http://{host}/{slug(topic)}", html, topic + " stuffed" * bool(more), "padded copies")
            )
    return arrival(random, samples, n)


#: Of 19 languages: 9 in Latin letters, 10 in others; a script is where its 26 letters begin, or those of the language.
_SCRIPTS = (0,) * 9 + (0x430, 0x3B1, 0x5D0, 0x627, 0x905, 0xE01, 0x10D0, 0x561, 0xAC00, 0x4E00)


def _written(word: str, script: int) -> str:
    if not script or not word.isalpha():
        return word
    return "".join(chr(script + ord(char) % 26) for char in word.lower())


def translations(n: int, seed: int) -> list[Sample]:
    """A guide in 19 languages, seven of them in scripts of their own; code, names and markup are the same in all.

    Each page comes for two or three machines: there a word of the code and of the path differs.
    """
    random = Random(seed)
    languages = [Language(seed + i, 4000) for i in range(len(_SCRIPTS))]
    site = make_site(languages[0], random, "reference")
    samples: list[Sample] = []
    chapter = 0
    while len(samples) < n:
        chapter += 1
        code = " ".join(languages[0].draw(random, random.randint(30, 90)))
        sizes = [random.randint(30, 80) for _ in range(random.randint(3, 7))]
        machines = random.sample(("amd64", "arm64", "i386", "mips", "s390x"), random.randint(2, 3))
        for which in random.sample(range(len(_SCRIPTS)), 6):
            language, script = languages[which], _SCRIPTS[which]
            parts = [" ".join(_written(word, script) for word in language.draw(random, size)) for size in sizes]
            title = " ".join(_written(word, script) for word in language.draw(random, 4))
            for machine in machines:
                main = f"<h1>{title}</h1><p>{'</p><p>'.join(parts)}</p><pre>{code} {machine}</pre>"
                url = f"http://{site.host}/{machine}/l{which}/ch{chapter:02}.html"
                samples.append(Sample(url, site.html(title, main), f"{chapter} {which}", "19 languages"))
    return arrival(random, samples, n)
