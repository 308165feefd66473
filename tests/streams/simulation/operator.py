"""The simulated operator: maps each error text to the action that it advises.

An error without an entry here is a fault of the program, and ends the simulation.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial

from streams.formats.message import Control, Decision, encode_control
from streams.pipeline.matcher import folded_to
from streams.ports import Committed
from tests.streams.simulation.ground import DECIDERS, Wrong
from tests.streams.simulation.ledger import SCHEME
from tests.streams.simulation.world import World

Act = Callable[[World, re.Match[str]], None]


def _tell_again(world: World, match: re.Match[str]) -> None:
    """Replays into the topic, begins another generation, or continues without the verdicts."""
    if world.chance.random() < 0.3:
        world.accept_lost = True
    elif match["topic"]:
        stretch = int(match["start"]), int(match["stop"])
        # If the replay is refused, its advice comes first.
        if world.attempt("replay", lambda: world.replay(*stretch, match["topic"])):
            world.accept_lost = True
            if world.chance.random() < 0.5:  # a second standby gave the same advice
                world.attempt("replay", lambda: world.replay(*stretch, match["topic"]))
    else:
        world.next_generation()


def _restore(world: World, match: re.Match[str]) -> None:
    """A checkpoint if there is one that the log covers."""
    copy = world.copy
    if copy is not None and world.names.sketches in world.broker.topics and folded_to(copy.store) >= world.log.begin:
        world.stop_matcher()
        world.folder = copy.copied()
    else:
        world.next_generation()


def _next_generation(world: World, match: re.Match[str]) -> None:
    world.next_generation()


def _say(decision: Decision) -> Act:
    def act(world: World, match: re.Match[str]) -> None:
        offset = int(match[1])
        if world.names.sketches in world.broker.topics and offset < world.log.end:
            world.log.append(encode_control(Control(bytes.fromhex(SCHEME.digest), decision, offset)))

    return act


def _set_offset(world: World, match: re.Match[str]) -> None:
    """kafka-consumer-groups.sh, with all sketchers stopped."""
    for each in list(world.sketchers):
        world.lose_sketcher(each)
    if match["topic"] in world.broker.topics:
        world.broker.commit(match["group"], match["topic"], int(match["partition"]), Committed(int(match["offset"])))


def _make_topics(world: World, match: re.Match[str]) -> None:
    world.make_topics()


def _clear_positions(world: World, match: re.Match[str]) -> None:
    world.make_topics()
    world.indexer.clear(world.names.verdicts)


def _make_room(world: World, match: re.Match[str]) -> None:
    world.folder.store.full = False


def _set_decider(world: World, match: re.Match[str]) -> None:
    """Sets the former decider, or adds --new-decider if the text offers it."""
    if "--new-decider" in match[0] and world.chance.random() < 0.5:
        world.new_decider = True
    else:
        (world.decider,) = [each for each in DECIDERS if each.digest == match["held"]]


def _set_aside(world: World, match: re.Match[str]) -> None:
    """The index; the next start folds the log, or says what it lacks."""
    world.lose_folder()


def _copy_to_standby(world: World, match: re.Match[str]) -> None:
    """The state folder of the active matcher, which is stopped meanwhile."""
    world.stop_matcher()
    world.standby = world.folder.copied()


def _mend_store(world: World, match: re.Match[str]) -> None:
    world.checkpoints.turn(world.settings, away=False)


def _start_again(world: World, match: re.Match[str]) -> None:
    """Nothing: the supervisor restarts the process."""


#: In this order: the first that is found counts.
ADVICE: Mapping[str, Act] = {
    r"to restore them, (?:emit them again: neardup replay --from (?P<start>\d+) --to (?P<stop>\d+) --to-topic "
    r"(?P<topic>\S+)|begin another generation\b.*); then, or to continue without them, start once with "
    "--accept-lost-verdicts": _tell_again,
    r"restore a checkpoint that the log still covers into a new `state` folder "
    r"\(neardup checkpoint list, neardup checkpoint restore\), or begin another generation": _restore,
    r"committed with decider (?P<held>\w+) from .*; set the former one, or begin": _set_decider,
    r"was made with decider (?P<held>\w+), .*; set the former one, or begin": _set_decider,
    r"were made with decider (?P<held>\w+), .*; set the former one: a replay repeats": _set_decider,
    r"name the `state` folder that belongs to them, or begin another generation": _next_generation,
    r"set what belongs together, or begin another generation": _next_generation,
    r"begin another generation: neardup backfill --generation NAME --read-pages": _next_generation,
    r"if they are lost for good, accept .*: neardup accept gap (\d+)": _say(Decision.ACCEPT_GAP),
    r"restore the topic, or leave it out: neardup accept record (\d+)": _say(Decision.SKIP_RECORD),
    r"stop all sketchers and set the group's offset: kafka-consumer-groups.sh --bootstrap-server \S+ --group "
    r"(?P<group>\S+) --topic (?P<topic>\S+):(?P<partition>\d+) --reset-offsets --to-offset (?P<offset>\d+) --execute"
    r"; the matcher then names what is missing": _set_offset,
    r"decided by rule \S+ \(decider (?P<held>\w+)\).*; set the former one, or add --new-decider": _set_decider,
    r"clear the stored positions to (?:go on with the verdicts that are left|read it from its start)": _clear_positions,
    r"make it with `neardup topics create` if it is missing, and start the matcher: it says what is gone": _make_topics,
    r"does not exist; create it: neardup topics create": _make_topics,
    r"once it is there, start again to read the new one": _make_topics,
    r"No space left on device": _make_room,
    r"it is damaged, or not of this version; set it aside": _set_aside,
    r"its directory is gone; mount its file system again .*, and start again": _set_aside,
    r"retention has overtaken this standby; start it again": _start_again,
    r"cannot list checkpoints at .*; mend that and try again": _mend_store,
    r"is of another (?:log|history): name another directory": _set_aside,
    r"is decided by (?P<held>\w+) from its start on, .*: give it the rule and numbers of the active one": _set_decider,
    r"or copy here the state folder of the stopped active matcher": _copy_to_standby,
    # Their classes say that starting again is safe.
    r"\A(?:BrokerError|NoAnswer|Unsettled|Stopped): ": _start_again,
}


def follow(world: World, role: str, error: str) -> None:
    """Follows the advice of an error text."""
    for pattern, act in ADVICE.items():
        found = re.search(pattern, error, re.DOTALL)
        if found is not None:
            world.happened[f"followed: {pattern}"] += 1
            if role == "standby" and act is not _copy_to_standby:
                return world.at_the_standby(partial(act, world, found))
            return act(world, found)
    raise Wrong(f"{role}: no action is known for: {error}")
