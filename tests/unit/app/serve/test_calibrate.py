"""The reports of engines at a start, kept for the next plan: on two fake nodes, with lines that vLLM 0.21.0 prints."""

from dataclasses import replace

from fakes.calibrations import FakeCalibrations
from fakes.endpoint import ANSWER, FakeEndpoint
from sparkwright.app.serve.launch import Options, up
from sparkwright.app.serve.prepare import Outcome, prepare
from sparkwright.domain.errors import NotReady
from sparkwright.domain.progress import Notice
from sparkwright.domain.units import GIB
from sparkwright.planner.calibrate import conditions, measured
from unit.app.scene import COMPILES, HEAD, JOINS, LOADS, READY, WARM, ClusterScene, make_scene, recipe, request

_SAYS = "(Worker_TP{0} pid=1) INFO 11-21 09:01:57 [x.py:1] "
LOADED = _SAYS + "Model loading took {1} GiB memory and 8.84 seconds"
POOL = _SAYS + "Available KV cache memory: 48.18 GiB"
TOKENS = "(EngineCore pid=1) INFO 11-21 09:01:58 [kv_cache_utils.py:1710] GPU KV cache size: 814,848 tokens"


def talking() -> ClusterScene:
    """Both ranks report their memory."""
    here = make_scene()
    here.nodes[0].script = (JOINS, 1.0, LOADS, 2.0, LOADED.format(0, "62.76"), POOL.format(0), TOKENS, 1.0, READY)
    here.nodes[1].script = (JOINS, 1.0, LOADS, 2.0, LOADED.format(1, "62.70"), POOL.format(1), COMPILES, 1.0, WARM)
    return here


async def prepare_again(here: ClusterScene, **more: object) -> Outcome:
    return await prepare(here.services, request(**more))


async def test_each_rank_is_kept_with_its_conditions() -> None:
    """Figures, node, phases and time; marked as simulated, for the recipe is the simulator's."""
    here = talking()
    await up(here.services, request(), Options())
    head, worker = here.calibrations.kept.values()
    assert (head.weights, head.kv, head.kv_tokens) == (round(62.76 * GIB), round(48.18 * GIB), 814_848)
    assert (worker.weights, worker.kv, worker.kv_tokens) == (round(62.70 * GIB), round(48.18 * GIB), None)
    assert [(c.conditions.rank, c.conditions.node) for c in (head, worker)] == [(0, "spark-1"), (1, "spark-2")]
    assert [name for name, _ in head.phases] == ["rendezvous", "load", "warmup", "server", "answer"]
    assert (head.source, head.at > 0, head.conditions.simulated) == ("twin", True, True)


async def test_the_next_plan_knows_them() -> None:
    """Node by node, as they were measured there."""
    here = talking()
    assert (await prepare_again(here)).cluster_state.calibrations == {}
    await up(here.services, request(), Options())
    found = (await prepare_again(here)).cluster_state.calibrations
    assert {node: (c.weights, c.differs) for node, c in found.items()} == {
        "spark-1": (round(62.76 * GIB), ()),
        "spark-2": (round(62.70 * GIB), ()),
    }


async def test_a_rank_that_reported_nothing_is_spoken_for() -> None:
    """The head reports for all on Ray: ranks of tp are alike, and the plan reports whose figures they are."""
    here = talking()
    here.nodes[1].script = (JOINS, 1.0, LOADS, 1.0, WARM)
    await up(here.services, request(), Options())
    assert len(here.calibrations.kept) == 1
    found = (await prepare_again(here)).cluster_state.calibrations
    assert found["spark-2"].differs == ("another node", "rank 0 spoke")


async def test_a_start_that_failed_is_not_kept() -> None:
    """A failed start is not kept, nor one that reported nothing of memory."""
    here = make_scene()
    here.nodes[0].script = HEAD
    await up(here.services, request(), Options())
    assert here.calibrations.kept == {}


async def test_a_log_given_by_hand_comes_first() -> None:
    """It is what the user asks to plan with, whatever was kept."""
    here = talking()
    await up(here.services, request(), Options())
    given = measured(
        {"weights_gib": "70"}, conditions(recipe(), True), source="a.log", differs=("a log given by hand",)
    )
    found = (await prepare_again(here, measured=(given,))).cluster_state.calibrations
    assert {c.weights for c in found.values()} == {70 * GIB}
    assert found["spark-1"].differs == ("a log given by hand",)


async def test_a_disk_that_is_full_does_not_fail_the_start() -> None:
    """The endpoint serves; that the figures are lost is reported once."""
    here = replace(talking(), calibrations=FakeCalibrations("disk full"))
    outcome = await up(here.services, request(), Options())
    assert outcome.done == "ready"
    said = [notice.text for notice in here.sink.of(Notice) if "disk full" in notice.text]
    assert said == ["the engine's figures are not kept for the next plan: disk full"]


async def test_a_longer_watch_keeps_no_times() -> None:
    """The ranks were started before: their log is read from its beginning, at once."""
    here = replace(talking(), endpoint=FakeEndpoint(NotReady("not yet"), ANSWER))
    await up(here.services, request(), Options(detach=True))
    assert here.calibrations.kept == {}
    assert (await up(here.services, request(), Options())).done == "ready"
    assert [(one.weights is not None, one.phases) for one in here.calibrations.kept.values()] == [(True, ())] * 2
