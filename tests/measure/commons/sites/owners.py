"""Departments on hosts of one registered domain: each with a template of its own, some articles on several."""

from tests.measure.commons.sites.frame import Frame, slug

_NAMES = (
    "cs",
    "math",
    "physics",
    "library",
    "news",
    "chemistry",
    "law",
    "alumni",
    "biology",
    "sports",
    "housing",
    "arts",
)


def departments(frame: Frame) -> None:
    """Articles that one to four departments publish under one headline, and pages that each department has."""
    random = frame.random
    domain = f"{frame.name.lower()}{frame.pick('.edu', '.ac.uk')}"
    hosts = [_of_department(frame, f"{name}.{domain}", at) for at, name in enumerate(_NAMES)]
    for host in hosts:
        for kind in ("Contact", "People", "Imprint"):
            rows = "".join(
                f"<li>{frame.language.name(random)}, room {random.randint(1, 400)}</li>"
                for _ in range(random.randint(3, 12))
            )
            host.add(
                f"/{kind.lower()}", f"{kind} | {host.name}", f"<h1>{kind}</h1><ul>{rows}</ul>", f"{kind} {host.host}"
            )
    number = 0
    while sum(len(host.pages) for host in hosts) < frame.size:
        number += 1
        headline, text = frame.topic(5, 9), frame.paragraphs(60, 300)
        for host in random.sample(hosts, random.choice((1, 1, 1, 2, 3, 4))):
            main = f"<h1>{headline}</h1><p>{frame.date()}</p>{text}"
            path = frame.pick(f"/news/{slug(headline)}", f"/2024/{number}.html")
            host.add(path, f"{headline} | {host.name}", main, f"article {number}")
    for host in hosts:
        for page in host.pages:
            frame.add_raw(page)


def _of_department(frame: Frame, host: str, at: int) -> Frame:
    """The site of a department; every third has the template of the university."""
    made = Frame(frame.kind, frame.style, frame.size, host, ("portal", "docs", "board", "plain")[at % 4])
    made.language = frame.language
    made.name = f"Department of {frame.label(1)}"
    if at % 3 == 0:
        made.before, made.after, made.family = frame.before, frame.after, frame.family
    return made
