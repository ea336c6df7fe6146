"""Rules about recipes: where each fires, and where it must be silent."""

from dataclasses import replace
from typing import Any

from sparkwright.domain.check import Context
from sparkwright.domain.facts import Driver, Gpu, Interface, RdmaPort
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import (
    Build,
    BuildSource,
    EngineChoice,
    Mod,
    Model,
    Parallelism,
    Parsers,
    Recipe,
    RecipeState,
    Runtime,
    Serving,
    Speculation,
)
from unit.checks.samples import CLUSTER, ODD, RECIPE, context, memory

DSV4 = ModelShape(43, 64, 1, architecture="DeepseekV4ForCausalLM", experts=256, format="fp8", expert_format="mxfp4")
NVFP4 = ModelShape(62, 48, 8, architecture="MiniMaxM2ForCausalLM", experts=256, format="bf16", expert_format="nvfp4")
FP8 = replace(NVFP4, format="fp8", expert_format="")
QWEN = ModelShape(48, 16, 2, architecture="Qwen3_5ForConditionalGeneration", format="fp8", state_layers=36)
SEES = replace(QWEN, senses=True)
GDN = replace(QWEN, state_kind="gdn")
NGC = "nvcr.io/nvidia/vllm:26.04-py3"
H200 = (Gpu("NVIDIA H200", "580.1", "9.0", 1),)
RAY = replace(RECIPE, engine=EngineChoice("vllm-ray", "0.21.0", Runtime.DOCKER, "registry/vllm:1"))
UCX = {"UCX_MEM_MMAP_HOOK_MODE": "none", "UCX_RCACHE_MAX_UNRELEASED": "1024"}
ATOMIC = {"VLLM_MARLIN_USE_ATOMIC_ADD": "1"}
LINKS = (Interface("lo", True, 65536), Interface("enp1s0f0np0", True, 9000))
PORTS = (RdmaPort("rocep1s0f0", 1, "ACTIVE", "LINK_UP", "a"), RdmaPort("rocep1s0f1", 1, "DOWN", "DISABLED", "b"))


def recipe(shape: ModelShape | None = None, engine: str = "vllm 0.21.0", nodes: int = 2, **more: Any) -> Recipe:
    """image: the engine's; the rest are fields of the recipe."""
    name, _, version = engine.partition(" ")
    chosen = EngineChoice(name, version, Runtime.DOCKER, more.pop("image", "registry/engine:1"))
    model = replace(RECIPE.model, shape=shape, **({"id": more.pop("id")} if "id" in more else {}))
    made = {"engine": chosen, "model": model, "nodes": nodes, "parallelism": Parallelism(tp=nodes)} | more
    return replace(RECIPE, **made)


def planned(asked: Recipe, first: dict[str, Any] | None = None, node_env: dict[str, str] | None = None) -> Context:
    """A plan for it whose ranks have its variables, and node_env on top, which spark-1's entry gives."""
    where = context(first, asked, checkpoints={})
    mine = {name: str(value) for name, value in asked.env.items()} | (node_env or {})
    specs = tuple(replace(spec, env=mine) for spec in where.specs[: asked.nodes])
    nodes = tuple(replace(n, env=tuple((node_env or {}).items()) if n.name == "spark-1" else ()) for n in CLUSTER.nodes)
    return replace(where, specs=specs, cluster=replace(CLUSTER, nodes=nodes))


MOD = Mod("m", {"run.sh": "pip install x"})


def recipe_context(
    shape: ModelShape | None = None, engine: str = "vllm 0.21.0", nodes: int = 2, **more: Any
) -> Context:
    return planned(recipe(shape, engine, nodes, **more))


def on_node(env: dict[str, str], **facts: Any) -> Context:
    return planned(RECIPE, facts, env)


def limit_context(fraction: float, nodes: int = 2, engine: str = "vllm 0.21.0", **more: Any) -> Context:
    return recipe_context(None, engine, nodes, serving=Serving(memory_fraction=fraction, **more))


def drafts(method: str, tokens: int = 2, **options: Any) -> dict[str, Any]:
    return {"speculation": Speculation(method, tokens, options)}


def uneven(**more: Any) -> Context:
    """100 GiB less on spark-1."""
    return planned(recipe(None, "sglang 0.5.12", **more), {"memory": memory(109)})


GRAPHS = {"compilation-config": {"cudagraph_mode": "PIECEWISE"}}
SGLANG = "sglang 0.5.12"
KV8 = Serving(kv_dtype="fp8", memory_fraction=0.8)
MARLIN = {"moe-backend": "marlin"}
OWN_DSV4 = recipe(None, SGLANG, id="deepseek-ai/DeepSeek-V4-Flash")
SOURCE = BuildSource("vllm", "https://github.com/vllm-project/vllm", "0" * 40, pull_request=40082)

FIRING = {
    "RCP001": on_node({"GLOO_SOCKET_IFNAME": "bond0"}, interfaces=LINKS),
    "RCP002": on_node({"NCCL_IB_HCA": "rocep1s0f0,rocep1s0f1"}, rdma=PORTS),
    "RCP003": recipe_context(env={"NCCL_IB_DISABLE": "1"}),
    "RCP004": planned(replace(RAY, env={"RAY_memory_monitor_refresh_ms": "250"})),
    "RCP005": recipe_context(None, SGLANG, flags={"dist-timeout": 300}),
    "RCP006": recipe_context(shm_bytes=8 << 30),
    "RCP007": limit_context(0.88),
    "RCP008": recipe_context(NVFP4),
    "RCP009": recipe_context(NVFP4, flags=MARLIN),
    "RCP010": recipe_context(NVFP4, serving=KV8, flags={"attention-backend": "FLASHINFER"}),
    "RCP011": recipe_context(flags={"enforce-eager": True}),
    "RCP012": recipe_context(image=NGC, flags={"load_format": "fastsafetensors"}),
    "RCP013": recipe_context(NVFP4, "vllm 0.19.0", flags={"quantization": "mxfp4"}),
    "RCP014": recipe_context(
        parsers=Parsers(reasoning="qwen3"), flags={"override-generation-config": '{"max_new_tokens": 256}'}
    ),
    "RCP015": recipe_context(image=NGC),
    "RCP016": recipe_context(DSV4, "sglang 0.5.16", env={"SGLANG_FP8_PAGED_MQA_LOGITS_TORCH": "1"}),
    "RCP017": uneven(),
    "RCP018": recipe_context(None, SGLANG, flags={"attention-backend": "fa3"}),
    "RCP019": recipe_context(DSV4),
    "RCP020": planned(replace(RAY, flags=GRAPHS)),
    "RCP021": planned(
        recipe(env={"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}),
        {"driver": Driver("580.159.03", "580.159.03")},
    ),
    "RCP022": recipe_context(env={"NCCL_CUMEM_ENABLE": "1"}),
    "RCP023": recipe_context(DSV4, **drafts("dspark", 7)),
    "RCP024": recipe_context(GDN, **drafts("ngram")),
    "RCP025": recipe_context(None, "llama-cpp b11549", flags={"mmap": True}),
    "RCP026": recipe_context(**drafts("mtp"), flags={"override-generation-config": {"repetition_penalty": 1.05}}),
    "RCP027": recipe_context(flags=MARLIN, env=ATOMIC, **drafts("mtp")),
    "RCP028": recipe_context(env={"NCCL_SOCKET_IFNAMES": "x"}),
    "RCP029": recipe_context(NVFP4),
    "RCP030": limit_context(0.9, 2, "trtllm 1.3.0rc13"),
    "RCP031": recipe_context(env={"LD_PRELOAD": "/x/evil.so"}),
    "RCP032": recipe_context(None, "sglang 0.5.12", flags={"enable-custom-logit-processor": True}),
    "RCP033": recipe_context(SEES, "sglang 0.5.12"),
    "RCP034": recipe_context(mods=(MOD,)),
    "RCP035": recipe_context(mods=(replace(MOD, approved="0" * 12),)),
    "RCP036": recipe_context(mods=(Mod("m"),)),
    "COMPAT001": planned(OWN_DSV4),
    "COMPAT002": recipe_context(FP8, serving=KV8),
    "COMPAT003": recipe_context(ModelShape(32, 32, 8, architecture="NobodysForCausalLM")),
}

SILENT = [
    ("RCP001", "the interface is there", on_node({"GLOO_SOCKET_IFNAME": "enp1s0f0np0"}, interfaces=LINKS)),
    ("RCP001", "NCCL takes the beginning of a name", on_node({"NCCL_SOCKET_IFNAME": "enp1"}, interfaces=LINKS)),
    ("RCP001", "one of NCCL's list is there", on_node({"NCCL_SOCKET_IFNAME": "enP7s7,enp1s0f0np0"}, interfaces=LINKS)),
    ("RCP001", "a list of what to leave out", on_node({"NCCL_SOCKET_IFNAME": "^docker0,lo"}, interfaces=LINKS)),
    ("RCP001", "interfaces not known", on_node({"GLOO_SOCKET_IFNAME": "bond0"}, interfaces=ODD)),
    ("RCP002", "the device has a link", on_node({"NCCL_IB_HCA": "=rocep1s0f0:1"}, rdma=PORTS)),
    ("RCP002", "the beginning of a name", on_node({"NCCL_IB_HCA": "roce"}, rdma=PORTS)),
    ("RCP002", "devices not known", on_node({"NCCL_IB_HCA": "mlx5_0"}, rdma=ODD)),
    ("RCP003", "the launcher's own choice", planned(RECIPE)),
    ("RCP003", "0 is usual", recipe_context(env={"NCCL_IB_DISABLE": "0"})),
    ("RCP004", "not on Ray", recipe_context(env={"RAY_memory_monitor_refresh_ms": "250"})),
    ("RCP004", "the launcher's 0", planned(replace(RAY, env={"RAY_memory_monitor_refresh_ms": "0"}))),
    ("RCP005", "long enough", recipe_context(None, SGLANG, flags={"dist-timeout": 1800})),
    ("RCP005", "one node waits for nobody", recipe_context(None, SGLANG, 1, flags={"dist-timeout": 60})),
    ("RCP006", "32g is proven", recipe_context(shm_bytes=32 << 30)),
    ("RCP006", "not given", recipe_context()),
    ("RCP007", "0.82 holds on two nodes", limit_context(0.82)),
    ("RCP007", "0.85 holds on one", limit_context(0.85, 1)),
    ("RCP007", "the pool is pinned", limit_context(0.88, kv_cache_bytes=6 << 30)),
    ("RCP007", "TensorRT-LLM's fraction is of what is free", limit_context(0.9, 2, "trtllm 1.3.0rc13")),
    ("RCP008", "Marlin by flag", recipe_context(NVFP4, flags=MARLIN)),
    ("RCP008", "Marlin by variable", recipe_context(NVFP4, env={"VLLM_TEST_FORCE_FP8_MARLIN": "1"})),
    ("RCP008", "0.30 is served by its own choice", recipe_context(NVFP4, "vllm 0.30.0")),
    ("RCP008", "no NVFP4", recipe_context(FP8)),
    ("RCP009", "set", recipe_context(NVFP4, flags=MARLIN, env=ATOMIC)),
    ("RCP009", "another kernel", recipe_context(NVFP4, flags={"moe-backend": "triton"})),
    ("RCP010", "BF16", recipe_context(NVFP4, flags={"attention-backend": "FLASHINFER"})),
    (
        "RCP011",
        "MiniMax-M3 is faster without",
        recipe_context(replace(NVFP4, architecture="MiniMaxM3X"), flags={"enforce-eager": True}),
    ),
    ("RCP011", "SGLang deadlocks across nodes", recipe_context(None, SGLANG, flags={"disable-cuda-graph": True})),
    ("RCP012", "another image has it", recipe_context(flags={"load-format": "fastsafetensors"})),
    (
        "RCP013",
        "gpt-oss",
        recipe_context(
            replace(NVFP4, architecture="GptOssForCausalLM"), "vllm 0.19.0", flags={"quantization": "mxfp4"}
        ),
    ),
    ("RCP014", "no reasoning", recipe_context(flags={"override-generation-config": {"max_new_tokens": 256}})),
    (
        "RCP014",
        "enough",
        recipe_context(parsers=Parsers(reasoning="x"), flags={"override-generation-config": {"max_new_tokens": 1024}}),
    ),
    (
        "RCP015",
        "the variable shows it",
        recipe_context(image=NGC, env={"TRITON_PTXAS_PATH": "/usr/local/cuda/bin/ptxas"}),
    ),
    ("RCP016", "none given", recipe_context(DSV4, SGLANG)),
    ("RCP017", "the check is off", uneven(env={"SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK": "0"})),
    ("RCP017", "equal nodes", recipe_context(None, SGLANG)),
    ("RCP017", "vLLM has no such check", planned(RECIPE, {"memory": memory(109)})),
    ("RCP018", "another backend", recipe_context(None, SGLANG, flags={"attention-backend": "flashinfer"})),
    ("RCP019", "both are set", recipe_context(DSV4, env=UCX)),
    ("RCP019", "another model", recipe_context(NVFP4)),
    ("RCP020", "without Ray", recipe_context(flags=GRAPHS)),
    ("RCP021", "another driver", recipe_context(env={"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"})),
    ("RCP022", "0 is usual", recipe_context(env={"NCCL_CUMEM_ENABLE": "0"})),
    ("RCP023", "its block", recipe_context(DSV4, **drafts("dspark", 5))),
    ("RCP024", "attention only", recipe_context(NVFP4, **drafts("ngram"))),
    ("RCP025", "on the CPU", recipe_context(None, "llama-cpp b11549", flags={"mmap": True, "n-gpu-layers": 0})),
    ("RCP026", "none", recipe_context(**drafts("mtp"), flags={"override-generation-config": {"temperature": 1.0}})),
    ("RCP027", "drafts on triton", recipe_context(flags=MARLIN, env=ATOMIC, **drafts("mtp", moe_backend="triton"))),
    (
        "RCP028",
        "real ones that look like others",
        recipe_context(
            env=dict.fromkeys(
                (
                    "NCCL_MAX_P2P_NCHANNELS",
                    "NCCL_PXN_DISABLE",
                    "NCCL_MNNVL_ENABLE",
                    "NCCL_RUNTIME_CONNECT",
                    "NCCL_NVB_DISABLE",
                    "NCCL_P2P_PXN_LEVEL",
                    "TIKTOKEN_CACHE_DIR",
                    "UCX_RCACHE_MAX_SIZE",
                    "TRITON_HOME",
                ),
                "1",
            )
        ),
    ),
    ("RCP028", "known ones", recipe_context(env={**UCX, "NCCL_SOCKET_IFNAME": "x", "MY_OWN": "1"})),
    (
        "RCP028",
        "declared",
        planned(replace(RECIPE, env={"NCCL_NETS": "1"}, engine=replace(RECIPE.engine, extra_env=("NCCL_NETS",)))),
    ),
    ("RCP029", "one node splits nothing", recipe_context(NVFP4, nodes=1)),
    ("RCP029", "another model", recipe_context(DSV4)),
    ("RCP030", "as it is served", limit_context(0.4, 2, "trtllm 1.3.0rc13")),
    ("RCP030", "one node", limit_context(0.9, 1, "trtllm 1.3.0rc13")),
    ("RCP031", "switched off", recipe_context(env={"VLLM_SERVER_DEV_MODE": "0"}, flags={"trust-remote-code": False})),
    ("RCP031", "clients' power is another rule's", recipe_context(flags={"enable-prompt-embeds": True})),
    ("RCP032", "switched off", recipe_context(flags={"enable-prompt-embeds": False, "allowed-local-media-path": ""})),
    ("RCP032", "author's power is another rule's", recipe_context(env={"LD_PRELOAD": "/x"})),
    ("RCP034", "nothing to run", recipe_context(mods=(Mod("m"),))),
    ("RCP035", "somebody has read it", recipe_context(mods=(replace(MOD, approved=MOD.digest),))),
    ("RCP034", "a template runs nothing", recipe_context(mods=(Mod("t", {"t.jinja": "{{ messages }}"}, ""),))),
    ("RCP036", "its files are here", recipe_context(mods=(MOD,))),
    ("RCP033", "no eyes", recipe_context(NVFP4)),
    ("RCP033", "nobody knows", recipe_context()),
    ("RCP033", "a list of hosts", recipe_context(SEES, flags={"allowed-media-domains": ["example.org"]})),
    ("RCP033", "text only", recipe_context(SEES, flags={"language-model-only": True})),
    ("RCP033", "text only", recipe_context(SEES, "sglang 0.5.12", flags={"enable-multimodal": False})),
    ("RCP033", "an engine that fetches nothing", recipe_context(SEES, "llama-cpp b11549")),
    ("COMPAT001", "another version", recipe_context(DSV4, "sglang 0.5.23")),
    ("COMPAT001", "another chip", planned(OWN_DSV4, {"gpus": H200})),
    ("COMPAT001", "refused by its own reason", planned(replace(OWN_DSV4, state=RecipeState.REFUSED))),
    (
        "COMPAT001",
        "simulated",
        planned(replace(OWN_DSV4, model=Model("deepseek-ai/DeepSeek-V4-Flash", simulated=True))),
    ),
    ("COMPAT002", "four nodes have the room", recipe_context(FP8, nodes=4, serving=KV8)),
    ("COMPAT003", "a known one", recipe_context(NVFP4)),
    ("COMPAT003", "architecture not known", recipe_context()),
]
PULLED = replace(recipe(DSV4, serving=KV8), build=Build("ubuntu:24.04", sources=(SOURCE,)))
