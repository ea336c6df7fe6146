"""The gate in a plan: what does not fit is refused with what would, and nothing simulated is."""

import asyncio
from dataclasses import replace

import pytest
import yaml

from sparkwright.app.plan.gate import judge_of, optimum
from sparkwright.app.plan.planning import RecipeRefusal, make_plan
from sparkwright.app.serve.prepare import planned
from sparkwright.app.services import ClusterState
from sparkwright.cli.plan_result import plan_json
from sparkwright.cli.text import loaders_text
from sparkwright.domain.calibration import Calibration
from sparkwright.domain.checkpoint import Checkpoint, Stored
from sparkwright.domain.errors import UsageError
from sparkwright.domain.plan import Plan, stopping
from sparkwright.domain.recipe import EngineChoice, Model, Parallelism, Recipe, RecipeState, Serving
from sparkwright.domain.units import GIB
from sparkwright.domain.verdict import Goal
from sparkwright.planner import calibrate
from sparkwright.planner.knobs import kv_dtypes
from sparkwright.planner.remedies import yaml_lines
from sparkwright.recipes.load import load_recipe
from sparkwright.recipes.problems import overlay
from unit.app.plan.test_plan import IDENTITY
from unit.app.scene import SHIPPED, make_scene, recipe, request
from unit.planner.memory_samples import gb10_node, model_shape

NVFP4 = model_shape("minimax-m2.7-nvfp4")


def surveyed(taken: float = 6.0, stored: tuple[Stored, ...] = ()) -> ClusterState:
    facts = {name: replace(gb10_node(taken), node=name, identity=IDENTITY) for name in ("spark-1", "spark-2")}
    return ClusterState(facts, stored=stored)


def real_recipe(**serving: object) -> Recipe:
    """Two ranks of vLLM with weights of about 63 GiB each."""
    model = Model("org/minimax", size=int(125.2 * GIB), shape=NVFP4)
    limits = Serving(**{"context": 196608, "sequences": 8, "memory_fraction": 0.82, **serving})  # type: ignore[arg-type]
    engine = EngineChoice("vllm", "0.21.0", image=f"vllm/vllm-openai:v0.21.0@sha256:{'0' * 64}")
    return replace(recipe(), model=model, engine=engine, serving=limits)


def make_plan_for(given: Recipe, cluster_state: ClusterState) -> Plan:
    return make_plan(make_scene().services, request(recipe=given), cluster_state)


def memory_findings(plan: Plan) -> dict[str, str]:
    return {found.code: found.remedy for found in stopping(plan, "") if found.code.startswith("MEM")}


def test_what_fits_passes() -> None:
    """The plan has figures of its KV cache and its speed."""
    plan = make_plan_for(real_recipe(), surveyed())
    assert plan.verdict and plan.verdict.fits and not plan.remedies and not memory_findings(plan)
    assert plan.verdict.kv and plan.verdict.kv.tokens > 196608
    assert [(speed.load.depth, speed.load.concurrency) for speed in plan.speeds[:2]] == [(0, 1), (196608, 1)]
    assert plan.speeds[2].load.concurrency == 8


def test_what_does_not_fit_is_refused_with_what_does() -> None:
    """The finding reports what the search found, in place of a rule's own guess; a reason lifts it."""
    plan = make_plan_for(real_recipe(memory_fraction=0.9), surveyed(taken=20.0))
    told = memory_findings(plan)
    assert list(told) == ["MEM002"] and plan.verdict and plan.verdict.lack == "claim"
    assert told["MEM002"] == plan.remedies[0].change
    assert "serving.memory_fraction" in plan.remedies[0].variant.keys
    assert not memory_findings(make_plan_for(plan.remedies[0].recipe, surveyed(taken=20.0)))
    assert not [found for found in stopping(plan, "I know") if found.code == "MEM002"]


def test_the_json_has_all_of_it() -> None:
    """Keys to write, actions to take, costs, and the verdict after them."""
    told = plan_json(make_plan_for(real_recipe(memory_fraction=0.9), surveyed(taken=20.0)), ())
    first = told["remedies"][0]
    assert list(first) == ["change", "costs", "keys", "actions", "verdict"] and first["verdict"]["fits"]
    assert not told["verdict"]["fits"] and not told["memory"][0]["fits"]
    assert told["speeds"][0]["load"]["depth"] == 0


def test_another_checkpoint_on_a_disk_is_a_remedy() -> None:
    """Report 001: the one that fits had been on both disks for weeks."""
    files = Checkpoint("/hub/snapshots/x", "/hub", "x", 122 * GIB, 20, shape=NVFP4)
    stored = Stored("spark-2", "org/minimax-nvfp4", "", "nvfp4", files)
    large = replace(real_recipe(), model=replace(real_recipe().model, size=230 * GIB))
    plan = make_plan_for(large, surveyed(stored=(stored,)))
    (found,) = (remedy for remedy in plan.remedies if "org/minimax-nvfp4" in remedy.change)
    assert found.verdict.fits and any("122.0 GiB on spark-2" in cost for cost in found.costs)


def test_a_remedy_passes_every_check() -> None:
    """A context above the model's own is cut to the model's maximum first; a remedy that keeps it is none."""
    plan = make_plan_for(real_recipe(context=4 * 196608), surveyed())
    assert plan.verdict and plan.verdict.lack == "context"
    assert plan.remedies[0].variant.keys == {"serving.context": 196608}
    for remedy in plan.remedies:
        stops = stopping(make_plan_for(remedy.recipe, surveyed()), "") if remedy.recipe.nodes == 2 else ()
        assert [found.code for found in stops if not found.code.startswith("HOST")] == []


def test_where_no_remedy_passes_the_obstacle_is_named() -> None:
    """A recipe without an image is refused whatever its memory settings are."""
    without = replace(real_recipe(memory_fraction=0.9), engine=EngineChoice("vllm", "0.21.0"))
    plan = make_plan_for(without, surveyed(taken=20.0))
    assert plan.remedies == () and "the first obstacle is ENG016" in memory_findings(plan)["MEM002"]


def test_what_refused_before_refuses_like_all_checks_together() -> None:
    """Guards the order in which variants are checked: it changes no answer, whatever refused the one before."""
    judge = judge_of(request(recipe=real_recipe()), surveyed(), make_scene().services.cluster.nodes)
    works, split = real_recipe(), replace(real_recipe(), parallelism=Parallelism(tp=3), nodes=3)
    refused = replace(works, state=RecipeState.REFUSED)
    each = [works, split, refused, replace(split, state=RecipeState.REFUSED), works, split]
    cluster, library = make_scene().services.cluster, surveyed().flags
    asked = RecipeRefusal(cluster, library)
    together = [bool(asked(one, judge)) for one in each]
    assert together == [bool(RecipeRefusal(cluster, library)(one, judge)) for one in each]
    assert together == [False, True, True, True, False, True]


def test_where_nothing_helps_that_is_reported() -> None:
    """Not a guess of a rule that has not been tried."""
    plan = make_plan_for(replace(real_recipe(), model=replace(real_recipe().model, size=900 * GIB)), surveyed())
    assert not plan.remedies
    assert all("a smaller checkpoint or another model is needed" in told for told in memory_findings(plan).values())


def test_nothing_simulated_is_kept_from_starting() -> None:
    """The simulator allocates nothing, whatever the nodes have; and there is nothing to optimize."""
    plan = make_plan_for(recipe(), surveyed(taken=110.0))
    assert plan.remedies == () and not memory_findings(plan)
    with pytest.raises(UsageError) as caught:
        asyncio.run(optimum(make_scene().services, request(), Goal.CONTEXT))
    assert "there is nothing to optimize" in caught.value.message


@pytest.mark.parametrize(
    ("engine", "version", "has", "lacks"),
    [("vllm", "0.21.0", "fp8", "q8_0"), ("sglang", "0.5.23", "fp8_e4m3", "fp8"), ("llama-cpp", "b1", "q8_0", "fp8")],
)
def test_kv_types_are_the_engines_own(engine: str, version: str, has: str, lacks: str) -> None:
    """The types are those of the engine's version, from the data of its options."""
    types = kv_dtypes(replace(real_recipe(), engine=EngineChoice(engine, version)))
    assert has in types and lacks not in types


async def test_a_recipe_that_cannot_be_planned_does_not_hide_the_others() -> None:
    """Too few nodes for one: the reason in its place, the others planned."""
    small = replace(recipe(), name="small", nodes=1, parallelism=replace(recipe().parallelism, tp=1))
    found = await planned(make_scene(1).services, [recipe(), small])
    assert [bool(one.outcome) for one in found] == [False, True]
    assert "wants 2 nodes, cluster lab has 1" in found[0].trouble


QUICK, DUMPER = (getattr(yaml, f"C{kind}", getattr(yaml, kind)) for kind in ("SafeLoader", "SafeDumper"))
NOT_NEEDED = ("default_profile", "notes", "references", "conditions", "published", "phases")
SHIPPED_REAL = [path.stem for path in sorted(SHIPPED.glob("*.yaml")) if "simulated: true" not in path.read_text()]


@pytest.mark.full
@pytest.mark.parametrize("name", SHIPPED_REAL)
def test_every_remedy_of_a_shipped_recipe_is_a_recipe(name: str) -> None:
    """Pasted as a profile it loads, means what was judged, and fits just so when nothing of the search is kept."""
    text = (SHIPPED / f"{name}.yaml").read_text()
    data, given = yaml.load(text, QUICK), load_recipe(text, f"{name}.yaml")
    facts = {f"spark-{i}": replace(gb10_node(50.0), node=f"spark-{i}", identity=IDENTITY) for i in range(1, 5)}
    here = make_scene(max(2, given.nodes))
    plan = make_plan(here.services, request(recipe=given), ClusterState(facts))
    judge = judge_of(request(recipe=given), ClusterState(facts), here.services.cluster.nodes[: given.nodes])
    refused = any("the first obstacle is" in found.remedy for found in stopping(plan, ""))
    counted = plan.verdict and plan.verdict.known and "sglang" not in name and not given.engine.memory
    assert plan.verdict and (plan.verdict.fits or plan.remedies or refused or not counted)
    for remedy in plan.remedies:
        profile = (data.get("profiles") or {}).get(given.profile, {})
        told = overlay(profile, yaml.safe_load("\n".join(yaml_lines(remedy.variant))))
        alone = {key: value for key, value in data.items() if key not in NOT_NEEDED}
        pasted = load_recipe(
            yaml.dump({**alone, "profiles": {"pasted": told}}, Dumper=DUMPER), f"{name}.yaml", "pasted"
        )
        assert (pasted.serving, pasted.nodes, pasted.parallelism) == (
            remedy.recipe.serving, remedy.recipe.nodes, remedy.recipe.parallelism,
        )  # fmt: skip
        assert dict(pasted.flags) == dict(remedy.recipe.flags)
        assert judge.verdict(pasted, remedy.variant.actions) == remedy.verdict


def test_a_loader_is_shown_with_what_an_earlier_start_took() -> None:
    """The loader may be another than the recipe's: what was tried here counts more than what others report."""
    here, state = make_scene(), surveyed()
    own, other = real_recipe(), replace(real_recipe(), flags={"load-format": "instanttensor"})
    for given, seconds in ((own, 300.0), (other, 90.0)):
        under = calibrate.conditions(given, False, rank=0, node="spark-1")
        phases = (("load", 10.0), ("compile", 10.0 + seconds))
        here.calibrations.save(Calibration(under, weights=60 * GIB, kept=GIB, phases=phases, at=1.0, source="v4"))
    plan = make_plan(here.services, request(recipe=own), state)
    costs = {cost.name: cost for cost in plan.loaders}
    assert (costs["default"].took, costs["instanttensor"].took, costs["fastsafetensors"].took) == (300.0, 90.0, None)
    first, *more = loaders_text(plan, why=True).splitlines()[1:]
    assert "default: 1.0 GiB of buffers" in first and "here 5 min" in loaders_text(plan, why=False)
    assert "instanttensor" in "".join(more) and "kept" not in first
