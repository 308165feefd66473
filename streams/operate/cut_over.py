"""Makes another generation the live one."""

import time
from collections.abc import Callable

from neardup.errors import BadInput, StateError
from neardup.wording import counted
from streams.config.settings import Settings
from streams.kafka import Admin, Generation, Stage
from streams.operate.generations import behind_of
from streams.roles.own_generation import control_topic, presence_of, settings_of, shown
from streams.roles.runtime import connect

#: Lags that count as caught up, because a live crawl never stands still.
BEHIND_PAGES_MAX = 10_000
BEHIND_MESSAGES_MAX = 100
#: Longest wait for the generation's matcher: to join its group after a start, and to judge one more message.
MATCHER_SECONDS_MAX = 10.0
_LOOK_SECONDS = 0.2


def cut_over(
    settings: Settings, name: str, *, force: bool = False, warn: Callable[[str], None] = lambda text: None
) -> str:
    """Makes a generation the live one, and returns the former one.

    force: do so in spite of the StateErrors below. warn: called if no matcher of the generation runs then.

    Raises BadInput for an unknown one; StateError for one that has not caught up, that no matcher judges, or that was
    never live and lost verdicts to retention; BrokerError.
    """
    control = control_topic(settings, "topics")
    recorded = control.read()
    if name == recorded.live:
        raise BadInput(f"generation {shown(name)} is live already")
    known = recorded.known.get(name)
    admin = Admin(connect(settings, "topics"))
    own = settings_of(settings, recorded, name)
    if known is None and own.topics.verdicts not in admin.topics([own.topics.verdicts]):
        raise BadInput(f"there is no generation {shown(name)}; neardup generation list lists them")
    if not force:
        _must_have_caught_up(own, admin, known)
        if name and (known is None or known.stage is not Stage.RETIRED):  # no client has read its verdicts yet
            _must_be_whole(own, admin)
        if problem := _not_judged(own, admin, MATCHER_SECONDS_MAX):
            raise StateError(f"{problem}; then cut over, or add --force")
    elif problem := _not_judged(own, admin, 0.0):
        warn(problem)
    control.create()
    before = recorded.known.get(recorded.live)
    control.cut_over(name, recorded.live)  # a failure below does not undo it
    if before is not None and not before.filling:  # else its backfill continues
        control.describe(before.in_stage(Stage.RETIRED))
    return recorded.live


def _must_have_caught_up(settings: Settings, admin: Admin, known: Generation | None) -> None:
    name = shown(settings.generation)
    if known is not None and known.filling:
        raise StateError(
            f"generation {name} has not caught up ({known.stage}): let neardup backfill --generation "
            f"{settings.generation} continue until it prints so, or add --force (then pages that were taken down show "
            "again until it has)"
        )
    pages, messages = behind_of(settings, admin)
    if pages is None or messages is None:
        raise StateError(f"generation {name} lacks topics: see neardup topics check --generation {settings.generation}")
    if pages > BEHIND_PAGES_MAX or messages > BEHIND_MESSAGES_MAX:
        raise StateError(
            f"generation {name} is {counted(pages, 'page')} and {counted(messages, 'message')} behind: do its roles "
            "run? Clients would wait for verdicts that the live one has; start its roles, or add --force"
        )


def _not_judged(settings: Settings, admin: Admin, wait_s: float) -> str:
    """Returns why pages would get no verdict of the generation, with advice; "" if a matcher judges them.

    A matcher that runs is a member of a group, also one that waits, or whose log is idle. One that judges has judged
    all messages up to the present end, or commits a further one within `wait_s`.
    """
    names, name = settings.topics, shown(settings.generation)
    there = admin.topics([names.sketches])
    end = admin.offsets(there[names.sketches], "latest")[0] if there else 0
    until, first = time.monotonic() + wait_s, None
    while True:
        runs = bool(admin.members(presence_of(settings, "match")))
        known = admin.committed(settings.group_of("match"), names.sketches, 0) if there else None
        judged = known.offset if known else 0
        first = judged if first is None else first
        if runs and (judged >= end or judged > first):
            return ""
        if time.monotonic() > until:
            break
        time.sleep(_LOOK_SECONDS)
    if runs:
        return (
            f"the matcher of generation {name} runs, and has judged nothing for {wait_s:g} s ({end - judged} messages "
            "wait): see its log and /ready, and repair that"
        )
    serves = (
        f"neardup backfill --generation {settings.generation} without --once, with its other options, serves it, and "
        "so does neardup match"
        if settings.generation
        else "neardup match or neardup run"
    )
    return (
        f"no matcher of generation {name} runs: after the cut-over clients would get no verdict of a new page; start "
        f"it and let it run ({serves})"
    )


def _must_be_whole(settings: Settings, admin: Admin) -> None:
    """Raises StateError if the generation's first verdicts are missing: a new client would lack them."""
    topic, name = admin.topic(settings.topics.verdicts), settings.generation
    begin, partition = max((begin, partition) for partition, begin in admin.offsets(topic, "earliest").items())
    if not begin:
        return
    judges = f" --sketches-of {settings.sketches_of or chr(39) * 2}" if settings.judges_anew else ""
    lost = (
        f"retention has removed verdicts of generation {name} (topic {topic.name}, partition {partition} begins at "
        f"offset {begin}): clients that read it for the first time would lack them"
    )
    raise StateError(
        f"{lost}. Stop its matcher; write all its verdicts again, with the matcher's other settings (neardup replay "
        f"--generation {name}{judges} --to-topic {topic.name}); start its matcher; then neardup generation cutover "
        f"{name} --force"
    )
