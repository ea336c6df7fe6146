"""`check` on fake nodes: how long it took, and `--deep` under the nodes' leases."""

import json

import pytest

from sparkwright.app.check.checking import check_deeply, check_nodes
from sparkwright.domain.command import Command, Completed
from sparkwright.domain.errors import Busy, Unreachable
from sparkwright.domain.finding import Severity
from unit.app.scene import make_scene


async def test_measurements_are_taken_under_the_leases_and_join_the_findings() -> None:
    """Guards a start on the same nodes: both are held while it is measured, free after, and worst still comes first."""
    here = make_scene()
    found = await check_deeply(here.services)
    assert here.did("take", "release") == [(name, what) for what in ("take", "release") for name in found.facts]
    assert {one.evidence for one in found.findings if one.code == "DEEP003"} >= {"no GPU", "spark-1 has no ib_write_bw"}
    ranks = [tuple(Severity).index(one.severity) for one in found.findings]
    assert ranks == sorted(ranks)


async def test_nothing_is_measured_under_somebody_elses_lease() -> None:
    """Guards a deployment that is coming up: Busy, with its owner's name."""
    here = make_scene()
    here.nodes[1].holder = json.dumps({"holder": "bob@desk", "why": "up", "since": 1, "nonce": "ff"})
    with pytest.raises(Busy):
        await check_deeply(here.services)
    assert here.nodes[0].holder is None


async def test_a_lost_node_needs_no_lease() -> None:
    """Guards the others: what can be measured is, and the lost node is named."""
    here = make_scene()
    here.nodes[1].on(lambda command: True, Unreachable("spark-2", "gone"))
    found = await check_deeply(here.services)
    assert [error.node for error in found.lost] == ["spark-2"]
    assert here.did("take") == [("spark-1", "take")]


async def test_time_is_reported() -> None:
    """Guards the last line's figure: from before the first question to after the last rule."""
    here = make_scene()

    async def slow(_: Command) -> Completed:
        await here.clock.sleep(0.7)
        return Completed(127, "")

    here.nodes[0].on("meminfo", slow)
    assert (await check_nodes(here.services)).seconds == pytest.approx(0.7)
