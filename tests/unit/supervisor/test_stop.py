"""All ranks ended, and what they held given back."""

from fakes.rank_node import Rank
from sparkwright.domain.errors import Unreachable
from sparkwright.domain.progress import Notice
from sparkwright.supervisor.ranks import stop
from unit.supervisor.watchtower import AVAILABLE, make_tower


async def test_stopped_and_seen_to_be_gone() -> None:
    """Guards the order: leases, TERM on both nodes, the look afterwards; logs stay, for they are evidence."""
    it = make_tower()
    told = await stop(it.bus)
    assert (told.left, told.retained) == ((), ())
    assert sorted(it.scene.did("stop")) == [("spark-1", "stop 0"), ("spark-2", "stop 1")]
    assert dict(told.boots) == {"spark-1": "boot:1", "spark-2": "boot:1"}
    assert not any(node.holder for node in it.scene.nodes)


async def test_what_is_deaf_is_not_waited_for() -> None:
    """Guards the seconds that a web server gives to connections on which nothing will ever be reported."""
    for fault, seconds in (("", "5"), ("rank-exited", "2"), ("frozen", "1"), ("spin", "1")):
        it = make_tower()
        await stop(it.bus, fault)
        (told,) = [one.argv[4] for one in it.scene.nodes[0].commands if one.changes.startswith("stop ")]
        assert told == seconds


async def test_nothing_runs_nothing_is_done() -> None:
    """Guards that a stop before every launch costs next to nothing: no lease, no change."""
    it = make_tower()
    for node in it.scene.nodes:
        node.ranks.clear()
    assert (await stop(it.bus)).left == ()
    assert it.scene.journal == []


async def test_a_node_out_of_reach_is_left_and_the_other_one_stopped() -> None:
    """Guards that a rank which cannot be seen is never called gone."""
    it = make_tower()
    it.scene.nodes[1].on("", Unreachable("spark-2", "no route to host"))
    told = await stop(it.bus)
    assert told.left == ("spark-2: no route to host",)
    assert it.scene.nodes[0].running == []


async def test_memory_that_stays_away_is_named_and_not_waited_for() -> None:
    """Guards that 33 GB that the driver keeps are named and are no reason for a reboot, and the 20 s that
    each relaunch took on a node where another program had taken memory since the start."""
    it = make_tower()
    it.memory(1, AVAILABLE - 33 * 1024**3)
    told = await stop(it.bus)
    assert told.retained == ("spark-2",) and it.context.seen.doing == ""
    assert it.scene.clock.elapsed < 3.0
    assert any("33.0 GiB" in notice.text for notice in it.scene.sink.of(Notice))


async def test_memory_that_still_comes_back_is_waited_for() -> None:
    """Guards a driver that needs longer than usual: as long as it frees, the next start would find less than it may."""
    it = make_tower()
    late = it.scene.nodes[1]
    it.memory(1, AVAILABLE - 25 * 1024**3)
    rule = late._rules[-1]
    for gone in range(24, -1, -1):
        it.memory(1, AVAILABLE - gone * 1024**3)
        rule.given.extend([late._rules.pop().given[0]] * 2)
    assert (await stop(it.bus)).retained == ()
    assert it.scene.clock.elapsed > 10.0


async def test_what_another_deployment_holds_is_not_ours() -> None:
    """Guards a relaunch next to another one: nothing is waited for, and nothing false is reported of the driver."""
    it = make_tower()
    labels = {"deployment": "other", "rank": "0", "world": "1"}
    it.scene.nodes[1].ranks["/other"] = Rank(labels, ())
    it.memory(1, AVAILABLE - 33 * 1024**3)
    assert (await stop(it.bus)).retained == ()
    assert it.scene.clock.elapsed < 20.0 and it.scene.sink.of(Notice) == []
    assert [rank.labels for rank in it.scene.nodes[1].ranks.values() if rank.state == "running"] == [labels]


async def test_memory_that_comes_back_late_is_not_retained() -> None:
    """Guards the seconds in which the driver still frees."""
    it = make_tower()
    it.memory(1, AVAILABLE - 33 * 1024**3)
    late = it.scene.nodes[1]
    rule = late._rules[-1]
    rule.given.extend([rule.given[0], rule.given[0]])
    it.memory(0, AVAILABLE)
    rule.given.append(it.scene.nodes[0]._rules[-1].given[0])
    assert (await stop(it.bus)).retained == ()
