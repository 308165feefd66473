"""Makes another generation the live one."""

from dataclasses import replace

from neardup.errors import BadInput, StateError
from neardup.wording import counted
from streams.config.settings import Settings
from streams.kafka import Admin, Generation, Stage
from streams.roles.generations import behind_of, control_topic, settings_of, shown
from streams.roles.runtime import connect

#: Lags that count as caught up, because a live crawl never stands still.
BEHIND_PAGES_MAX = 10_000
BEHIND_MESSAGES_MAX = 100


def cut_over(settings: Settings, name: str, *, force: bool = False) -> str:
    """Makes a generation the live one, and returns the former one.

    Raises BadInput for an unknown one; StateError for one that has not caught up, or that was never live and lost
    verdicts to retention; BrokerError.
    """
    control = control_topic(settings, "topics")
    recorded = control.read()
    if name == recorded.live:
        raise BadInput(f"generation {shown(name)} is live already")
    known = recorded.known.get(name)
    admin = Admin(connect(settings, "topics"))
    own = settings_of(settings, recorded, name)
    if known is None and own.topics.verdicts not in admin.topics([own.topics.verdicts]):
        raise BadInput(f"there is no generation {shown(name)}; neardup generations lists them")
    if not force:
        _must_have_caught_up(own, admin, known)
        if name and (known is None or known.stage is not Stage.RETIRED):  # no client has read its verdicts yet
            _must_be_whole(own, admin)
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
    role = "matcher"
    if shards := _shards(settings, admin):
        role, judges = "judge", f"{judges} --shards {shards}"
        log = admin.topic(settings.topics.sketches)
        if first := admin.offsets(log, "earliest")[0]:  # no checkpoint serves a replay with shards
            raise StateError(
                f"{lost}. A replay with shards folds the log from its first message, and topic {log.name} begins at "
                f"offset {first}: remove the generation (neardup generations remove {name}), keep verdicts for longer "
                "(retention.ms of the topic), and backfill it again"
            )
    raise StateError(
        f"{lost}. Stop its {role}; write all its verdicts again, with the {role}'s other settings (neardup replay "
        f"--generation {name}{judges} --to-topic {topic.name}); start its {role}; then neardup cutover {name} --force"
    )


def _shards(settings: Settings, admin: Admin) -> int:
    """The number of shards of a generation; 0 for one matcher."""
    candidates = replace(settings, shards=1).topics.candidates
    found = admin.topics([candidates])
    return found[candidates].partitions if found else 0
