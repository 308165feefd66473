"""Generators of pages that go by one name, or nearly: members of a library, records and forms of an application.

Each is a seeded function (n, seed) -> samples in order of arrival, with one repeat in ten as in
`tests.measure.gate.items`.
"""

from random import Random
from uuid import UUID

from tests.measure.gate.items import arrival, fetches
from tests.measure.gate.language import Language
from tests.measure.gate.same import slug
from tests.measure.gate.sites import FAMILIES, Sample, Site, make_site

_SIGNS = ("*", "+", "-", "/", "%", "&", "|", "^", "!", "~", "<", ">", "=")


def _library(language: Language, random: Random) -> tuple[list[Site], list[str]]:
    """Sites with a menu, and stems that names are made of."""
    sites = [make_site(language, random, FAMILIES[i]) for i in (0, 2)]
    stems = [word for word in language.words[300:1500] if len(word) > 3][:80]
    return sites, stems


def _about(random: Random, mould: list[str], stems: list[str], own: int) -> str:
    """A description of a mould in which `own` words are of the member's own."""
    about = list(mould)
    for at in random.sample(range(len(about)), own):
        about[at] = random.choice(stems)
    return " ".join(about)


def second_pages(n: int, seed: int) -> list[Sample]:
    """One name in several modules: `red/insert.html`, `blue/insert.html`, one title, descriptions of one mould.

    The page says its module's name several times, as references do, and 3 to 12 words are its own.
    """
    random, language = Random(seed), Language(seed)
    sites, stems = _library(language, random)
    samples: list[Sample] = []
    while len(samples) < n:
        site, name = random.choice(sites), f"{random.choice(stems)}_{random.choice(stems)}"
        mould = language.draw(random, random.randint(60, 250))
        for module in random.sample(stems, random.randint(2, 6)):
            code = f"<pre>{module}::{name}({module}::iterator, {random.choice(stems)}); // in {module}</pre>"
            about = _about(random, mould, stems, random.randint(3, 12))
            main = f"<h1>{name}</h1>{code}<p>{about}</p><p>{module} {language.text(random, random.randint(4, 20))}</p>"
            path = f"{module}/{name}.html"
            samples += fetches(random, site, f"{name} - {site.name}", main, path, f"{site.host} {path}", "second pages")
    return arrival(random, samples, n)


def impl_trees(n: int, seed: int) -> list[Sample]:
    """`NAME/impl.html` of hundreds of templates: title, heading and most words are those of every other."""
    random, language = Random(seed), Language(seed)
    sites, stems = _library(language, random)
    samples: list[Sample] = []
    moulds = [language.draw(random, random.randint(60, 120)) for _ in sites]
    seen: set[str] = set()
    while len(samples) < n:
        k = random.randrange(len(sites))
        name = f"{random.choice(stems)}_{random.choice(stems)}"
        if f"{k} {name}" in seen:
            continue
        seen.add(f"{k} {name}")
        kinds = " ".join(random.sample(stems, 3))
        code = f"<pre>struct impl : transform_impl&lt;{name}&gt; {{ {name} operator()({name}) const; }};</pre>"
        main = f"<h1>Struct template impl</h1><p>{name}::impl</p>{code}<p>{' '.join(moulds[k])} {kinds}</p>"
        path = f"{name}/impl.html"
        title = f"Struct template impl - {sites[k].name}"
        samples += fetches(random, sites[k], title, main, path, f"{k} {name}", "impl.html trees")
    return arrival(random, samples, n)


def operators(n: int, seed: int) -> list[Sample]:
    """`operator*` and `operator+`, `KEY_n` and `KEY_N`: names that differ in signs or in case alone.

    The signs are the whole difference of half of the pairs: their pages have the same words.
    """
    random, language = Random(seed), Language(seed)
    sites, stems = _library(language, random)
    samples: list[Sample] = []
    while len(samples) < n:
        site, base = random.choice(sites), f"{random.choice(stems)}{random.randint(1, 999)}"
        text = language.text(random, random.randint(60, 250))
        if random.random() < 0.5:
            names = [(f"{base} operator{sign}", f"{base}/operator{sign}") for sign in random.sample(_SIGNS, 3)]
        else:
            names = [(f"KEY_{form}", f"{base}/KEY_{form}") for form in (base, base.capitalize())]
        for name, path in names:
            name, path = name.replace("&", "&amp;").replace("<", "&lt;"), path.replace("%", "%25")
            own = f"<p>{language.text(random, 4)}</p>" if random.random() < 0.5 else ""
            main = f"<h1>{name}</h1><p>{text}</p>{own}"
            item = f"{site.host} {path}"
            samples += fetches(random, site, f"{name} - {site.name}", main, path, item, "operators and case")
    return arrival(random, samples, n)


def rest_records(n: int, seed: int) -> list[Sample]:
    """Owners, their animals, and the forms to add and to change them: `/owners/10/pets/12/visits/new`, one title.

    All pages of a kind are one form; what tells them apart is a name, a date and numbers, and the address.
    """
    random, language = Random(seed), Language(seed)
    samples: list[Sample] = []
    sites = [make_site(language, random, family) for family in ("portal", "shop")]
    shapes = {site.host: [language.label(random, 2) for _ in range(16)] for site in sites}
    owner, seen = 0, set[str]()
    while len(samples) < n:
        site, owner = random.choice(sites), owner + 1
        labels = shapes[site.host]
        name = f"{language.name(random)} {language.name(random)}"
        town, street = language.name(random), f"{random.randint(1, 999)} {language.name(random)} {labels[0]}"
        rows = (name, street, town, str(random.randint(10**8, 10**9)))
        record = "".join(f"<tr><th>{a}</th><td>{b}</td></tr>" for a, b in zip(labels[:4], rows, strict=True))
        pet, born = (
            language.name(random),
            f"20{random.randint(10, 23)}-{random.randint(1, 12):02}-{random.randint(1, 28):02}",
        )
        if name in seen:
            continue
        seen.add(name)
        animal = f"<tr><td>{pet}</td><td>{born}</td><td>{labels[4]}</td><td>{name}</td></tr>"
        form = "".join(f"<label>{label}</label><input name=f>" for label in labels[8:14])
        pages = {
            f"owners/{owner}": f"<h2>{labels[5]}</h2><table>{record}</table><table>{animal}</table>",
            f"owners/{owner}/pets/new": f"<h2>{labels[6]}</h2><p>{name}</p><form>{form}</form>",
            f"owners/{owner}/pets/{owner + 7}/visits/new": (
                f"<h2>{labels[7]}</h2><table>{animal}</table><form>{form}</form><h3>{labels[14]} {labels[15]}</h3>"
            ),
        }
        for path, main in pages.items():
            samples += fetches(random, site, site.slogan, main, path, f"{site.host} {path}", "REST forms and records")
    return arrival(random, samples, n)


def titled_forms(n: int, seed: int) -> list[Sample]:
    """`/owners/12/edit` of hundreds of owners: one heading, one long form; their names are in title and text.

    Names, numbers, UUIDs and codes stand in the paths of four sites; a fifth has `/owners/12/edit.html`.
    """
    random, language = Random(seed), Language(seed)
    sites = [make_site(language, random, "portal") for _ in range(5)]
    forms = [f"<h1>{language.label(random, 2)}</h1><p>{language.text(random, 400)}</p>" for _ in sites]
    samples: list[Sample] = []
    seen = set[str]()
    while len(samples) < n:
        kind, name = random.randrange(5), f"{language.name(random)} {language.name(random)}"
        if name in seen:
            continue
        seen.add(name)
        code = f"B0{random.randint(1, 9)}{random.choice('XTQ')}{random.randint(1, 99)}ZS{random.randint(1, 999)}R"
        keys = name.replace(" ", "-").lower(), len(seen), UUID(int=random.getrandbits(128)), code, len(seen)
        path = f"owners/{keys[kind]}/edit{'.html' if kind == 4 else ''}"
        site, main = sites[kind], f"{forms[kind]}<p>{name}</p>"
        samples += fetches(random, site, f"{name} - {site.name}", main, path, f"{site.host} {path}", "titled forms")
    return arrival(random, samples, n)


def untitled_texts(n: int, seed: int) -> list[Sample]:
    """Texts of one site without title and heading, at addresses of digits; one in three comes again, reworded by 3%."""
    random, language = Random(seed), Language(seed)
    samples: list[Sample] = []
    while len(samples) < n:
        words = language.draw(random, random.randint(120, 700))
        item = f"{len(samples)}"
        for copy in range(1 + (random.random() < 1 / 3)):
            values = list(words)
            for at in random.sample(range(len(values)), copy * max(1, len(values) // 33)):
                values[at] = random.choice(language.words)
            url = f"http://www.texts.example/{slug(item)}/{random.randrange(10**9)}"
            samples.append(Sample(url, f"<body><p>{' '.join(values)}</p></body>".encode(), item, "untitled texts"))
    return arrival(random, samples, n)
