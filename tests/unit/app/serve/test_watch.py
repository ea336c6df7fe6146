"""Watching ranks start: phases, ends and silences, by a clock that jumps."""

import asyncio
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fakes.endpoint import ANSWER, FakeEndpoint
from fakes.rank_node import Exit, Script
from sparkwright.app.serve.launch import Options, up
from sparkwright.app.serve.ready import watched
from sparkwright.app.serve.watch import StartWatch
from sparkwright.domain.deployment import PHASE_ORDER
from sparkwright.domain.errors import NotReady, Unreachable
from sparkwright.domain.progress import Notice, RankPhase
from sparkwright.domain.recipe import PhaseTime
from sparkwright.engines.catalog import engine
from sparkwright.recipes.load import load_recipe
from unit.app.scene import COMPILES, HEAD, JOINS, LOADS, READY, SHARD, WARM, ClusterScene, make_scene, recipe, request

ERROR = "(Worker_TP1 pid=1) ERROR 11-21 09:02:00 [multiproc_executor.py:857] torch.OutOfMemoryError: CUDA out of memory"


def scene_of(head: Script = HEAD, worker: Script = (JOINS, LOADS, COMPILES, WARM)) -> ClusterScene:
    here = make_scene()
    here.nodes[0].script, here.nodes[1].script = head, worker
    return here


async def failure(here: ClusterScene, **more: Any) -> NotReady:
    with pytest.raises(NotReady) as caught:
        await up(here.services, request(**more), Options())
    return caught.value


async def test_phases_follow_each_other_with_their_times() -> None:
    """Each phase of the head has its time, once, in order, from the start to the answer."""
    here = scene_of((2.0, JOINS, 1.0, LOADS, SHARD, 4.0, COMPILES, 3.0, READY))
    outcome = await up(here.services, request(), Options())
    steps = dict(outcome.steps)
    assert (steps["start"], steps["rendezvous"], steps["load"], steps["compile"]) == (2.0, 1.0, 4.0, 3.0)
    assert outcome.answer == ANSWER


async def test_a_phase_that_was_left_is_not_entered_again() -> None:
    """A late line of an earlier phase (a draft model that loads after compiling) does not turn the clock back."""
    here = scene_of((JOINS, LOADS, 2.0, COMPILES, 3.0, LOADS, 4.0, READY))
    steps = [name for name, _ in (await up(here.services, request(), Options())).steps]
    phases = [name for name in steps if name in PHASE_ORDER]
    assert len(phases) == len(set(phases))
    assert phases == sorted(phases, key=PHASE_ORDER.index)


async def test_progress_is_reported_with_amount_and_usual_time() -> None:
    """A long load shows how far it is, and what is usual for it by the recipe."""
    here = scene_of()
    await up(here.services, request(), Options())
    shards = [phase for phase in here.sink.of(RankPhase) if phase.unit == "shards"]
    assert (shards[0].rank, shards[0].done, shards[0].total) == (0, 1.0, 4.0)
    assert shards[0].usual == recipe().phases["load"].usual


async def test_only_the_head_reports_when_it_is_ready() -> None:
    """A worker's readiness line (an engine that prints one on every rank) is not the endpoint's."""
    here = scene_of((JOINS, 5.0, READY), (JOINS, READY, 3.0, WARM))
    here.endpoint = FakeEndpoint(ANSWER)
    outcome = await up(here.services, request(), Options())
    assert dict(outcome.steps)["rendezvous"] == 5.0


# The end of a rank


@pytest.mark.parametrize(("rank", "node"), [(0, "spark-1"), (1, "spark-2")])
async def test_the_end_of_any_rank_ends_the_wait_at_once(rank: int, node: str) -> None:
    """The wait is a second at most after any rank's end, and not the phase's limit; code, phase and last line are
    reported."""
    scripts: list[Script] = [(JOINS, LOADS, 1000.0), (JOINS, LOADS, 1000.0)]
    scripts[rank] = (JOINS, LOADS, SHARD, 5.0, "dying now", Exit(1))
    here = scene_of(*scripts)
    error = await failure(here)
    assert f"rank {rank} on {node} exited with code 1 in phase load after 5.0 s" in error.message
    assert error.tail[-1] == "dying now"
    assert here.clock.elapsed < 200


@pytest.mark.parametrize(
    ("how", "why"),
    [
        (Exit(137), "SIGKILL: often the kernel's out-of-memory killer"),
        (Exit(137, oom=True), "killed: the container's memory limit"),
        (Exit(139), "SIGSEGV"),
        (Exit(143), "SIGTERM"),
    ],
)
async def test_codes_of_signals_are_explained(how: Exit, why: str) -> None:
    """A number is no reason."""
    assert f"({why})" in (await failure(scene_of(worker=(JOINS, how)))).message


async def test_what_ended_first_is_the_cause() -> None:
    """One end is followed by others: the first by the nodes' clocks is named first, then the rest."""
    here = scene_of((JOINS, 5.0, Exit(1)), (JOINS, 5.2, Exit(9, ago=2.0)))
    message = (await failure(here)).message
    assert message.startswith("rank 1 on spark-2 exited with code 9")
    assert "rank 0 on spark-1 exited with code 1" in message


async def test_error_lines_come_before_the_last_lines() -> None:
    """An error line may be far above the last lines: it is shown first, and nothing twice."""
    chatter = tuple(f"chatter {number}" for number in range(100))
    error = await failure(scene_of(worker=(JOINS, ERROR, *chatter, Exit(1))))
    assert error.tail[0] == ERROR
    assert error.tail[-1] == "chatter 99"
    assert len(error.tail) < 40
    near = await failure(scene_of(worker=(JOINS, ERROR, Exit(1))))
    assert near.tail == (JOINS, ERROR)


async def test_every_line_is_kept_as_evidence() -> None:
    """The saved log of a rank is all that it printed."""
    here = scene_of(worker=(JOINS, "odd", "", "end", Exit(3)))
    await failure(here)
    text = here.artifacts.saved["twin", "rank1-spark-2.log"]
    assert [line for line in text.splitlines() if line] == [JOINS, "odd", "end"]


# Silence


def limits(**seconds: float) -> Any:
    found = recipe()
    return replace(found, phases={name: PhaseTime(1.0, limit) for name, limit in seconds.items()})


async def test_no_progress_is_stuck_with_rank_and_reason() -> None:
    """Seconds after the limit, not minutes: which rank the others wait for, in which phase, and why that is usual."""
    here = scene_of((JOINS, LOADS, SHARD), (JOINS, LOADS, COMPILES))
    error = await failure(here, recipe=limits(load=20.0))
    assert error.message.startswith("stuck: no rank has progressed for 2")
    assert "allowed in phase load: 20 s" in error.message
    assert "rank 0 stands still at load: reading weights makes no progress" in error.message
    assert "rank 0 on spark-1 last printed: Loading safetensors checkpoint shards" in error.message
    assert SHARD in error.tail
    assert "phases.load.stuck_after" in error.hint
    assert 20 < here.clock.elapsed < 200


async def test_a_rank_that_never_joined_is_named() -> None:
    """The head waits for ever at the rendezvous: it is the other one that is missing."""
    here = scene_of((JOINS,), ())
    error = await failure(here, recipe=limits(start=20.0, rendezvous=20.0))
    assert "rank 1 has not joined" in error.message
    assert "rank 1 on spark-2 last printed: started, nothing printed yet" in error.message


async def test_one_rank_that_moves_means_that_nobody_is_stuck() -> None:
    """Workers print nothing while weights load: the silence that counts is that of all together."""
    slow: Script = (JOINS, *((15.0, SHARD) * 6), COMPILES, READY)
    here = scene_of(slow, (JOINS, LOADS))
    outcome = await up(here.services, request(recipe=limits(load=20.0, rendezvous=20.0, start=20.0)), Options())
    assert outcome.done == "ready"


DATA = Path(__file__).parents[3] / "data/captures"
_AT = re.compile(r"\d\d-\d\d (\d\d):(\d\d):(\d\d)")


def played(name: str) -> Script:
    """A recording as a script: its lines, with the pauses that its time stamps show."""
    script: list[str | float] = []
    last = None
    for line in (DATA / f"{name}.log").read_text().splitlines():
        if found := _AT.search(line[:80]):
            hours, minutes, seconds = map(int, found.groups())
            now = hours * 3600.0 + minutes * 60 + seconds
            script += [now - last] if last is not None and now > last else []
            last = now
        script.append(line)
    return script


@pytest.mark.parametrize(("name", "limit"), [("vllm-0.32.0/healthy-tp1-compiled", 35.0), ("vllm-0.33.0/h-8b", 20.0)])
async def test_a_recorded_start_that_compiles_for_long_is_not_stuck(name: str, limit: float) -> None:
    """Both compile for longer than `load` may be silent here; that phase has a limit of its own."""
    here = scene_of(played(name), ())
    found = limits(start=100.0, rendezvous=100.0, load=limit)
    outcome = await up(here.services, request(recipe=found), Options())
    assert outcome.done == "ready"
    assert {"compile", "server"} <= dict(outcome.steps).keys()


async def test_new_words_that_nobody_understands_are_signs_of_life() -> None:
    """An engine that goes on printing lines of a wording from the future lives; the same line again is no news."""
    news: Script = tuple(part for word in "abcdefgh" for part in (15.0, f"INFO compiler: pass {word * 3} is done"))
    here = scene_of((JOINS, LOADS, *news, READY), (JOINS, LOADS))
    assert (await up(here.services, request(recipe=limits(load=20.0)), Options())).done == "ready"
    retries: Script = tuple(part for number in range(40) for part in (5.0, f"c10d: connecting again, try {number}"))
    here = scene_of((JOINS, LOADS, *retries), (JOINS, LOADS))
    error = await failure(here, recipe=limits(load=20.0))
    assert error.message.startswith("stuck: no rank has progressed for") and here.clock.elapsed < 250


async def test_an_engine_from_the_future_has_the_time_of_the_longest_phase() -> None:
    """Nobody read the log of 9.9.0: what looks like a load may be a compile, and its answer shows that it is ready."""
    here = scene_of((JOINS, LOADS, 100.0, "Ready: 9.9 serves", 900.0), (JOINS, LOADS, 1000.0))
    plan = (await up(here.services, request(), Options(detach=True))).plan
    chosen = replace(plan.recipe.engine, name="vllm", version="9.9.0")
    plan = replace(plan, recipe=replace(limits(load=20.0, compile=200.0), engine=chosen))
    here.endpoint = FakeEndpoint(*[NotReady("refused")] * 45, ANSWER, ANSWER)
    answer = await watched(here.services, plan, StartWatch(here.services, plan, engine("vllm")))
    assert answer == ANSWER
    told = [notice.text for notice in here.sink.of(Notice) if "was read here up to 0.33.0" in notice.text]
    assert len(told) == 1 and "vllm 9.9.0" in told[0]


async def test_chatter_is_no_progress() -> None:
    """Lines that report nothing about the start-up (a heartbeat in a deadlock) do not keep a dead start alive."""
    here = scene_of((JOINS, LOADS, *((5.0, "still waiting for shared memory broadcast block") * 20)), (JOINS, LOADS))
    error = await failure(here, recipe=limits(load=20.0))
    assert "stuck" in error.message
    assert here.clock.elapsed < 200


ODD = tuple(f"ZK-{number} qwrtz plmn" for number in range(30))


async def test_lines_that_nobody_understands_do_not_hide_an_answer() -> None:
    """A version with other lines: the API's answer decides that it is ready, once it gives one; the logs are kept."""
    here = scene_of((*ODD, 1000.0), (*ODD, 1000.0))
    here.endpoint = FakeEndpoint(NotReady("connection refused"), NotReady("connection refused"), ANSWER)
    outcome = await up(here.services, request(), Options())
    assert (outcome.done, outcome.answer) == ("ready", ANSWER)
    notices = [notice.text for notice in here.sink.of(Notice)]
    assert sum("no line of rank 0 on spark-1 is understood" in text for text in notices) == 1
    assert any("the logs that were not understood are in" in text for text in notices)
    assert "ZK-29" in here.artifacts.saved[outcome.plan.deployment, "rank0-spark-1.log"]


async def test_lines_that_nobody_understands_do_not_hide_an_end() -> None:
    """The process decides: its end is reported with its code, and what is not known of its phase."""
    here = scene_of((*ODD, 100.0, Exit(3)), (*ODD, 1000.0))
    here.endpoint = FakeEndpoint(NotReady("connection refused"))
    error = await failure(here)
    assert "rank 0 on spark-1 exited with code 3" in error.message
    assert "no line that it printed is understood" in error.message
    assert error.tail[-1] == ODD[-1]


async def test_the_limit_is_the_recipes_where_it_gives_one() -> None:
    """A slow disk is no error where the owner knows it."""
    here = scene_of((JOINS, LOADS, 100.0, COMPILES, READY), (JOINS, LOADS))
    outcome = await up(here.services, request(recipe=limits(load=200.0)), Options())
    assert outcome.done == "ready"


async def test_a_server_that_gives_no_answer_is_stuck() -> None:
    """Up is not ready: a question that is never answered ends after the phase's limit, with the model's last lines."""
    here = scene_of()

    class Silent(FakeEndpoint):
        async def ask(self, *_: Any) -> Any:
            await asyncio.Event().wait()

    here.endpoint = Silent()
    error = await failure(here, recipe=limits(answer=0.05))
    assert "has given no complete answer" in error.message
    assert [node.running for node in here.nodes] == [[], []]


# Lost contact


async def test_a_broken_connection_is_taken_up_again() -> None:
    """A laptop changes its network: the log is read on, no line twice, and the start goes on."""
    here = scene_of((JOINS, LOADS, 3.0, COMPILES, READY))
    node, played, cut = here.nodes[0], here.nodes[0]._play, []

    async def cut_once(*rank: Any) -> Any:
        async for line in played(*rank):
            if line == COMPILES and not cut:
                cut.append(line)
                raise Unreachable("spark-1", "connection lost")
            yield line

    node._play = cut_once  # type: ignore[method-assign]
    outcome = await up(here.services, request(), Options())
    assert outcome.done == "ready"
    assert cut
    assert [name for name, _ in outcome.steps].count("compile") == 1


async def test_a_node_that_stays_away_ends_the_wait() -> None:
    """Half a minute without contact: the error is the lost contact, and the ranks that can be reached are stopped."""
    here = scene_of((JOINS, LOADS))

    async def cut_always(*rank: Any) -> Any:
        raise Unreachable("spark-1", "connection lost")
        yield ""

    here.nodes[0]._play = cut_always  # type: ignore[method-assign]
    with pytest.raises(Unreachable):
        await up(here.services, request(), Options())
    assert here.nodes[1].running == []


BACKGROUND = """name: r
title: t
model: {path: /m/a.bin, served_name: m}
engine: {name: custom, runtime: process, command: [serve, --host, "{host}", --port, "{port}"]}
"""


async def test_a_server_that_answers_from_the_background_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards a fork: its child answers before the end of the first process is known, and `status` says stopped then."""

    async def ended(*_: object) -> bool:
        return False

    monkeypatch.setattr("sparkwright.app.serve.watch.runs", ended)
    here = make_scene(1)
    here.nodes[0].script = ("loading", 60.0, Exit(0))
    here.endpoint = FakeEndpoint(ANSWER)
    forks = load_recipe(BACKGROUND, "r.yaml")
    forks = replace(forks, model=replace(forks.model, simulated=True))  # nothing to copy
    assert "gone into the background" in (await failure(here, recipe=forks)).message


@pytest.mark.parametrize(("window", "warned"), [(8192, True), (262144, False)])
async def test_a_window_that_the_engine_made_smaller_is_named(window: int, warned: bool) -> None:
    """Guards TensorFold's start that takes 262,144 and allocates 8,192: a long prompt would be refused later."""
    log = """  definition:
    log: {rule: [{phase: load, pattern: 'reply window (?P<w>\\d+)', facts: {context: w}}]}
serving: {context: 262144}
"""
    text = f"""name: r
title: t
model: {{path: /m/a.bin, served_name: m}}
engine:
  name: custom
  runtime: process
  command: [serve, --host, "{{host}}", --port, "{{port}}"]
{log}"""
    made = load_recipe(text, "r.yaml")
    here = make_scene(1)
    here.nodes[0].script = (f"allocated prompt/reply window {window}", 60.0, "still there", 3600.0)
    here.endpoint = FakeEndpoint(ANSWER)
    await up(here.services, request(recipe=replace(made, model=replace(made.model, simulated=True))), Options())
    said = [one.text for one in here.sink.of(Notice) if "tokens at most" in one.text]
    assert bool(said) == warned and all("8,192" in one and "262,144" in one for one in said)
