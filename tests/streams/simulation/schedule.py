"""What happens in which order: drawn by a seed, played, and left to settle."""

import random
from collections.abc import Callable, Mapping, Sequence

from streams.pipeline.matcher import folded_to
from streams.ports import TopicIds
from tests.streams.simulation.ground import Wrong
from tests.streams.simulation.operator import follow
from tests.streams.simulation.world import World

#: What happens, and the seed of how.
Step = tuple[str, int]

#: After the schedule: so many rounds until everything is read and judged, or it never will be.
ROUNDS_MAX = 300


def operate(world: World) -> None:
    """An operator acts on the error of one role."""
    if world.complaints:
        role = world.chance.choice(sorted(world.complaints))
        follow(world, role, world.complaints.pop(role))


#: How often what happens in a schedule; each is multiplied by what the seed draws.
STEPS: Mapping[str, tuple[float, Callable[[World], None]]] = {
    "publish": (4, World.publish),
    "sketch": (8, World.sketch),
    "match": (8, World.match),
    "read_verdicts": (2, World.read_verdicts),
    "restart": (4, World.restart),
    "operate": (3, operate),
    "flush": (1, World.flush),
    "start_sketcher": (1.5, World.start_sketcher),
    "rebalance": (1.5, World.rebalance),
    "crash_sketcher": (1, World.crash_sketcher),
    "cut_off_sketcher": (1, World.cut_off_sketcher),
    "wake_zombie": (2, World.wake_zombie),
    "deafen_sketcher": (1, World.deafen_sketcher),
    "fail_delivery": (0.3, World.fail_delivery),
    "trouble_in_a_commit_of_pages": (1.5, World.trouble_in_a_commit_of_pages),
    "crash_matcher": (1, World.crash_matcher),
    "stop_matcher": (0.5, World.stop_matcher),
    "second_matcher": (0.5, World.second_matcher),
    "wake_past_matcher": (1, World.wake_past_matcher),
    "trouble_in_a_commit": (1, World.trouble_in_a_commit),
    "trouble_at_a_start": (0.7, World.trouble_at_a_start),
    "change_decider": (0.6, World.change_decider),
    "void_word": (0.2, World.void_word),
    "fill_disk": (0.3, World.fill_disk),
    "lose_folder": (0.2, World.lose_folder),
    "copy_folder": (0.4, World.copy_folder),
    "put_back_a_copy": (0.3, World.put_back_a_copy),
    "retain": (0.3, World.retain),
    "quiet_month": (0.15, World.quiet_month),
    "expire": (0.3, World.expire),
    "recreate": (0.3, World.recreate),
    "delete": (0.3, World.delete),
    "reset_offsets": (0.15, World.reset_offsets),
    "garbage": (0.2, World.garbage),
    "add_partition": (0.1, World.add_partition),
    "jump_clock": (0.3, World.jump_clock),
    # See `schedule`.
    "take_down": (0, World.take_down),
    "stand_by": (0, World.stand_by),
    "take_over": (0, World.take_over),
    "lose_standby": (0, World.lose_standby),
    "fill_disk_of_standby": (0, World.fill_disk_of_standby),
    "damage_checkpoints": (0, World.damage_checkpoints),
    "turn_store": (0, World.turn_store),
}


#: How often what happens that is drawn apart.
_APART: Mapping[str, Sequence[int]] = {
    "take_down": (0, 0, 1, 2, 5),
    "stand_by": (0, 0, 0, 5, 20),
    "take_over": (0, 0, 1, 3),
    "lose_standby": (0, 0, 0, 1),
    "fill_disk_of_standby": (0, 0, 0, 1),
    "damage_checkpoints": (0, 0, 1, 5),
    "turn_store": (0, 0, 0, 1, 2),
}


def schedule(seed: int) -> list[Step]:
    """The steps of a seed: swarms of faults, for all of them at once hide each other."""
    chance = random.Random(f"steps {seed}")
    weights = {name: weight * chance.choice([0, 0.3, 1, 1, 3]) for name, (weight, _) in STEPS.items() if weight}
    for name in ("publish", "sketch", "match", "restart", "operate"):
        weights[name] = STEPS[name][0] * chance.choice([0.5, 1, 2])
    count = chance.choice([10, 30, 60, 60, 120, 200])
    names = chance.choices(list(weights), list(weights.values()), k=count)
    steps = [(name, chance.getrandbits(32)) for name in names]
    # Drawn apart, so that the other steps stay those of their seeds.
    for name, counts in _APART.items():
        for _ in range(chance.choice(counts)):
            steps.insert(chance.randrange(len(steps) + 1), (name, chance.getrandbits(32)))
    return steps


def play(world: World, steps: Sequence[Step]) -> None:
    """Raises Wrong, and whatever the roles should never raise."""
    for name, seed in steps:
        world.chance = random.Random(seed)
        world.happened[name] += 1
        world.report(f"{name}")
        STEPS[name][1](world)
        world.tick()


def settle(world: World) -> None:
    """Liveness: without faults, roles restart and the operator follows their errors until all is read and judged."""
    world.armed = None
    world.checkpoints.turn(world.settings, away=False)
    for _ in range(ROUNDS_MAX):
        if _settled_round(world):
            return
    raise Wrong(f"it never settles: {world.complaints or _standing(world)}")


def _settled_round(world: World) -> bool:
    """All roles do all their work; True once nothing is left."""
    while world.complaints:
        operate(world)
    world.heed_checkpoints()
    world.restart()
    for sketcher in world.sketchers:
        sketcher.pages.deaf = False
    for _ in range(2):
        for sketcher in list(world.sketchers):
            world.sketch_round(sketcher)
            sketcher.writer.deliver(1_000)
    for zombie in world.zombies:
        zombie.writer.deliver(1_000)
    world.steady_s += 10
    if world.standby is not None:
        world.stand_by()
    before = world.matcher
    while world.matcher is not None and world.matcher is before and _judges(world):
        pass
    world.attempt("index", lambda: world.indexer.read(world.names.verdicts, 1_000, 1_000, crash=False))
    return not world.complaints and _standing(world) == ""


def _judges(world: World) -> bool:
    before = world.matcher.matcher.next_offset if world.matcher else 0
    world.match()
    return world.matcher is not None and world.matcher.matcher.next_offset > before


def _standing(world: World) -> str:
    """The role that is not done yet; empty if all are."""
    pages = world.broker.topics.get(world.names.pages)
    if pages is None or world.matcher is None or not world.sketchers:
        return "a role is missing"
    group, log = world.settings.group_of("sketch"), world.broker.topics[world.names.sketches]
    for partition, held in enumerate(pages.partitions):
        known = world.broker.committed(group, pages.name, partition)
        # One that was added is not known before it has a page, and another topic's place is none.
        mine = known is not None and (known.topic_ids is None or known.topic_ids == TopicIds(pages.id, log.id))
        if (known.offset if known and mine else 0) < held.end:
            return f"partition {partition} is read up to {known}, of {held.end}"
    if world.matcher.matcher.next_offset < world.log.end:
        return f"judged up to {world.matcher.matcher.next_offset}, of {world.log.end}"
    if world.standby is not None and not world.standby_waits and folded_to(world.standby.store) < world.log.end:
        return f"the standby has folded up to {folded_to(world.standby.store)}, of {world.log.end}"
    if world.checkpoints.stale(world.settings, world.matcher.matcher.takedowns_to):
        return "checkpoints from before a takedown are still there"
    return ""
