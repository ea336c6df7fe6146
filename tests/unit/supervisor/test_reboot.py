"""All nodes rebooted together."""

from fakes.rank_node import RankNode
from sparkwright.domain.command import Completed
from sparkwright.domain.errors import Unreachable
from sparkwright.remote import repair as commands
from sparkwright.supervisor.core.events import Rebooted, RebootFailed
from sparkwright.supervisor.effects import reboot
from unit.supervisor.watchtower import AVAILABLE, Tower, make_tower

BEFORE = (("spark-1", "boot:1"), ("spark-2", "boot:1"))


def allowed(it: Tower) -> list[str]:
    """Both nodes may be rebooted and then have other markers; who went, in order."""
    went: list[str] = []

    def go(node: RankNode, number: int) -> object:
        went.append(node.name)
        it.memory(number, AVAILABLE, boot="another")
        return Unreachable(node.name, "connection closed")

    for number, node in enumerate(it.scene.nodes):
        node.on(lambda c: c == commands.may_repair(), Completed(0, ""))
        node.on(lambda c: c == commands.reboot(), lambda c, node=node, number=number: go(node, number))
    return went


async def test_workers_first_the_head_last_and_verified_by_their_markers() -> None:
    """Guards that all nodes reboot together; a connection that breaks is no failure, the marker is the proof."""
    it = make_tower()
    went = allowed(it)
    assert isinstance(await reboot(it.context, BEFORE), Rebooted)
    assert went == ["spark-2", "spark-1"]


async def test_who_has_been_rebooted_already_is_only_waited_for() -> None:
    """Guards the second supervisor: the head's own reboot ended the first one."""
    it = make_tower()
    went = allowed(it)
    it.memory(0, AVAILABLE, boot="another")
    assert isinstance(await reboot(it.context, BEFORE), Rebooted)
    assert went == ["spark-2"]


async def test_one_that_may_not_be_rebooted_stops_all() -> None:
    """Guards against half a reboot: every node is asked before the first one goes."""
    it = make_tower()
    went = allowed(it)
    it.scene.nodes[0].on(lambda c: c == commands.may_repair(), Completed(1, "", "a password is required"))
    told = await reboot(it.context, BEFORE)
    assert isinstance(told, RebootFailed) and "spark-1" in told.why
    assert went == []


async def test_a_node_whose_marker_is_not_known_is_not_rebooted() -> None:
    """Guards that a reboot can be verified at all."""
    it = make_tower()
    went = allowed(it)
    assert isinstance(await reboot(it.context, BEFORE[:1]), RebootFailed)
    assert went == []
