"""The exact command line and environment of every rank, kept as text under tests/data/argv (UPDATE_ARGV=1 rewrites)."""

import os
from dataclasses import replace

from sparkwright.domain.command import Secret
from sparkwright.domain.plan import Placement
from sparkwright.domain.recipe import EngineChoice, Recipe, Runtime
from sparkwright.engines.catalog import engine
from sparkwright.engines.engine import RenderContext
from sparkwright.engines.flag_data import flag_data
from sparkwright.engines.flags import check_flags, parse
from sparkwright.engines.tables import emitted
from unit.engines.samples import (
    DATA,
    hub_context,
    local_context,
    node_paths,
    on_one_node,
    one_node_recipe,
    placement,
    ray_recipe,
    sglang_recipe,
    shipped,
    trtllm_recipe,
    written,
)
from unit.for_each import for_each

Case = tuple[Recipe, Placement, RenderContext]
DEEPSEEK = shipped("deepseek-v4-flash", "1m")
# The shipped recipe insists on InfiniBand (NCCL_NET: IB), and a recipe's word wins; here the node's facts decide.
NO_NCCL = replace(DEEPSEEK, env={k: v for k, v in DEEPSEEK.env.items() if not k.startswith("NCCL_")})
TWIN_PATHS = RenderContext(node_paths(), pythons=dict.fromkeys(("spark-1", "spark-2"), "/opt/sparkwright/bin/python"))
LLAMA = shipped("tiny-llama-cpp")
LLAMA_PATH = "/home/ai/models/tiny.gguf"
LLAMA_VENV = replace(LLAMA, engine=replace(LLAMA.engine, venv="/opt/venv"))
RAY = ray_recipe(Runtime.DOCKER)
SGLANG = sglang_recipe(Runtime.DOCKER)
KEYED = replace(hub_context(), api_key=Secret("k-123"), launch_key=Secret("l-456"), deployment="mini")
VENV = RenderContext(node_paths(), dict.fromkeys(("spark-1", "spark-2"), "/srv/qwen3-8b"), launch_key=Secret("l-456"))
TRTLLM = trtllm_recipe(Runtime.DOCKER)
RPC = shipped("nemotron-3-super-llama-cpp-rpc")
RPC_DOCKER = replace(RPC, engine=EngineChoice("llama-cpp", RPC.engine.version, Runtime.DOCKER, image="llama.cpp:full"))
CASES: dict[str, Case] = {
    "deepseek-1m-rdma": (DEEPSEEK, placement(), hub_context()),
    "deepseek-1m-tcp": (NO_NCCL, placement(rdma=False), hub_context()),
    "vllm-one-node": (one_node_recipe(), placement(1), local_context(1, "/home/ai/models/qwen3-8b")),
    "llama-cpp": (LLAMA, placement(1), local_context(1, LLAMA_PATH, 8080)),
    "llama-cpp-venv": (LLAMA_VENV, placement(1), replace(local_context(1, LLAMA_PATH), api_key=Secret("k-123"))),
    "llama-rpc": (RPC, placement(), local_context(2, "/home/ai/models/nemotron.gguf", 8888)),
    "llama-rpc-docker": (RPC_DOCKER, placement(), local_context(2, "/home/ai/models/nemotron.gguf", 8888)),
    "trtllm-docker": (TRTLLM, placement(), replace(KEYED, api_key=None)),
    "trtllm-process": (trtllm_recipe(Runtime.PROCESS), placement(rdma=False), replace(VENV, deployment="mini")),
    "trtllm-one-node": (on_one_node(TRTLLM), placement(1), local_context(1, "/srv/qwen3-8b")),
    "ray-docker": (RAY, placement(), KEYED),
    "ray-process": (ray_recipe(Runtime.PROCESS), placement(rdma=False), VENV),
    "sglang-docker": (SGLANG, placement(), KEYED),
    "sglang-process": (sglang_recipe(Runtime.PROCESS), placement(rdma=False), VENV),
    "sglang-one-node": (on_one_node(SGLANG), placement(1), local_context(1, "/srv/qwen3-8b")),
    "twin-process": (shipped("simulator"), placement(rdma=False), TWIN_PATHS),
    "twin-docker": (shipped("simulator", "docker"), placement(rdma=False), TWIN_PATHS),
}


def read_for(recipe: Recipe) -> str:
    return "0.21.0" if recipe.engine.name in ("vllm", "vllm-ray", "simulator") else recipe.engine.version


RANKS = [(name, rank) for name, case in CASES.items() for rank in range(case[1].world)]


@for_each("name, rank", RANKS)
def test_a_rank_is_started_with_exactly_these_words(name: str, rank: int) -> None:
    """The snapshot shows everything that will run: any change of argv, environment or mounts is seen in review."""
    recipe, where, context = CASES[name]
    text = written(engine(recipe.engine.name).render(recipe, where, context)[rank])
    file = DATA / "argv" / f"{name}-rank{rank}.txt"
    if os.environ.get("UPDATE_ARGV"):
        file.write_text(text)
    assert text == file.read_text()


@for_each("name", CASES)
def test_rendered_flags_exist_in_the_engine(name: str) -> None:
    """Nothing that render writes is unknown to the engine's wheel."""
    recipe, where, context = CASES[name]
    for spec in engine(recipe.engine.name).render(recipe, where, context):
        assert check_flags(recipe.engine.name, read_for(recipe), spec.engine_words) == ()


@for_each("name", CASES)
def test_every_option_of_ours_is_listed_with_the_version_read(name: str) -> None:
    """data/emits.toml is complete: an option is either the recipe's own or one whose source was read."""
    recipe, where, context = CASES[name]
    chosen = engine(recipe.engine.name)
    data, _ = flag_data(recipe.engine.name, read_for(recipe))
    assert data is not None
    for spec in chosen.render(recipe, where, context):
        names = {g.word.removeprefix("--") for g in parse(data, spec.engine_words)} - {"no-enable-prefix-caching"}
        assert names - set(recipe.flags) <= set(emitted(chosen.name))


def test_all_ranks_get_the_same_model_and_limits() -> None:
    """Ranks that differ in anything but who they are would hang or answer nonsense."""
    head, worker = engine("vllm").render(*CASES["deepseek-1m-rdma"])
    own = {"--node-rank", "0", "1", "--headless", "--host", "192.168.100.10", "--port", "8000"}
    assert [w for w in head.argv if w not in own] == [w for w in worker.argv if w not in own]


def test_no_secret_is_in_argv_or_environment() -> None:
    """The key travels as a secret to the head only, and its text shows nowhere."""
    head, worker = engine("vllm").render(*CASES["deepseek-1m-rdma"])
    assert head.secrets["VLLM_API_KEY"].reveal() == "k-123"
    assert not worker.secrets
    assert "k-123" not in f"{head} {worker}"


def test_rdma_settings_follow_each_node() -> None:
    """Each rank names its own node's simulators; without RDMA nothing forces NCCL to look for it."""
    ranks = engine("vllm").render(*CASES["deepseek-1m-rdma"])
    assert [r.env["NCCL_IB_HCA"] for r in ranks] == ["rocep1s0f0,roceP2p1s0f0", "rocep1s0f1,roceP2p1s0f1"]
    assert [r.env["VLLM_HOST_IP"] for r in ranks] == ["192.168.100.10", "192.168.100.11"]
    assert all("NCCL_IB_GID_INDEX" not in r.env for r in ranks)
    for rank in engine("vllm").render(*CASES["deepseek-1m-tcp"]):
        assert rank.env["NCCL_IB_DISABLE"] == "1"
        assert "NCCL_NET" not in rank.env
        assert not rank.rdma


def test_one_node_has_no_trace_of_others() -> None:
    """A single node neither waits for peers nor listens for them."""
    (rank,) = engine("vllm").render(*CASES["vllm-one-node"])
    assert not {"--nnodes", "--master-addr", "--headless"} & set(rank.argv)
    assert not [name for name in rank.env if name.startswith("NCCL_")]
    assert rank.listens == (("127.0.0.1", 8000),)


def test_the_simulator_needs_no_devices() -> None:
    """Simulated ranks take no GPU and no RDMA device, and carry the label."""
    for rank in engine("simulator").render(*CASES["twin-docker"]):
        assert (rank.gpu, rank.rdma, rank.labels["simulated"]) == (False, False, "true")


def test_two_images_of_one_version_share_no_compile_cache() -> None:
    """Kernels cached by another build garble the output."""
    other = replace(DEEPSEEK, engine=replace(DEEPSEEK.engine, image="somebody/else:tag"))
    roots = {
        next(m.host for m in engine("vllm").render(r, placement(), hub_context())[0].mounts if m.container == "/cache")
        for r in (DEEPSEEK, other)
    }
    assert len(roots) == 2
