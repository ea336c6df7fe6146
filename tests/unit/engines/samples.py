"""Recipes, placements and contexts that the engine tests share."""

from dataclasses import replace
from pathlib import Path

from sparkwright.domain.cluster import NodePaths
from sparkwright.domain.command import Secret
from sparkwright.domain.facts import FabricChoice
from sparkwright.domain.plan import Placement, RankSpec
from sparkwright.domain.recipe import EngineChoice, Model, Parallelism, Parsers, Recipe, Runtime, Serving, Speculation
from sparkwright.engines.engine import RenderContext
from sparkwright.engines.options import merge_options
from sparkwright.recipes.load import load_recipe

ROOT = Path(__file__).parents[3]
SHIPPED = ROOT / "src/sparkwright/recipes/shipped"
DATA = ROOT / "tests/data"
# Different twins on the two nodes: what is right on one node must not be copied to the other.
HCAS = {"spark-1": ("rocep1s0f0", "roceP2p1s0f0"), "spark-2": ("rocep1s0f1", "roceP2p1s0f1")}
INTERFACE = {"spark-1": "enp1s0f0np0", "spark-2": "enp1s0f1np1"}


def shipped(name: str, profile: str = "") -> Recipe:
    return load_recipe((SHIPPED / f"{name}.yaml").read_text(), f"{name}.yaml", profile)


def placement(count: int = 2, rdma: bool = True) -> Placement:
    nodes = tuple(f"spark-{i + 1}" for i in range(count))
    fabric = {
        node: FabricChoice(f"192.168.100.{10 + i}", INTERFACE[node], HCAS[node] if rdma else ())
        for i, node in enumerate(nodes)
    }
    return Placement(nodes, fabric)


def node_paths(count: int = 2) -> dict[str, NodePaths]:
    home = "/home/ai"
    one = NodePaths(f"{home}/models", f"{home}/.cache/huggingface/hub", f"{home}/.cache/sparkwright", f"{home}/state")
    return {f"spark-{i + 1}": one for i in range(count)}


def hub_context(count: int = 2) -> RenderContext:
    snapshot = "/home/ai/.cache/huggingface/hub/models--deepseek-ai--DeepSeek-V4-Flash/snapshots/abc"
    models = {f"spark-{i + 1}": snapshot for i in range(count)}
    return RenderContext(node_paths(count), models, from_hub=True, bind="192.168.100.10", api_key=Secret("k-123"))


def local_context(count: int, path: str, port: int = 8000) -> RenderContext:
    return RenderContext(node_paths(count), {f"spark-{i + 1}": path for i in range(count)}, port=port)


def small_recipe(engine: EngineChoice, nodes: int = 1, **more: object) -> Recipe:
    """A recipe made by hand: what the schema cannot express is reported here."""
    model = Model(path="/models/qwen3-8b", served_name="qwen3-8b")
    return Recipe("small", "Small", model, engine, nodes, parallelism=Parallelism(tp=nodes), **more)  # type: ignore[arg-type]


def one_node_recipe() -> Recipe:
    engine = EngineChoice("vllm", "0.21.0", Runtime.PROCESS, venv="/opt/venv")
    serving = Serving(context=32768, sequences=16, memory_fraction=0.7)
    flags = merge_options({}, {"load_format": "dummy", "enable-prefix-caching": False, "port": 9999})
    return small_recipe(engine, serving=serving, flags=flags, env={"VLLM_LOGGING_LEVEL": "DEBUG"})


def _spread(name: str, version: str, runtime: Runtime, **more: object) -> Recipe:
    docker = runtime is Runtime.DOCKER
    engine = EngineChoice(name, version, runtime, image="org/image" if docker else "", venv="" if docker else "/opt/v")
    serving = Serving(context=32768, sequences=8, batched_tokens=2048, kv_dtype="fp8_e4m3", memory_fraction=0.8)
    return replace(small_recipe(engine, 2, **more), serving=serving)


def ray_recipe(runtime: Runtime) -> Recipe:
    return _spread("vllm-ray", "0.21.0", runtime, env={"VLLM_LOGGING_LEVEL": "DEBUG"})


def sglang_recipe(runtime: Runtime, version: str = "0.5.23") -> Recipe:
    """Its drafts, parsers and a flag of its own, so that the snapshot shows where they are."""
    parsers = Parsers(tool="qwen25", reasoning="qwen3")
    flags = {"attention-backend": "triton"}
    return _spread("sglang", version, runtime, speculation=Speculation("mtp", 3), parsers=parsers, flags=flags)


def trtllm_recipe(runtime: Runtime) -> Recipe:
    """Drafts and an entry of the options file, which snapshots name but do not show."""
    flags = {"extra_llm_api_options": {"cuda_graph_config": {"max_batch_size": 4}}}
    return _spread("trtllm", "1.3.0rc", runtime, speculation=Speculation("mtp", 2), flags=flags)


def on_one_node(recipe: Recipe) -> Recipe:
    return replace(recipe, nodes=1, parallelism=Parallelism())


def written(spec: RankSpec) -> str:
    """A rank as text: one word a line, then environment, mounts and the rest."""
    lines = [f"rank {spec.rank} on {spec.node}, {spec.runtime}", f"image {spec.image}", f"entrypoint {spec.entrypoint}"]
    lines += ["", "argv", *(f"  {word}" for word in spec.argv)]
    lines += ["", "env", *(f"  {name}={value}" for name, value in spec.env.items())]
    lines += ["", "secrets", *(f"  {name}={value}" for name, value in spec.secrets.items())]
    lines += [
        "",
        "mounts",
        *(f"  {m.host} -> {m.container}{' (read-only)' if m.read_only else ''}" for m in spec.mounts),
    ]
    if spec.files:
        lines += ["", "files", *(f"  {file.name}{' (secret)' if file.secret else ''}" for file in spec.files)]
    lines += ["", f"listens {spec.listens}", f"gpu {spec.gpu} rdma {spec.rdma} shm {spec.shm_bytes}"]
    return "\n".join([*lines, f"labels {dict(spec.labels)}"]) + "\n"
