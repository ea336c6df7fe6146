"""`status` where a supervisor is at work, or was."""

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from sparkwright.app.diagnose.incidents import incident, remembered
from sparkwright.app.queries import left_alone, status
from sparkwright.domain.codec import to_json
from sparkwright.domain.command import Completed
from sparkwright.domain.deployment import Deployment
from sparkwright.domain.errors import Unreachable, UsageError
from sparkwright.domain.live import DeploymentState, Live
from unit.app.scene import ClusterScene, make_scene
from unit.app.test_status import end_rank, running

LIVE = Live(1000.0, "twin", DeploymentState.BACKING_OFF, 990.0, "waits 30 s", engine_address="http://127.0.0.1:8000")
INCIDENT = {"number": 3, "deployment": "twin", "kind": "frozen", "what": "", "opened_at": 5.0}


def watched(
    here: ClusterScene,
    alive: bool = True,
    endpoint: str = "",
    unwritable: str = "",
    row: dict[str, str] | None = None,
    **changed: Any,
) -> ClusterScene:
    """The first node has a supervisor's folder. row: more of what its script prints of it."""
    live = json.loads(to_json(replace(LIVE, **changed)))
    told = {"deployment": "twin", "live": live, "by": "", "running": alive, "unit": "", "now": 1001.0}
    told |= {"endpoint": endpoint, "unwritable": unwritable} | (row or {})
    here.nodes[0].on("python3 -I -", json.dumps([told]))
    return here


async def only_deployment(here: ClusterScene, **how: Any) -> Deployment:
    (found,), trouble = await status(here.services, **how)
    assert trouble == ()
    return found


async def test_the_supervisors_word_wins() -> None:
    """It has looked for longer than one call can, and asks for tokens automatically: none is asked for here."""
    here = watched(running(), troubles=(("leak", "14 MiB a request"),))
    found = await only_deployment(here)
    assert (found.state, found.problems) == (DeploymentState.BACKING_OFF, ("14 MiB a request",))
    assert [rank.rank for rank in found.ranks] == [0, 1] and here.endpoint.asked == []
    assert not LIVE.simulated and found.simulated, "a supervisor that cannot read what it serves does not know"
    assert [node.round_trips for node in here.nodes] == [1, 1]


async def test_the_heads_program_and_ours_are_both_known() -> None:
    """Guards an upgrade of the laptop: status compares what the head runs with what `up` would put there."""
    program: Any = SimpleNamespace(digest="0011223344556677")
    here = watched(running(), row={"program": "a1b2c3d4e5f60718"})
    found, _ = await status(replace(here.services, program=program))
    assert [(one.program, one.supervised and one.supervised.program) for one in found] == [
        ("0011223344556677", "a1b2c3d4e5f60718")
    ]
    found, _ = await status(replace(watched(running(), row={"program": "$(id)"}).services, program=program))
    assert [one.supervised and one.supervised.program for one in found] == [""], "not a digest of ours"


async def test_a_deployment_without_ranks_is_there_all_the_same() -> None:
    """Nothing runs between two launches, and that is not all there is to report."""
    found = await only_deployment(watched(make_scene()))
    assert (found.name, found.state, found.ranks) == ("twin", DeploymentState.BACKING_OFF, ())


async def test_what_nodes_show_now_corrects_a_report_that_is_older() -> None:
    """Guards the exit code: `ready` next to a rank that has exited is a screen that contradicts itself."""
    here = watched(running(), phase=DeploymentState.READY, at=998.0)
    found = await only_deployment(here)
    assert (found.state, found.problems) == (DeploymentState.READY, ())
    end_rank(here, 1, 137)
    found = await only_deployment(here)
    assert found.state is DeploymentState.DEGRADED
    assert found.problems[0].startswith("rank 1 on spark-2 exited with code 137")
    assert "its supervisor's report of 3.0 s ago does not have that" in found.problems[1]
    here.nodes[1].ranks.clear()
    assert (await only_deployment(here)).problems[0] == "rank 1 is on no node that answered"
    here = watched(running(), phase=DeploymentState.STARTING)
    here.nodes[1].ranks.clear()
    assert (await only_deployment(here)).problems == (), "between two launches nothing need run"


async def test_a_lost_node_does_not_make_its_rank_missing() -> None:
    """Guards a status while one node is out of reach: its rank may run."""
    here = watched(running(), phase=DeploymentState.READY)
    here.nodes[1].on(lambda _: True, Unreachable("spark-2", "no route"))
    (found,), trouble = await status(here.services)
    assert (found.state, found.problems, len(trouble)) == (DeploymentState.READY, (), 1)


async def test_a_read_only_file_system_is_named_and_not_a_supervisor_that_is_silent() -> None:
    """Guards both: a report that is still fresh, and one that could not be written for long."""
    for at in (998.0, 900.0):
        here = watched(running(), phase=DeploymentState.READY, at=at, unwritable="read-only")
        found = await only_deployment(here)
        assert found.state is DeploymentState.DEGRADED
        assert "read-only file system on spark-1" in found.problems[-1] and "does not answer" not in str(found.problems)


async def test_a_state_folder_that_cannot_be_entered_is_a_trouble_of_its_node() -> None:
    """Guards `nothing runs` after somebody's `sudo chown`: the node could not tell what it has."""
    here = make_scene()
    here.nodes[0].on("python3 -I -", json.dumps({"closed": "/state", "owner": "root"}))
    found, (trouble,) = await status(here.services)
    assert found == () and trouble.startswith("spark-1: the state folder cannot be entered: state folder owned by root")
    assert "`sudo chown -R" in trouble


async def test_without_its_supervisor_it_is_degraded() -> None:
    """It gives tokens, and it will not restart automatically."""
    found = await only_deployment(watched(running(), alive=False))
    assert found.state is DeploymentState.DEGRADED and found.answer is not None
    assert "its supervisor on spark-1 is not running" in found.problems[-1]
    unasked = await only_deployment(watched(running(), alive=False), probe=False)
    assert unasked.state is DeploymentState.DEGRADED


async def test_what_an_interrupted_up_has_left_is_told_from_what_was_asked_for() -> None:
    """`up --no-supervise` leaves a record of what it started; Ctrl-C leaves ranks and none."""
    here = running()
    here.nodes[0].on("deployments/$2/desired.json", "")
    found, _ = await status(here.services, probe=False)
    assert await left_alone(here.services, found) == {"twin"}
    here.nodes[0].on("deployments/$2/desired.json", "{}")
    assert await left_alone(here.services, found) == frozenset()
    found, _ = await status(watched(running()).services, probe=False)
    assert await left_alone(here.services, found) == frozenset()


async def test_of_nothing_but_a_dead_supervisor_that_is_reported() -> None:
    """All ranks are gone, and nobody launches them."""
    found = await only_deployment(watched(make_scene(), alive=False))
    assert (found.name, found.state) == ("twin", DeploymentState.STOPPED)
    assert "nothing restarts it; the same `sparkwright up` starts one for twin" in found.problems[-1]


async def test_a_node_without_python_has_no_supervisor() -> None:
    """A node without python has no supervisor, and that is no trouble."""
    here = running()
    here.nodes[0].on("python3 -I -", Completed(127, "", "sh: python3: not found"))
    assert (await only_deployment(here)).state is DeploymentState.READY


def remembering(here: ClusterScene, *rows: dict[str, Any], why: str = "") -> ClusterScene:
    here.nodes[0].on("python3 -I -", json.dumps({"why": why, "incidents": rows}))
    here.nodes[1].on("python3 -I -", json.dumps({"why": "", "incidents": []}))
    return here


async def test_incidents_come_newest_first_from_all_nodes() -> None:
    """The head may have been another node once."""
    here = remembering(make_scene(), INCIDENT, {**INCIDENT, "number": 4, "opened_at": 9.0}, why="it is damaged")
    here.nodes[1].on(
        "python3 -I -", json.dumps({"why": "", "incidents": [{**INCIDENT, "number": 1, "opened_at": 7.0}]})
    )
    found = await remembered(here.services)
    assert [(node, one.number) for node, one in found.incidents] == [("spark-1", 4), ("spark-2", 1), ("spark-1", 3)]
    assert (found.trouble, found.lost) == (("spark-1: the store cannot be read: it is damaged",), False)
    assert (await remembered(here.services, "other")).incidents == ()


async def test_a_lost_node_hides_no_incident_of_another() -> None:
    """It is reported that it may have more."""
    here = remembering(make_scene(), INCIDENT)
    here.nodes[1].on("python3 -I -", Unreachable("spark-2", "no route"))
    found = await remembered(here.services)
    assert ([one.number for _, one in found.incidents], found.lost) == ([3], True)
    assert (await incident(here.services, 3)).node == "spark-1"


async def test_an_incident_that_a_lost_node_may_have_is_not_called_unknown() -> None:
    """Unreachable, exit 3; where all nodes answered it is a wrong number, exit 2."""
    here = remembering(make_scene())
    with pytest.raises(UsageError, match="no incident 9"):
        await incident(here.services, 9)
    here.nodes[1].on("python3 -I -", Unreachable("spark-2", "no route"))
    with pytest.raises(Unreachable):
        await incident(here.services, 9)
