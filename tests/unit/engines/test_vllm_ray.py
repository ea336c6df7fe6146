"""vLLM on Ray: one server on the head, a launcher on every node, and nothing of a node carried to another."""

import json
from dataclasses import replace

from sparkwright.domain.command import Secret
from sparkwright.domain.deployment import Phase
from sparkwright.domain.plan import RankSpec
from sparkwright.domain.recipe import Parallelism, Recipe, Runtime
from sparkwright.engines.catalog import engine
from unit.engines.samples import hub_context, placement, ray_recipe
from unit.for_each import for_each

TWO = ray_recipe(Runtime.DOCKER)
CONTEXT = replace(hub_context(), launch_key=Secret("l-456"))
READ = engine("vllm-ray").read


def render_ranks(recipe: Recipe = TWO) -> tuple[RankSpec, ...]:
    return engine("vllm-ray").render(recipe, placement(recipe.nodes), CONTEXT)


def finding_codes(recipe: Recipe) -> list[str]:
    return [finding.code for finding in engine("vllm-ray").check(recipe)]


def test_one_server_and_no_word_of_the_native_mode() -> None:
    """Ray spreads the workers: node ranks, headless and a master address belong to the other mode."""
    head, worker = render_ranks()
    assert head.engine_words[:1] == ("serve",)
    assert worker.engine_words == ()
    native = {"--nnodes", "--node-rank", "--headless", "--master-addr", "--master-port"}
    assert not native & {*head.argv, *worker.argv}


def test_nothing_that_differs_between_nodes_is_carried_over() -> None:
    """vLLM hands the head's environment to all workers, HCA and interface names too, unless this file disables it."""
    head, worker = render_ranks()
    (listed,) = [json.loads(f.text) for f in head.files if f.name == "ray_non_carry_over_env_vars.json"]
    differing = {name for name in head.env if head.env[name] != worker.env.get(name)}
    assert {"VLLM_HOST_IP", "NCCL_IB_HCA", "NCCL_SOCKET_IFNAME", "VLLM_CONFIG_ROOT"} <= differing
    assert differing | {"VLLM_API_KEY", "RAY_AUTH_TOKEN", "SPARKWRIGHT_RANK_DIR", "PATH"} <= set(listed)
    assert head.env["VLLM_CONFIG_ROOT"] == "/run/sparkwright/files"


def test_ray_asks_every_rank_for_the_key_of_the_launch() -> None:
    """It listens on all interfaces; an old head, or a stranger, lets nobody in and gets nowhere."""
    for spec in render_ranks():
        assert spec.secrets["RAY_AUTH_TOKEN"].reveal() == "l-456"
        assert spec.env["RAY_AUTH_MODE"] == "token"
        assert "l-456" not in " ".join((*spec.argv, *spec.env.values()))
    assert "VLLM_API_KEY" not in render_ranks()[1].secrets


def test_what_does_not_go_with_ray_is_named() -> None:
    """Headless, replicas and a single node: each with the engine that does it."""
    assert finding_codes(TWO) == []
    assert finding_codes(replace(TWO, flags={"headless": True})) == ["ENG028"]
    assert finding_codes(replace(TWO, parallelism=Parallelism(dp=2))) == ["ENG029"]
    assert finding_codes(replace(TWO, nodes=1, parallelism=Parallelism())) == ["ENG031"]


@for_each(
    "line, phase, text",
    [
        ("ray: 1 of 2 nodes active, 1 of 2 GPUs", Phase.START, "1 of 2 nodes in Ray"),
        ("ray: cluster is complete: 2 nodes, 2 GPUs", Phase.START, "cluster is complete: 2 nodes, 2 GPUs"),
        ("ray: waits for the head's Ray at 10.0.0.1:25000", Phase.START, "waits for Ray at 10.0.0.1:25000"),
        ("ray: joined the cluster at 10.0.0.1:25000; what", Phase.SERVER, "joined Ray at 10.0.0.1:25000"),
        ("(RayWorkerProc pid=7, ip=10.0.0.2) INFO 11-21 04:09:41 [gpu.py:1] Loading weights took 5.10 seconds",
         Phase.LOAD, "read in 5.10 s"),
        ("(EngineCore pid=9) (RayWorkerWrapper pid=7) INFO 11-21 04:09:41 [gpu.py:1] Loading weights took 5.10 seconds "
         "[repeated 2x across cluster] (Ray deduplicates logs by default.)", Phase.LOAD, "read in 5.10 s"),
        ("INFO 11-21 04:09:41 [api.py:1] Supported tasks: ['generate']", Phase.SERVER, "server starts"),
    ],
)  # fmt: skip
def test_lines_of_launcher_ray_and_vllm_are_understood(line: str, phase: Phase, text: str) -> None:
    """Three programs write one log; Ray's prefix hides nothing of what vLLM reports."""
    event = READ(line)
    assert event
    assert (event.phase, event.text, event.error) == (phase, text, False)


def test_a_missing_node_is_the_error() -> None:
    """The launcher's sentence names the address, and is what a person is reported."""
    event = READ("ray: error: the cluster did not come up: 1 of 2 nodes active, 1 of 2 GPUs; missing: 10.0.0.2")
    assert event
    assert event.error
    assert event.text.endswith("missing: 10.0.0.2")
    worker = READ("(RayWorkerProc pid=7, ip=10.0.0.2) torch.OutOfMemoryError: CUDA out of memory.")
    assert worker
    assert worker.error
