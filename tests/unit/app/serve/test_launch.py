"""`up` on two fake nodes: the order of things, and that nothing stays where it should not."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from fakes.endpoint import ANSWER, FakeEndpoint
from fakes.sink import FakeSink
from sparkwright.app.serve import launch
from sparkwright.app.serve.launch import Options, up
from sparkwright.app.serve.prepare import Outcome
from sparkwright.domain.command import Command, Completed, Secret
from sparkwright.domain.deployment import Answer
from sparkwright.domain.errors import Busy, CommandFailed, NotReady, Refused, SparkwrightError, Unreachable
from sparkwright.domain.progress import Happening, Notice, StepStarted
from unit.app.scene import HEAD, ClusterScene, make_scene, recipe, request

OTHER = json.dumps({"holder": "bob@desk", "why": "down twin", "since": 0, "nonce": "fedcba9876543210"})


async def brought(here: ClusterScene, **options: Any) -> Outcome:
    return await up(here.services, request(), Options(**options))


async def refused(here: ClusterScene, kind: type[SparkwrightError], **options: Any) -> Any:
    with pytest.raises(kind) as caught:
        await brought(here, **options)
    return caught.value


def starting(command: Command) -> bool:
    return command.changes.startswith("start ")


async def test_workers_first_then_the_head_then_a_real_answer() -> None:
    """A head that finds its workers waiting meets no stale rendezvous; ready means that tokens came back."""
    here = make_scene()
    outcome = await brought(here)
    assert here.did("start") == [("spark-2", "start 1"), ("spark-1", "start 0")]
    assert (outcome.done, outcome.answer) == ("ready", ANSWER)
    assert [url for url, *_ in here.endpoint.asked] == ["http://127.0.0.1:8000"]


async def test_leases_are_taken_from_before_the_first_change_to_after_the_last() -> None:
    """All nodes are ours before anything starts, and nobody's once everything runs."""
    here = make_scene()
    await brought(here)
    kinds = [what.split(" ")[0] for _, what in here.journal]
    assert kinds == ["take", "take", "start", "start", "release", "release"]
    assert [node.holder for node in here.nodes] == [None, None]


async def test_a_first_answer_that_is_garbage_is_a_finding() -> None:
    """Guards an owner who is shown ready: random weights answer, too, and `up` is who looks first."""
    here = make_scene()
    here.endpoint.given = [replace(ANSWER, text="!!!!!!!!!!!!")]
    outcome = await brought(here)
    (found,) = [one for one in outcome.plan.findings if one.code == "SUP008"]
    assert outcome.done == "garbled" and found.evidence == "'!' over and over: '!!!!!!!!!!!!'"


async def test_twice_does_nothing_the_second_time() -> None:
    """The same plan whose ranks run and answer: no lease, no start, no file."""
    here = make_scene()
    await brought(here)
    before = list(here.journal)
    outcome = await brought(here)
    assert outcome.done == "already serving"
    assert here.journal == before


async def test_a_busy_endpoint_is_never_stopped_by_a_second_up() -> None:
    """Its server is up and gives no token now: that may be a long prompt, and is nothing for `up` to end."""
    here = make_scene()
    await brought(here)
    here.endpoint = FakeEndpoint(NotReady("no tokens"))
    here.journal.clear()
    await refused(here, NotReady)
    assert [node.running for node in here.nodes] == [[0], [1]]
    assert here.journal == []


async def test_a_forced_start_is_recorded_with_its_reason() -> None:
    """The user who wonders later why this runs finds the reason on each rank."""
    here = make_scene()
    await brought(here)
    assert {rank.labels["forced"] for node in here.nodes for rank in node.ranks.values()} == {"a test"}


async def test_another_plan_replaces_the_old_ranks_everywhere_first() -> None:
    """Not one new rank starts before every old one is gone: a leftover worker would join the wrong head."""
    here = make_scene()
    await brought(here)
    here.journal.clear()
    await up(here.services, request(recipe=recipe(port=8001)), Options())
    assert sorted(here.did("remove")) == [("spark-1", "remove 0"), ("spark-2", "remove 1")]
    kinds = [what.split(" ")[0] for _, what in here.did("remove", "start")]
    assert kinds == ["remove", "remove", "start", "start"]
    assert [node.running for node in here.nodes] == [[0], [1]]


async def test_a_half_dead_deployment_is_started_again() -> None:
    """One rank of two is not a deployment: the other is removed too."""
    here = make_scene()
    await brought(here)
    (worker,) = here.nodes[1].ranks.values()
    worker.state = "exited"
    here.journal.clear()
    outcome = await brought(here)
    assert outcome.done == "ready"
    assert [what for _, what in here.did("start")] == ["start 1", "start 0"]


@pytest.mark.parametrize("which", [0, 1])
async def test_a_start_that_fails_leaves_nothing(which: int) -> None:
    """The other rank is taken away whichever fails, leases are back, and the message states the node's report."""
    here = make_scene()
    here.nodes[which].refuses = Completed(125, "", "docker: no space left on device.")
    error = await refused(here, CommandFailed)
    assert "no space left on device" in error.message
    assert error.node == f"spark-{which + 1}"
    assert here.clean, here.journal


async def test_a_worker_that_cannot_start_means_no_head() -> None:
    """The head would wait for it for ever."""
    here = make_scene()
    here.nodes[1].refuses = Completed(1, "", "no")
    await refused(here, CommandFailed)
    assert ("spark-1", "start 0") not in here.journal


async def test_a_node_that_is_lost_while_starting_is_reported_and_the_other_cleaned() -> None:
    """The rest is undone; the error is the lost contact."""
    here = make_scene()
    here.nodes[1].on(starting, Unreachable("spark-2", "connection lost"))
    await refused(here, Unreachable)
    assert here.clean


async def test_a_node_that_cannot_be_asked_changes_nothing() -> None:
    """A plan needs every node: before a lease is taken the call ends, and names the node."""
    here = make_scene()
    here.nodes[1].on(lambda command: True, Unreachable("spark-2", "connection refused", "is sshd running?"))
    error = await refused(here, Unreachable)
    assert error.message == "spark-2: connection refused"
    assert here.journal == []


async def test_a_dry_run_changes_nothing() -> None:
    """The plan, and no more."""
    here = make_scene()
    outcome = await brought(here, dry_run=True)
    assert (outcome.done, len(outcome.plan.specs)) == ("planned", 2)
    assert here.journal == []
    assert not any(node.changes or node.files for node in here.nodes)


async def test_detach_returns_once_the_ranks_run() -> None:
    """They go on automatically; nobody was asked for an answer."""
    here = make_scene()
    outcome = await brought(here, detach=True)
    assert (outcome.done, here.endpoint.asked) == ("detached", [])
    assert [node.running for node in here.nodes] == [[0], [1]]
    assert [node.holder for node in here.nodes] == [None, None]


async def test_findings_that_forbid_it_stop_it_before_anything_changes() -> None:
    """The error carries them, and reports how to go on where that is allowed."""
    here = make_scene()
    odd = replace(recipe(), flags={"no-such-flag": True})
    with pytest.raises(Refused) as caught:
        await up(here.services, request(recipe=odd, force=""), Options())
    assert any("no-such-flag" in f"{f.subject} {f.title} {f.evidence}" for f in caught.value.findings)
    assert here.journal == []


async def test_a_taken_lease_stops_it_and_what_was_taken_is_given_back() -> None:
    """Nodes are taken in the order of their names; one that is taken already ends it without a trace."""
    here = make_scene()
    here.nodes[1].holder = OTHER
    error = await refused(here, Busy)
    assert "bob@desk" in error.message
    assert here.did("start") == []
    assert (here.nodes[0].holder, here.nodes[1].holder) == (None, OTHER)


async def test_a_taken_lease_can_be_broken() -> None:
    """--break-lease: the user asked for it."""
    here = make_scene()
    here.nodes[1].holder = OTHER
    outcome = await brought(here, seize=True)
    assert outcome.done == "ready"
    assert [node.holder for node in here.nodes] == [None, None]


async def test_a_lease_that_is_taken_over_ends_the_work() -> None:
    """Two people never change a node at once: who lost the lease stops, and leaves the ranks to the other."""
    here = make_scene()

    async def slow_start(command: Command) -> Completed:
        here.nodes[1].holder = OTHER
        await here.clock.sleep(60)
        return here.nodes[1]._start(command)

    here.nodes[1].on(starting, slow_start)
    error = await refused(here, Busy)
    assert "bob@desk" in error.message
    assert here.nodes[1].holder == OTHER
    assert ("spark-1", "start 0") not in here.journal


# Ctrl-C


class Interrupting:
    """A sink that cancels the task at the first happening that fits."""

    def __init__(self, at: str) -> None:
        self.at = at
        self.happenings: list[Happening] = []

    def report(self, happening: Happening) -> None:
        self.happenings.append(happening)
        task = asyncio.current_task()
        if isinstance(happening, StepStarted) and happening.step == self.at and task:
            task.cancel()

    def of(self, kind: type[Any]) -> list[Any]:
        return [happening for happening in self.happenings if isinstance(happening, kind)]


async def interrupted(here: ClusterScene, at: str) -> Interrupting:
    sink = Interrupting(at)
    here.sink = sink  # type: ignore[assignment]
    with pytest.raises(asyncio.CancelledError):
        await asyncio.create_task(brought(here))
    return sink


@pytest.mark.parametrize("at", ["facts", "stage", "start ranks"])
async def test_interrupted_before_the_ranks_run_it_leaves_nothing(at: str) -> None:
    """Ctrl-C undoes what was begun."""
    here = make_scene()
    await interrupted(here, at)
    assert here.clean, here.journal


@pytest.mark.parametrize("which", [0, 1])
async def test_interrupted_while_a_rank_starts_it_leaves_nothing(which: int) -> None:
    """A start that has begun on the node goes to its end, for nobody could know whether it happened, and is undone."""
    here = make_scene()
    node = here.nodes[which]
    caller: list[asyncio.Task[Outcome]] = []

    def start(command: Command) -> Completed:
        caller[0].cancel()
        return node._start(command)

    node.on(starting, start)
    caller.append(asyncio.create_task(brought(here)))
    with pytest.raises(asyncio.CancelledError):
        await caller[0]
    assert (f"spark-{which + 1}", f"start {which}") in here.journal
    assert here.clean, here.journal


@pytest.mark.parametrize("at", ["engine", "answer"])
async def test_interrupted_after_that_the_ranks_go_on(at: str) -> None:
    """Ctrl-C only stops watching, and reports it; the leases are free for the next call."""
    here = make_scene()
    sink = await interrupted(here, at)
    assert [node.running for node in here.nodes] == [[0], [1]]
    assert [node.holder for node in here.nodes] == [None, None]
    (told,) = [notice.text for notice in sink.of(Notice)]
    assert "continue to run" in told and "the same `sparkwright up`" in told, "the name alone is no recipe"


async def test_up_again_watches_on() -> None:
    """Ranks that run and do not answer yet are not started again."""
    here = make_scene()
    await interrupted(here, "engine")
    here.journal.clear()
    here.sink = FakeSink()
    here.endpoint = FakeEndpoint(NotReady("nothing listens"), ANSWER)
    outcome = await brought(here)
    assert (outcome.done, outcome.answer) == ("ready", ANSWER)
    assert here.did("start", "stop", "remove") == []


# Failure while starting


async def test_what_fails_to_get_ready_is_stopped_and_kept_as_evidence() -> None:
    """All ranks end, on all nodes; containers and folders stay until `down`, every rank's log is saved here."""
    here = make_scene()
    here.endpoint = FakeEndpoint(NotReady("500 Internal Server Error"))
    error = await refused(here, NotReady)
    assert [node.running for node in here.nodes] == [[], []]
    assert sorted(here.did("stop")) == [("spark-1", "stop 0"), ("spark-2", "stop 1")]
    assert here.did("remove") == []
    assert set(here.artifacts.saved) == {
        ("twin", "rank0-spark-1.log"),
        ("twin", "rank1-spark-2.log"),
        ("twin", "diagnosis.json"),
    }
    assert error.logs == "/evidence/twin"
    assert [node.holder for node in here.nodes] == [None, None]


async def test_the_server_may_need_a_moment_after_it_states_that_it_is_up() -> None:
    """uvicorn's line comes before its socket: one refused question is not the end."""
    here = make_scene()
    here.endpoint = FakeEndpoint(NotReady("connection refused"), ANSWER)
    assert (await brought(here)).answer == ANSWER


async def test_no_stream_stays_open() -> None:
    """Nobody follows logs afterwards, whether it got ready or not."""
    for endpoint in (FakeEndpoint(), FakeEndpoint(NotReady("no"))):
        here = make_scene(endpoint=endpoint)
        await asyncio.gather(brought(here), return_exceptions=True)
        assert [node.open_streams for node in here.nodes] == [0, 0]


async def test_a_key_travels_as_a_secret_only() -> None:
    """It is put on the head in a 0600 file, is used to ask, and is in no command and no plan text."""
    here = make_scene(secrets={"KEY": Secret("k-123")})
    asked = request(recipe=recipe(api_key_env="KEY"), api_key=Secret("k-123"))
    outcome = await up(here.services, asked, Options())
    assert here.endpoint.asked[0][4] == Secret("k-123")
    (path,) = [path for path in here.nodes[0].files if path.endswith("secrets.env")]
    assert b"k-123" in here.nodes[0].files[path]
    assert here.nodes[0].modes[path] == 0o600
    commands = [command for node in here.nodes for command in node.commands]
    assert "k-123" not in f"{commands} {outcome.plan} {here.sink.happenings}"
    assert not any(path.endswith("secrets.env") for path in here.nodes[1].files)


async def test_one_node_needs_no_other() -> None:
    """A recipe for one node uses the head, and leaves the rest of the cluster alone."""
    here = make_scene()
    here.nodes[0].script = HEAD
    outcome = await up(here.services, request(recipe=recipe(profile="one-node")), Options())
    assert outcome.done == "ready"
    assert {node for node, _ in here.journal} == {"spark-1"}


async def test_simulated_answers_stay_marked() -> None:
    """The simulator's answers are marked by the endpoint and nothing on the way loses that."""
    here = make_scene(endpoint=FakeEndpoint(Answer("x", 1, 1, 0.1, 0.1, simulated=True)))
    outcome = await brought(here)
    assert outcome.answer is not None and outcome.answer.simulated
    assert all(spec.labels["simulated"] == "true" for spec in outcome.plan.specs)


SOUP = "rowspan kernel glob enumerable yacht pivot lantern cobalt tensor mango vortex quilt"


@pytest.mark.parametrize(
    "texts, garbled, asked",
    [
        ([SOUP], True, 4),
        (["Paris", "5", "Thursday"], False, 4),
        (["Bonjour", "six", "Friday"], False, 4),
    ],
)
async def test_the_answers_of_a_real_model_are_judged(texts: list[str], garbled: bool, asked: int) -> None:
    """Guards an owner whose model is fluent in nothing; and a model that errs, which is not called garbled."""
    here = make_scene()
    outcome = await brought(here)
    recipe = outcome.plan.recipe
    outcome.plan = replace(outcome.plan, recipe=replace(recipe, model=replace(recipe.model, simulated=False)))
    here.endpoint.given = [replace(ANSWER, text=text) for text in texts]
    await launch._judged(here.services, outcome)
    assert (outcome.garbled, len(here.endpoint.asked)) == (garbled, asked)
