"""Sites whose pages have editions: release notes of versions, courses and their terms, a wiki with its revisions."""

from tests.measure.commons.sites.frame import Frame, table


def release_notes(frame: Frame) -> None:
    """Notes of each version under one constant title, with equal tails; requirements that seldom change.

    A version of fixes alone repeats the notes of the one before it, but for version and date.
    """
    random = frame.random
    products = frame.names(3)
    common = frame.paragraphs(150, 350)
    fixes = [frame.text(6, 14) for _ in range(4)]
    each = max(1, frame.size // len(products) * 5 // 7)
    for product in products:
        name = product.lower()
        tail = f"<h3>Other resources</h3>{common}<h3>Help</h3><p>{frame.text(60, 250)}</p>"
        needs = [frame.text(4, 12) for _ in range(9)]
        known = [frame.text(8, 22) for _ in range(random.randint(2, 5))]
        news: list[str] = []
        for at in range(each):
            version = f"{3 + at // 12}.{at // 4 % 3}.{at % 4}"
            if at % 4 == 0 or random.random() < 0.6:
                news = [frame.text(6, 25) for _ in range(random.randint(1, 8))]
                known[random.randrange(len(known))] = frame.text(8, 22)
            elif random.random() < 0.5:
                news = [random.choice(fixes)]
            main = (
                f"<h1>Release Notes</h1><p>Version {version}, offered since {frame.date()}</p><h3>What is new</h3><ul>"
                f"{''.join(f'<li>{one}</li>' for one in news)}</ul><h3>Known issues</h3><ul>"
                f"{''.join(f'<li>{one}</li>' for one in known)}</ul>"
            )
            title = frame.pick(f"{product} Release Notes", f"{frame.name} - What is new")
            path = frame.pick(f"/en-US/{name}/{version}/releasenotes/", f"/{name}/notes/{name}-{version}.html")
            frame.add(path, title, main, f"{product} {version}", f"{product} notes", around=tail)
            if frame.now_and_then():
                again = frame.pick(path.replace("en-US", "en-GB"), f"{path}?icn=tabz")
                frame.add(again, title, main, f"{product} {version}", f"{product} notes", around=tail)
            if at % 12 == 0 and at:
                needs[random.randrange(len(needs))] = frame.text(4, 12)
            if at % 3 == 0:
                lines = "".join(f"<li>{one}</li>" for one in needs)
                main = f"<h1>System Requirements</h1><p>Version {version}</p><ul>{lines}</ul><p>{common}</p>"
                where = frame.pick(
                    f"/en-US/{name}/{version}/system-requirements/", f"/{name}/needs/{name}-{version}.html"
                )
                frame.add(
                    where, f"{product} System Requirements", main, f"{product} {version} needs", f"{product} needs"
                )


def courses(frame: Frame) -> None:
    """Syllabuses of courses and terms, all under one title and file name. The next term has other dates and people."""
    random = frame.random
    policies = {one: frame.paragraphs(250, 600) for one in ("math", "hist", "chem", "phil", "econ")}
    people, terms = frame.names(40), [f"{season}{year}" for year in range(2019, 2024) for season in ("fall", "spring")]
    number = 100
    while not frame.full:
        number += random.randint(1, 9)
        field = random.choice(list(policies))
        about, weeks = frame.text(20, 130), [frame.topic(2, 6) for _ in range(random.randint(4, 13))]
        for term in random.sample(terms, random.randint(1, 4)):
            if random.random() < 0.5:
                weeks[random.randrange(len(weeks))] = frame.topic(2, 6)
            if random.random() < 0.3:
                about = f"{about} {frame.text(10, 40)}"
            teacher = random.choice(people)
            rows = [(at + 1, f"{random.randint(1, 28)} {term[:4]}", week) for at, week in enumerate(weeks)]
            main = (
                f"<h1>{frame.pick('Course Syllabus', 'Course information')}</h1><p>Instructor: {teacher}. Office "
                f"hours: {frame.clock()} to {frame.clock()}. Room {random.randint(100, 480)}.</p><p>{about}</p>"
                f"{table(rows)}"
            )
            item, work = f"{field}{number} {term}", f"{field}{number}"
            path = frame.pick(
                f"/{term}/{field}{number}/syllabus.html", f"/~{teacher.lower()}/{term}/{field}{number}/info.php"
            )
            around = f"<h3>Policies</h3>{policies[field]}"
            title = frame.pick("Syllabus", f"{frame.name}: course information")
            frame.add(path, title, main, item, work, around=around)
            if frame.now_and_then(2):
                dated = f"{around}<p>Last updated {frame.date()} {frame.clock()}</p>"
                frame.add(path.replace(term, "current"), title, main, item, work, around=dated)


def wiki(frame: Frame) -> None:
    """Articles, their revisions, and formats of both: for printing, for mobiles, as text."""
    random = frame.random
    while not frame.full:
        topic = frame.topic(1, 4)
        name = topic.replace(" ", "_")
        parts = [frame.text(30, 90) for _ in range(random.randint(2, 7))]
        revision = random.randint(1000, 900_000)
        count = random.randint(1, 5)
        for at in range(count):
            revision += random.randint(1, 4000)
            main = f"<h1>{topic}</h1>" + "".join(f"<p>{part}</p>" for part in parts)
            item, last = f"{topic} {revision}", at == count - 1
            old = (
                ""
                if last
                else f"<p>Revision as of {frame.clock()}, {frame.date()} by {frame.language.name(random)}</p>"
            )
            title = f"{topic} - {frame.name} Wiki"
            path = (
                f"/wiki/{name}"
                if last
                else frame.pick(f"/w/index.php?title={name}&oldid={revision}", f"/wiki/{name}?rev={revision}")
            )
            around = f"<p>Category: {frame.label()}. This page was last changed on {frame.date()}.</p>"
            frame.add(path, title, old + main, item, topic, around=around)
            if frame.now_and_then(2):
                link = "&" if "?" in path else "?"
                form = random.choice(
                    (f"{path}{link}printable=yes", f"https://m.{frame.host.removeprefix('www.')}{path}")
                )
                frame.add_bare(form, title, old + main, item, topic)
            _edit(frame, parts)


def _edit(frame: Frame, parts: list[str]) -> None:
    """One edit of an article: a few words, a sentence, a paragraph, or one less."""
    random = frame.random
    kind, at = random.random(), random.randrange(len(parts))
    if kind < 0.5:
        words = parts[at].split()
        for place in random.sample(range(len(words)), min(len(words), random.randint(1, 6))):
            words[place] = frame.language.draw(random, 1)[0]
        parts[at] = " ".join(words)
    elif kind < 0.75:
        parts[at] = f"{parts[at]} {frame.text(8, 20)}"
    elif kind < 0.92:
        parts.insert(at, frame.text(30, 90))
    elif len(parts) > 2:
        del parts[at]
