"""Generators of pages about different items of one template, which must not merge.

Each is a seeded function (n, seed) -> samples in order of arrival. One item in ten comes a second time, under another
URL and with another time stamp: those are the repeats to be found. The unnamed variants are what no title tells apart.
"""

from random import Random

from tests.measure.gate.language import Language
from tests.measure.gate.same import slug
from tests.measure.gate.sites import Sample, Site, make_sites, time_stamp


def fetches(random: Random, site: Site, title: str, main: str, path: str, item: str, kind: str) -> list[Sample]:
    """One fetch of an item, one time in ten followed by a repeat."""
    stamped = len(site.name) % 2 == 0  # half of the sites print a time stamp
    url = f"http://{site.host}/{path}"
    samples = [Sample(url, site.html(title, main, time_stamp(random) if stamped else ""), item, kind)]
    if random.random() < 0.1:
        again = url + ("&" if "?" in url else "?") + "ref=mail"
        samples.append(Sample(again, site.html(title, main, time_stamp(random)), item, kind))
    return samples


def arrival(random: Random, samples: list[Sample], n: int) -> list[Sample]:
    """The first n in a random order of arrival."""
    random.shuffle(samples)
    return samples[:n]


def _products(n: int, seed: int, kind: str, joined: bool) -> list[Sample]:
    random, language = Random(seed), Language(seed)
    samples: list[Sample] = []
    sites = make_sites(language, random)
    while len(samples) < n:
        site = random.choice(sites)
        brand, series = language.name(random), language.topic(random, 1, 3)
        letters = "".join(random.choices("ABCDEFGHKLMNPRSTWXZ", k=random.randint(1, 3)))
        description = [language.text(random, random.randint(20, 100)) for _ in range(random.randint(2, 4))]
        rows = [(language.label(random), random.random() < 0.4) for _ in range(random.randint(8, 30))]
        shared = [random.randint(1, 2000) for _ in rows]
        for number in random.sample(range(10, 999), random.randint(3, 8)):
            model = f"{letters}{number}0" if joined else random.choice((f"{letters}-{number}0", f"{number}0"))
            table = "".join(
                f"<tr><th>{label}</th><td>{random.randint(1, 2000) if differs else value} {language.words[i]}</td></tr>"
                for i, ((label, differs), value) in enumerate(zip(rows, shared, strict=True))
            )
            main = (
                f"<h1>{brand} {series} {model}</h1><p>$ {random.randint(9, 2999)}.99</p>"
                + "".join(f"<p>{model} {text}</p>" for text in description)
                + f"<table>{table}</table>"
            )
            title = f"{brand} {series} {model} | {site.name}"
            path = f"p/{slug(brand)}/{slug(series)}/{slug(model)}"
            samples += fetches(random, site, title, main, path, f"{site.host} {path}", kind)
    return arrival(random, samples, n)


def model_numbers(n: int, seed: int) -> list[Sample]:
    """Series of 3 to 8 products: one description, some figures of the table differ, and the model: `WX2100`."""
    return _products(n, seed, "model numbers", True)


def model_numbers_in_digits(n: int, seed: int) -> list[Sample]:
    """The same, with models `WX-2100` or `2100`: titles of a series differ in digits only."""
    return _products(n, seed, "model numbers in digits", False)


def _records(n: int, seed: int, kind: str, named: bool) -> list[Sample]:
    random, language = Random(seed), Language(seed)
    samples: list[Sample] = []
    for site in make_sites(language, random):
        before = language.paragraphs(random, random.randint(50, 500))
        after = language.paragraphs(random, random.randint(150, 700))
        for i in range(-(-n // 4)):
            record = language.draw(random, 25)
            title = f"{' '.join(record[:4]).capitalize()} - {site.name}" if named else site.slogan
            main = f"{before}<div class=record>{' '.join(record)}</div>{after}"
            samples += fetches(random, site, title, main, f"record/{i}", f"{site.host} {i}", kind)
    return arrival(random, samples, n)


def records(n: int, seed: int) -> list[Sample]:
    """Records of which only 25 consecutive tokens differ; the title repeats the first four of them."""
    return _records(n, seed, "records of 25 tokens", True)


def unnamed_records(n: int, seed: int) -> list[Sample]:
    """The same under one title."""
    return _records(n, seed, "records of 25 tokens, unnamed", False)


def _directory(n: int, seed: int, kind: str, named: bool) -> list[Sample]:
    random, language = Random(seed), Language(seed)
    samples: list[Sample] = []
    for site in make_sites(language, random):
        fields = [language.label(random) for _ in range(random.randint(8, 20))]
        texts = [language.text(random, random.randint(10, 60)) for _ in fields]
        towns = [language.name(random) for _ in range(40)]
        trades = [language.label(random, 2) for _ in range(30)]
        chains = [language.name(random) for _ in range(20)]
        for i in range(-(-n // 4)):
            # One business in ten is a branch of a chain, which may have several in a town.
            chained = random.random() < 0.1
            name = random.choice(chains) if chained else f"{language.name(random)} {random.choice(trades)}"
            values = [
                random.choice(
                    (
                        f"{random.randint(1, 9999)}",
                        f"({random.randint(200, 999)}) {random.randint(200, 999)}-{random.randint(0, 9999):04}",
                        f"{random.randint(8, 11)}:00 - {random.randint(4, 9)}:30",
                        f"{random.randint(10000, 99999)}",
                    )
                )
                for _ in fields
            ]
            rows = "".join(
                f"<dt>{field}</dt><dd>{value}. {text}</dd>"
                for field, value, text in zip(fields, values, texts, strict=True)
            )
            heading = f"{name}, {random.choice(towns)}" if named else language.words[7].capitalize()
            title = f"{heading} | {site.name}" if named else site.slogan
            main = f"<h1>{heading}</h1><dl>{rows}</dl>"
            samples += fetches(random, site, title, main, f"company/{i}", f"{site.host} {i}", kind)
    return arrival(random, samples, n)


def directory(n: int, seed: int) -> list[Sample]:
    """Businesses: 8 to 20 scattered numbers differ, and the name and town in title and heading."""
    return _directory(n, seed, "directory", True)


def unnamed_directory(n: int, seed: int) -> list[Sample]:
    """The scattered numbers alone, under one title."""
    return _directory(n, seed, "directory, unnamed", False)


def _reference(n: int, seed: int, kind: str, named: bool) -> list[Sample]:
    random, language = Random(seed), Language(seed)
    stems = [word for word in language.words[300:1500] if len(word) > 3][:60]
    samples: list[Sample] = []
    for k, site in enumerate(make_sites(language, random)):
        # Descriptions in a library are of one mould: 30 sentences in which some words change.
        moulds = [language.draw(random, random.randint(10, 45)) for _ in range(30)]
        bases = [" ".join(f"<code>{word}()</code>" for word in random.choices(stems, k=size)) for size in (20, 60, 220)]
        names: list[str] = []
        for i in range(-(-n // 4)):
            # One name in 50 stands in two packages.
            if names and random.random() < 0.02:
                name = random.choice(names)
            elif k == 3:
                name = _function_name(random, stems)
            else:
                name = "".join(part.capitalize() for part in random.choices(stems, k=random.randint(2, 4)))
            names.append(name)
            about = list(random.choice(moulds))
            for _ in range(random.randint(1, 5)):
                about[random.randrange(len(about))] = random.choice(stems)
            own = language.text(random, random.randint(10, 80)) if random.random() < 0.3 else ""
            methods = "".join(
                f"<tr><td><code>{random.choice(stems)}{random.choice(stems).capitalize()}({name} other)</code></td>"
                f"<td>{language.text(random, random.randint(5, 12))}</td></tr>"
                for _ in range(random.choice((0, 0, 1, 2, 3, 6, 12)))
            )
            package = f"{random.choice(stems)}.{random.choice(stems)}"
            main = (
                f"<div>{package}</div><h2>{name}</h2><p>public {name}</p><p>{' '.join(about)}. {own}</p>"
                f"<table>{methods}</table><h3>Inherited</h3><p>{random.choice(bases)}</p>"
            )
            title = f"{name} ({site.name} 3.{random.randint(0, 1)})" if named else site.slogan
            samples += fetches(random, site, title, main, f"api/{package}/{name}-{i}.html", f"{site.host} {i}", kind)
    return arrival(random, samples, n)


def _function_name(random: Random, stems: list[str]) -> str:
    """`mm256_mask_add_epi16`: several tokens, each of which many names share; one name's may be a part of another's."""
    width, mode = random.choice(("mm", "mm256", "mm512")), random.choice(("_", "_mask_", "_maskz_"))
    return f"{width}{mode}{random.choice(stems)}_{random.choice(('ps', 'pd', 'epi8', 'epi16'))}"


def reference(n: int, seed: int) -> list[Sample]:
    """Classes or functions of a library: descriptions of one mould, up to 12 own methods, 20 to 220 inherited ones.

    The title has the name; one name in 50 stands in two packages.
    """
    return _reference(n, seed, "reference pages", True)


def unnamed_reference(n: int, seed: int) -> list[Sample]:
    """The same under one title, as in a frameset."""
    return _reference(n, seed, "reference pages, unnamed", False)
