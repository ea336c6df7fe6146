"""An engine's report on a recipe before any node is asked."""

from dataclasses import replace

import pytest

from sparkwright.domain.errors import RecipeError
from sparkwright.domain.finding import Severity
from sparkwright.domain.plan import RankSpec
from sparkwright.domain.recipe import EngineChoice, Recipe, Runtime
from sparkwright.engines.catalog import ENGINES, engine, review
from sparkwright.engines.engine import served_name
from sparkwright.engines.environment import check_rdma
from sparkwright.engines.tables import emitted, metric_names, phase_times
from unit.engines.samples import hub_context, local_context, one_node_recipe, placement, shipped, small_recipe

VLLM = EngineChoice("vllm", "0.21.0", Runtime.PROCESS, venv="/opt/venv")


def finding_codes(recipe: Recipe) -> list[str]:
    return [finding.code for finding in engine(recipe.engine.name).check(recipe)]


def test_an_unknown_engine_lists_the_known_ones() -> None:
    """A wrong name ends with one message that reports what could have been written."""
    with pytest.raises(RecipeError, match=f"'nobodys' is not .* known: {', '.join(ENGINES)}"):
        engine("nobodys")


@pytest.mark.parametrize(("name", "profile"), [("deepseek-v4-flash", "1m"), ("simulator", ""), ("tiny-llama-cpp", "")])
def test_shipped_recipes_pass(name: str, profile: str) -> None:
    """The shipped recipes are within the engines' abilities."""
    assert finding_codes(shipped(name, profile)) == []


def test_per_rank_values_are_refused_in_a_recipe() -> None:
    """One VLLM_HOST_IP for all ranks, or one --port, would make every rank the same."""
    assert finding_codes(replace(one_node_recipe(), env={"VLLM_HOST_IP": "10.0.0.1"}, flags={})) == ["ENG010"]
    assert finding_codes(replace(one_node_recipe(), env={"VLLM_API_KEY": "k"}, flags={})) == ["ENG011"]
    assert finding_codes(replace(one_node_recipe(), env={"NCCL_IB_GID_INDEX": "3"}, flags={})) == ["ENG012"]
    assert finding_codes(replace(one_node_recipe(), env={}, flags={"node_rank": 1})) == ["ENG013"]


def test_ranks_and_nodes_must_match() -> None:
    """A GB10 node has one GPU: tp 4 on two nodes cannot start."""
    two = small_recipe(VLLM, nodes=2)
    assert finding_codes(two) == []
    assert finding_codes(replace(two, parallelism=replace(two.parallelism, tp=4))) == ["ENG014"]


def test_docker_needs_an_image() -> None:
    """Nothing can run without an image."""
    assert finding_codes(small_recipe(EngineChoice("vllm", "0.21.0", Runtime.DOCKER))) == ["ENG016"]


def test_llama_cpp_wants_a_file() -> None:
    """It loads one GGUF; a hub id or a folder would end it after its start."""
    tiny = shipped("tiny-llama-cpp")
    assert finding_codes(replace(tiny, model=replace(tiny.model, path="", id="org/name"))) == ["ENG017"]
    assert finding_codes(replace(tiny, model=replace(tiny.model, path="folder"))) == ["ENG017"]


def test_a_simulated_model_is_mounted_only_where_it_has_files() -> None:
    """Docker would make a missing folder on the node, as root; a staged one is mounted as for a real engine."""
    simulator = shipped("simulator", "docker")
    by_path = replace(simulator, model=replace(simulator.model, id="", path="tiny"))
    nothing, hub, folder = replace(hub_context(), models={}), hub_context(), local_context(2, "/data/tiny")
    cases = [(simulator, nothing), (by_path, local_context(2, "")), (simulator, hub), (by_path, folder)]
    mounted = [engine("simulator").render(recipe, placement(), context)[1].mounts for recipe, context in cases]
    assert [[(m.container, m.read_only) for m in mounts] for mounts in mounted] == [
        *([], []),
        *([("/models/hub", True)], [("/models/tiny", True)]),
    ]


def test_engines_keep_the_seam() -> None:
    """Every engine of the catalogue answers all of the protocol under its own name."""
    for name, found in ENGINES.items():
        assert found.name == name
        assert phase_times(found.name)
        assert metric_names(name)
        assert emitted(name)
        assert found.stop.signal == "SIGTERM"


def test_the_served_name_comes_from_the_path_if_not_given() -> None:
    """Clients can always name the model."""
    recipe = small_recipe(VLLM)
    assert served_name(replace(recipe, model=replace(recipe.model, served_name="", path="/m/tiny.gguf"))) == "tiny"


def test_rdma_by_force_on_a_node_without_it_is_named() -> None:
    """`hcas: []` promises plain TCP, and `NCCL_NET: IB` of a shipped recipe would end the start at the rendezvous."""
    spec = RankSpec(1, "spark-2", ("vllm",), {"NCCL_NET": "IB"}, Runtime.DOCKER)
    other = replace(spec, rank=0, node="spark-1", env={})
    (finding,) = check_rdma([other, spec])
    assert (finding.code, finding.severity, finding.subject) == ("ENG033", Severity.OVERRIDE, "spark-2")
    for env in ({"NCCL_NET": "IB", "NCCL_IB_HCA": "rocep1s0f0"}, {"NCCL_NET": "Socket"}, {}):
        assert [*check_rdma([other, replace(spec, env=env)])] == []
    assert [*check_rdma([spec])] == [], "one rank alone opens no network"


def test_a_review_reports_everything_once() -> None:
    """Two ranks with the same words give one finding each, and the recipe's own trouble is next to the flags'."""
    wrong = {"kv-cache-dtyp": "fp8", "node-rank": 1}
    recipe = replace(shipped("deepseek-v4-flash", "1m"), flags=wrong, env={"VLLM_ROT": "1"})
    specs = engine("vllm").render(recipe, placement(), hub_context())
    assert [f.code for f in review(recipe, specs)] == ["ENG013", "ENG005", "ENG001", "ENG008"]
