"""One schedule: played, settled, checked; and made smaller where it fails."""

import logging
import random
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from streams.pipeline.packing import pack
from streams.roles import sketch_role
from tests.streams.simulation.oracle import check
from tests.streams.simulation.schedule import Step, play, settle
from tests.streams.simulation.world import World

SHRINK_TRIES_MAX = 600


@dataclass(frozen=True)
class Failure:
    """error: its class and text. trace: its stack."""

    seed: int
    steps: Sequence[Step]
    error: str
    trace: str

    def printed(self) -> str:
        return " ".join([str(self.seed), *(f"{name}:{seed}" for name, seed in self.steps)])

    @property
    def kind(self) -> str:
        """Failures of one kind count as the same while a schedule is shrunk: digits and digests are left out."""
        return "".join(char for char in self.error if not char.isdigit())[:60]


@dataclass(frozen=True)
class Simulated:
    happened: Counter[str]
    failure: Failure | None = None


def parse(text: str) -> tuple[int, list[Step]]:
    """What `Failure.printed` gave."""
    seed, *steps = text.split()
    return int(seed), [(name, int(number)) for name, _, number in (step.partition(":") for step in steps)]


def simulate(seed: int, steps: Sequence[Step]) -> Simulated:
    """What became of a schedule."""
    world: list[World] = []
    try:
        return Simulated(simulated(seed, steps, world).happened)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what was looked for
        text = f"{type(error).__name__}: {error}"
        happened = world[0].happened if world else Counter[str]()
        return Simulated(happened, Failure(seed, list(steps), text, traceback.format_exc(limit=-6)))


def simulated(
    seed: int, steps: Sequence[Step], made: list[World] | None = None, say: Callable[[str], None] = lambda text: None
) -> World:
    """Plays it, lets it settle, checks everything. Raises Wrong, and whatever the roles should never raise."""
    held, quiet = sketch_role.pack, logging.root.manager.disable
    logging.disable(logging.CRITICAL)  # what goes wrong is the world's business
    world = World(seed)
    world.report = say
    if made is not None:
        made.append(world)
    sketch_role.pack = partial(pack, pages_max=world.pages_max)
    try:
        play(world, steps)
        world.chance = random.Random(f"settle {seed}")
        settle(world)
        check(world)
    finally:
        world.checkpoints.close()
        sketch_role.pack = held
        logging.disable(quiet)
    return world


def shrunk(failure: Failure) -> Failure:
    """The same kind of failure of fewer steps: parts are left out, ever smaller ones, as long as it still fails."""
    best, size, tries = failure, max(1, len(failure.steps) // 2), 0
    while tries < SHRINK_TRIES_MAX:
        at, smaller = 0, False
        while at < len(best.steps) and tries < SHRINK_TRIES_MAX:
            tries += 1
            found = simulate(best.seed, [*best.steps[:at], *best.steps[at + size :]]).failure
            if found is not None and found.kind == failure.kind:
                best, smaller = found, True
            else:
                at += size
        if size == 1 and not smaller:
            break
        size = max(1, size // 2)
    return best
