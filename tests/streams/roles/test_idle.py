"""A matcher without pages to judge keeps its committed offset, which brokers forget after a week by default."""

import pytest

from streams.errors import BrokerError, Fenced, Unsettled
from streams.roles.match_ports import COMMIT_AGAIN_SECONDS
from tests.streams.scripted import Transactions
from tests.streams.simulation.ledger import cheap
from tests.streams.simulation.schedule import settle
from tests.streams.simulation.world import World


@pytest.fixture
def world() -> World:
    """All pages are judged; nothing comes any more."""
    made = World(1)
    with cheap():
        made.publish()
        settle(made)
    return made


def test_an_idle_matcher_commits_its_offset_each_day(world: World) -> None:
    group, topic = world.settings.group_of("match"), world.names.sketches
    held = world.broker.committed(group, topic, 0)
    assert held is not None
    before = len(world.broker.topics[world.names.verdicts].partitions[0].records)
    world.broker.expire(group)
    world.match()
    assert world.broker.committed(group, topic, 0) is None
    world.steady_s += COMMIT_AGAIN_SECONDS
    world.match()
    assert world.broker.committed(group, topic, 0) == held
    assert len(world.broker.topics[world.names.verdicts].partitions[0].records) == before


def test_an_idle_matcher_that_was_fenced_ends(world: World) -> None:
    assert world.matcher is not None
    Transactions(world.broker, world.names.sketches, world.names.verdicts, world.settings.group_of("match")).init()
    world.steady_s += COMMIT_AGAIN_SECONDS
    with pytest.raises(Fenced):
        world.matcher.round()


def test_a_matcher_whose_round_has_failed_folds_no_more(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its transaction may be committed, and the index lacks the messages."""
    assert world.matcher is not None

    def away() -> None:
        raise BrokerError("Kafka is away")

    with monkeypatch.context() as patched:
        patched.setattr(world.matcher._log, "_poll", away)
        with pytest.raises(BrokerError, match="is away"):
            world.matcher.round()
    with pytest.raises(Unsettled, match="an earlier round has failed"):
        world.matcher.round()
