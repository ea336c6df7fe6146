"""`status` and `logs`: every state, read from the nodes and by one real token."""

import asyncio
from typing import Any

import pytest

from fakes.endpoint import ANSWER, FakeEndpoint
from fakes.rank_node import STATE, Exit, Rank
from sparkwright.app import queries
from sparkwright.app.queries import logs, status
from sparkwright.domain.command import Secret
from sparkwright.domain.deployment import Deployment
from sparkwright.domain.errors import NotReady, SparkwrightError, Unreachable, UsageError
from sparkwright.domain.live import DeploymentState
from sparkwright.remote import process
from unit.app.scene import ClusterScene, make_scene

LABELS = {
    "deployment": "twin",
    "world": "2",
    "recipe": "twin",
    "engine": "simulator 0.21.0",
    "port": "8000",
    "bind": "127.0.0.1",
    "served-name": "twin-tiny",
    "simulated": "true",
}


def handle(number: int, deployment: str = "twin") -> str:
    return process.rank_dir(STATE, deployment, number)


def running(ranks: tuple[int, ...] = (0, 1), **labels: str) -> ClusterScene:
    here = make_scene()
    for number in ranks:
        all_labels = {**LABELS, **labels, "rank": str(number)}
        here.nodes[number].ranks[handle(number, all_labels["deployment"])] = Rank(all_labels, ())
    return here


def end_rank(here: ClusterScene, number: int, code: int) -> None:
    here.nodes[number].ranks[handle(number)].end(Exit(code))


async def only_deployment(here: ClusterScene, **how: Any) -> Deployment:
    (found,), trouble = await status(here.services, **how)
    assert trouble == ()
    return found


async def test_ready_is_a_token() -> None:
    """One real token through a tunnel to the head, nothing less."""
    here = running()
    found = await only_deployment(here)
    assert (found.state, found.answer, found.problems) == (DeploymentState.READY, ANSWER, ())
    assert (found.name, found.endpoint, found.simulated) == ("twin", "http://127.0.0.1:8000/v1", True)
    url, model, _, tokens, key = here.endpoint.asked[0]
    assert (url, model, tokens, key) == ("http://127.0.0.1:8000", "twin-tiny", 1, None)


async def test_one_round_trip_a_node() -> None:
    """Quick enough to be called in a loop: the listing is one command."""
    here = running()
    await status(here.services, probe=False)
    assert [node.round_trips for node in here.nodes] == [1, 1]


async def test_loading_is_a_server_that_does_not_listen_yet() -> None:
    """All ranks run, nothing answers: on its way, and the reason is reported."""
    here = running()
    here.endpoint = FakeEndpoint(NotReady("connection refused"))
    found = await only_deployment(here)
    assert (found.state, found.answer) == (DeploymentState.LOADING, None)
    assert found.problems == ("not up yet: connection refused",)


async def test_a_server_without_tokens_is_degraded() -> None:
    """vLLM answers for a minute after its worker died: it lists its models and gives no token."""
    here = running()
    here.endpoint = FakeEndpoint(NotReady("500 EngineDeadError"), models=("twin-tiny",))
    found = await only_deployment(here)
    assert found.state is DeploymentState.DEGRADED
    assert "500 EngineDeadError" in found.problems[0]


async def test_no_token_in_time_reports_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A frozen engine holds the question for ever; status does not."""

    class Silent(FakeEndpoint):
        async def ask(self, *_: Any) -> Any:
            await asyncio.Event().wait()

    monkeypatch.setattr(queries, "PROBE_SECONDS", 0.02)
    here = running()
    here.endpoint = Silent(models=("twin-tiny",))
    found = await only_deployment(here)
    assert found.state is DeploymentState.DEGRADED
    assert "no token within" in found.problems[0]


async def test_a_rank_that_ended_while_another_runs_is_degraded() -> None:
    """Named with node and code; the endpoint is not even asked."""
    here = running()
    end_rank(here, 1, 137)
    found = await only_deployment(here)
    assert found.state is DeploymentState.DEGRADED
    assert found.problems == ("rank 1 on spark-2 exited with code 137",)
    assert here.endpoint.asked == []


async def test_a_rank_that_is_missing_is_degraded() -> None:
    """World size is on every rank: one that is nowhere is missed."""
    found = await only_deployment(running(ranks=(0,)))
    assert found.state is DeploymentState.DEGRADED
    assert found.problems == ("rank 1 is on no node that answered",)


async def test_a_worker_does_not_know_the_address() -> None:
    """Guards a head that cannot be asked: no address is shown that leads clients nowhere."""
    here = running()
    here.nodes[0].on(lambda command: True, Unreachable("spark-1", "connection refused"))
    (found,), trouble = await status(here.services)
    assert (found.endpoint, found.all_asked, len(trouble)) == ("", False, 1)


@pytest.mark.parametrize(("code", "state"), [(0, DeploymentState.STOPPED), (1, DeploymentState.FAILED)])
async def test_ranks_that_all_ended_are_stopped_or_failed(code: int, state: DeploymentState) -> None:
    """The state follows the exit codes, not anybody's memory of a request."""
    here = running()
    end_rank(here, 0, code)
    end_rank(here, 1, code)
    found = await only_deployment(here)
    assert found.state is state


async def test_without_a_probe_nothing_is_claimed() -> None:
    """--no-probe: the ranks run, and that is all that is known."""
    here = running()
    found = await only_deployment(here, probe=False)
    assert (found.state, here.endpoint.asked) == (DeploymentState.RUNNING, [])


async def test_an_endpoint_for_everybody_is_asked_on_loopback() -> None:
    """0.0.0.0 is no address to connect to."""
    here = running(bind="0.0.0.0")
    await only_deployment(here)
    assert here.nodes[0].tunnels == [("127.0.0.1", 8000)]


async def test_a_key_is_used_when_it_is_here_and_missed_when_not() -> None:
    """A refused question for want of a key is no sign of a broken endpoint."""
    here = running(**{"key-env": "KEY"})
    found = await only_deployment(here)
    assert "KEY" in found.problems[0] and here.endpoint.asked == []
    here.secrets = {"KEY": Secret("k-1")}
    assert (await only_deployment(here)).state is DeploymentState.READY
    assert here.endpoint.asked[0][4] == Secret("k-1")


async def test_a_node_out_of_reach_does_not_hide_the_others() -> None:
    """Its name and why are reported along with what the others report."""
    here = running()
    here.nodes[1].on(lambda command: True, Unreachable("spark-2", "no route to host"))
    found, trouble = await status(here.services)
    assert trouble == ("spark-2: no route to host",)
    assert found[0].state is DeploymentState.DEGRADED


async def test_a_node_whose_docker_is_blind_reports_it() -> None:
    """No containers and not being allowed to see containers are two things."""
    here = running()
    here.nodes[1].on(
        lambda command: command == queries.ranks_fact(here.services.cluster.node("spark-2")).command, "blind\n"
    )
    _, trouble = await status(here.services)
    assert "Docker could not be asked" in trouble[0]


async def test_several_deployments_are_distinguished() -> None:
    """Deployments are listed by name, in order."""
    here = running()
    other = running(deployment="qwen")
    for mine, theirs in zip(here.nodes, other.nodes, strict=True):
        mine.ranks.update(theirs.ranks)
    found, _ = await status(here.services)
    assert [(one.name, len(one.ranks)) for one in found] == [("qwen", 2), ("twin", 2)]


# logs


def printing() -> ClusterScene:
    here = running()
    for number, node in enumerate(here.nodes):
        node.on(lambda c, n=number: c == process.logs(handle(n), 2), [f"a{number}", f"b{number}"])
    return here


async def read(here: ClusterScene, **how: Any) -> list[tuple[int, str]]:
    wanted = {"deployment": "twin", "rank": None, "tail": 2, "follow": False, **how}
    return [(rank.rank, line) async for rank, line in logs(here.services, **wanted)]


async def test_logs_of_all_ranks_or_of_one() -> None:
    """Each line with its rank; lines of one rank stay in order."""
    here = printing()
    assert sorted(await read(here)) == [(0, "a0"), (0, "b0"), (1, "a1"), (1, "b1")]
    assert await read(here, rank=1) == [(1, "a1"), (1, "b1")]
    assert [node.open_streams for node in here.nodes] == [0, 0]


async def test_logs_of_what_is_not_there_list_what_is() -> None:
    """A wrong name or rank."""
    here = printing()
    with pytest.raises(UsageError) as caught:
        await read(here, deployment="qwen")
    assert "twin" in caught.value.hint
    with pytest.raises(UsageError) as caught:
        await read(here, rank=7)
    assert caught.value.hint == "its ranks: 0, 1"


async def test_logs_of_a_node_that_is_lost_meanwhile_are_an_error_not_a_hang() -> None:
    """One error, the node's own."""
    here = printing()
    here.nodes[1].on("tail -n", Unreachable("spark-2", "connection lost"))
    with pytest.raises(SparkwrightError):
        await asyncio.wait_for(read(here), 5)


async def test_a_reader_who_goes_leaves_no_stream_open() -> None:
    """Ctrl-C while following."""
    here = printing()
    stream = logs(here.services, "twin", None, 2, False)
    await anext(stream)
    await stream.aclose()
    await asyncio.sleep(0)
    assert [node.open_streams for node in here.nodes] == [0, 0]
