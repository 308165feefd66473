"""Sites on which people write: a forum, a bug tracker, notice boards, profiles of members."""

from collections.abc import Sequence
from typing import NamedTuple

from tests.measure.commons.sites.frame import Frame, ago, slug, table

_ROWS = 20


class _Topic(NamedTuple):
    number: int
    subject: str
    user: str
    replies: int
    age: int


def forum(frame: Frame) -> None:
    """Lists of topics with relative times, fetched at several addresses up to two days apart, and the topics."""
    random = frame.random
    users = frame.names(120)
    number = 1000
    for board in range(max(2, frame.size // 75)):
        name, about = frame.label(2), frame.text(8, 25)
        topics = []
        for age in sorted(frame.age() for _ in range(random.randint(3, 7) * _ROWS)):
            number += random.randint(1, 9)
            topics.append(_Topic(number, frame.topic(3, 9), random.choice(users), random.randint(0, 60), age))
        where = frame.pick(f"/forum/{board}-{slug(name)}", f"/viewforum.php?f={board}")
        title = frame.pick(f"{name} - {frame.name}", f"{frame.name} community")
        for page in range(len(topics) // _ROWS):
            shown = topics[page * _ROWS : (page + 1) * _ROWS]
            numbered = f"{where}{'&' if '?' in where else '?'}{frame.pick(f'page={page + 1}', f'start={page * _ROWS}')}"
            item = f"list {board} {page}"
            paths = [numbered]
            if not page:
                paths.append(where)
            if random.random() < 0.6:
                extra = random.choice((f"&s={frame.session()}", frame.pick("&sort=latest", "&sk=t&sd=d")))
                paths.append(numbered + extra)
            for path in paths:
                frame.add(path, title, _list(frame, name, about, shown), item, item)
            if random.random() < 0.3:
                ordered = sorted(shown, key=lambda one: -one.replies)
                main = _list(frame, name, about, ordered)
                frame.add(f"{numbered}&sort=replies", title, main, f"{item} by replies", item, loose=True)
        for one in random.sample(topics, min(len(topics), 60)):
            _discussion(frame, one, users)


def _list(frame: Frame, name: str, about: str, topics: Sequence[_Topic]) -> str:
    """A list as it is some time later: topics are older, and a few have a view more."""
    later = int(10 ** frame.random.uniform(0, 3.4))
    rows = [
        (
            f'<a href="/topic/{one.number}">{one.subject}</a> by {one.user}',
            one.replies,
            40 * one.replies + frame.random.choice((0, 0, 0, 1)),
            f"{ago(one.age + later)} by {one.user}",
        )
        for one in topics
    ]
    return f"<h1>{name}</h1><p>{about}</p>{table(rows, ('Topic', 'Replies', 'Views', 'Last post'))}"


def _discussion(frame: Frame, topic: _Topic, users: list[str]) -> None:
    random = frame.random
    posts = [
        (random.choice((topic.user, *users[:40])), frame.text(5, 90), frame.age()) for _ in range(random.randint(1, 7))
    ]

    def main() -> str:
        later = int(10 ** frame.random.uniform(0, 3.4))
        shown = "".join(
            f"<div><b>{who}</b> <i>posted {ago(age + later)}</i><p>{text}</p><a>Quote</a> <a>Report</a></div>"
            for who, text, age in posts
        )
        return f"<h2>{topic.subject}</h2>{shown}"

    title = frame.pick(f"{topic.subject} - {frame.name}", f"{frame.name} community")
    path = frame.pick(f"/topic/{topic.number}-{slug(topic.subject)}", f"/viewtopic.php?t={topic.number}")
    frame.add(path, title, main(), f"topic {topic.number}")
    if frame.now_and_then():
        last = frame.pick("?view=newest", "&view=unread")
        frame.add(path + last, title, main(), f"topic {topic.number}")


def bugs(frame: Frame) -> None:
    """Bugs with long forms of equal choices, what changed in each, and lists of bugs in several orders."""
    random = frame.random
    parts, people = [frame.label(2) for _ in range(30)], frame.names(60)
    options = "".join(f"<option>{one}</option>" for one in parts)
    fields = "".join(f"<p>{one} <select>{options}</select></p>" for one in ("Product", "Component", "Blocks"))
    number, held = 20_000, []
    while not frame.full:
        number += random.randint(1, 60)
        summary, owner, part = frame.topic(4, 9), random.choice(people), random.choice(parts)
        held.append((number, summary, owner, random.choice(("NEW", "ASSIGNED", "RESOLVED FIXED", "VERIFIED"))))
        comments = "".join(
            f"<p><b>{random.choice(people)}</b> {frame.date()} {frame.clock(True)}</p><pre>{frame.text(4, 60)}</pre>"
            for _ in range(random.randint(1, 5))
        )
        main = f"<h1>Bug {number} - {summary}</h1><p>{part}. Assigned to {owner}. {held[-1][3]}</p>{comments}"
        path = frame.pick(f"/show_bug.cgi?id={number}", f"/issues/{number}")
        title = frame.pick(f"Bug {number} – {summary}", f"Issue #{number} · {frame.name}")
        frame.add(path, title, main, f"bug {number}", around=fields)
        if frame.now_and_then():
            view = frame.pick(f"/show_bug.cgi?ctype=html&id={number}", f"/issues/{number}?view=flat")
            frame.add(view, title, main, f"bug {number}", around=fields)
        changes = [
            (random.choice(people), f"{frame.date()} {frame.clock(True)}", random.choice(("Status", "Priority", "CC")),
             random.choice(("NEW", "P2", owner)), random.choice(("ASSIGNED", "P1", random.choice(people))))
            for _ in range(random.randint(1, 6))
        ]  # fmt: skip
        heading = ("Who", "When", "What", "Removed", "Added")
        main = f"<h1>Changes made to bug {number}</h1>{table(changes, heading)}"
        path = frame.pick(f"/show_activity.cgi?id={number}", f"/issues/{number}/activity")
        frame.add(path, frame.pick("Bug Activity", f"Activity · {frame.name}"), main, f"activity {number}")
        if len(held) % 25 == 0:
            _bug_list(frame, part, held[-25:])


def _bug_list(frame: Frame, part: str, held: list[tuple[int, str, str, str]]) -> None:
    for order in ("", "&order=assigned_to"):
        rows = sorted(held, key=lambda one: one[2]) if order else held
        main = f"<h1>{part}</h1>{table(rows, ('ID', 'Summary', 'Assignee', 'Status'))}<p>{len(rows)} bugs found.</p>"
        path = frame.pick(f"/buglist.cgi?product={slug(part)}-{held[0][0]}{order}", f"/issues?part={held[0][0]}{order}")
        frame.add(path, "Bug List", main, f"list {held[0][0]}{order}", f"list {held[0][0]}", loose=True)


def notices(frame: Frame) -> None:
    """Notices on boards of one site; one of four on several boards, with other neighbours before and after it."""
    random = frame.random
    boards = [frame.label(1).lower() for _ in range(8)]
    number = 100
    while not frame.full:
        number += 1
        title, text, who = frame.topic(4, 9), frame.text(25, 160), frame.language.name(random)
        for board in random.sample(boards, random.choice((1, 1, 1, 3))):
            around = f"<p>Previous: <a>{frame.topic()}</a> Next: <a>{frame.topic()}</a></p>"
            around += f"<p>Hits {random.randint(5, 900)}</p>"
            main = f"<h2>{title}</h2><p>{who}, {frame.pick('14 May 2021', '2021-05-14')}</p><p>{text}</p>"
            path = frame.pick(
                f"/{board}/{random.randint(1, 99999)}", f"/bbs/view.php?id={board}&no={random.randint(1, 99999)}"
            )
            frame.add(path, frame.pick(f"{title} | {frame.name}", frame.name), main, f"notice {number}", around=around)


def profiles(frame: Frame) -> None:
    """Members under one title: 12 to 32 words of their own beside the rules of the house."""
    random = frame.random
    rules, towns = frame.paragraphs(90, 160), frame.names(60)
    number = 0
    while not frame.full:
        number += random.randint(1, 30)
        name = frame.language.name(random) + random.choice(("", str(random.randint(1, 99))))
        main = (
            f"<h1>{frame.pick('Member profile', name)}</h1><p>User: {name}</p><p>Joined {frame.date()}</p><p>From "
            f"{random.choice(towns)}</p><p>Posts {random.randint(0, 4000)}</p><p>{frame.text(4, 22)}</p>"
        )
        path = frame.pick(f"/member/{number}", f"/profile.php?u={number}")
        title = frame.pick(f"Profile - {frame.name}", "View profile")
        frame.add(path, title, main, f"member {number}", around=rules)
        if frame.now_and_then():
            again = path + frame.pick(f"?sid={frame.session()}", f"&sid={frame.session()}")
            frame.add(again, title, main, f"member {number}", around=rules)
