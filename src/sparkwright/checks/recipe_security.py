"""Checks of what a recipe gives away, and of its variables' names."""

from collections.abc import Iterator
from difflib import get_close_matches

from sparkwright.checks.reading import served_on_gb10
from sparkwright.compat.combination import flag, on, shape_of
from sparkwright.domain.check import Check, Context, Found, explained
from sparkwright.domain.finding import BLOCK, INFO, OVERRIDE, WARN, Severity
from sparkwright.domain.power import Power, powers
from sparkwright.domain.recipe import Expose, Recipe
from sparkwright.engines.catalog import traits

_CLOSE = 0.86
_NCCL = (
    "ALGO BUFFSIZE COLLNET_ENABLE CROSS_NIC CUMEM_ENABLE CUMEM_HOST_ENABLE DEBUG DEBUG_FILE DEBUG_SUBSYS "
    "DMABUF_ENABLE ENV_PLUGIN GRAPH_MIXING_SUPPORT HOSTID IB_ADAPTIVE_ROUTING IB_ADDR_FAMILY IB_ADDR_RANGE "
    "IB_AR_THRESHOLD IB_CUDA_SUPPORT IB_DISABLE IB_ECE_ENABLE IB_GID_INDEX IB_HCA IB_MERGE_NICS IB_MERGE_VFS "
    "IB_PCI_RELAXED_ORDERING IB_PKEY IB_QPS_PER_CONNECTION IB_RETRY_CNT IB_ROCE_VERSION_NUM IB_SL "
    "IB_SPLIT_DATA_ON_QPS IB_SUBNET_AWARE_ROUTING IB_SUBNET_PREFIX_LEN IB_TC IB_TIMEOUT IGNORE_CPU_AFFINITY "
    "LAUNCH_MODE LL128_BUFFSIZE LL_BUFFSIZE MAX_CTAS MAX_NCHANNELS MAX_P2P_NCHANNELS MIN_CTAS MIN_NCHANNELS "
    "MIN_P2P_NCHANNELS MNNVL_ENABLE NET NET_GDR_LEVEL NET_GDR_READ NET_PLUGIN NSOCKS_PERTHREAD NTHREADS NVB_DISABLE "
    "NVLS_ENABLE NVLS_NCHANNELS OOB_NET_ENABLE P2P_DISABLE P2P_LEVEL P2P_NET_CHUNKSIZE P2P_NVL_CHUNKSIZE "
    "P2P_PCI_CHUNKSIZE P2P_PXN_LEVEL PROTO PXN_DISABLE SHM_DISABLE SOCKET_FAMILY SOCKET_IFNAME SOCKET_NTHREADS "
    "TOPO_FILE TUNER_PLUGIN"
)
_OTHERS = (
    "GLOO_SOCKET_IFNAME TP_SOCKET_IFNAME UCX_NET_DEVICES UCX_TLS UCX_MEM_MMAP_HOOK_MODE UCX_RCACHE_MAX_UNRELEASED "
    "UCX_IB_GID_INDEX RAY_memory_monitor_refresh_ms RAY_memory_usage_threshold RAY_DEDUP_LOGS HF_HOME HF_HUB_CACHE "
    "HF_HUB_OFFLINE HF_HUB_DISABLE_XET HF_ENDPOINT TRANSFORMERS_OFFLINE PYTORCH_CUDA_ALLOC_CONF PYTORCH_ALLOC_CONF "
    "TORCH_CUDA_ARCH_LIST FLASHINFER_CUDA_ARCH_LIST TORCHINDUCTOR_CACHE_DIR TORCHINDUCTOR_AUTOGRAD_CACHE "
    "TRITON_CACHE_DIR TRITON_PTXAS_PATH TILELANG_CACHE_DIR CUTE_DSL_ARCH CUDA_VISIBLE_DEVICES "
    "CUDA_DEVICE_MAX_CONNECTIONS CUDA_DEVICE_MAX_COPY_CONNECTIONS CUDA_LAUNCH_BLOCKING CUDA_CACHE_PATH "
    "OMP_NUM_THREADS SAFETENSORS_FAST_GPU SAFETENSORS_FAST_CPU TIKTOKEN_CACHE_DIR"
)
KNOWN = frozenset((*(f"NCCL_{name}" for name in _NCCL.split()), *_OTHERS.split()))
_ADAPTERS = "env.VLLM_ALLOW_RUNTIME_LORA_UPDATING"


def misspelt_variable(context: Context) -> Iterator[Found]:
    recipe = served_on_gb10(context)
    given = {*(recipe.env if recipe else ()), *(name for node in context.cluster.nodes for name, _ in node.env)}
    for name in sorted(given - KNOWN) if recipe else ():
        near = get_close_matches(name, KNOWN, 1, _CLOSE)
        if near and not (recipe and name in recipe.engine.extra_env):
            yield Found(
                f"no library is known to read it; {near[0]} is one that does",
                title=f"{name} looks misspelt",
                fix=f"did you mean {near[0]}?",
                subject=f"env.{name}",
            )


def operator_power(context: Context) -> Iterator[Found]:
    recipe = context.recipe
    for power in powers(recipe.env, recipe.flags) if recipe else ():
        if recipe and not power.clients:
            yield Found(
                f"it {power.gives}",
                title=f"{power.setting.partition('.')[2]} runs foreign code",
                severity=_severity(recipe, power),
                subject=power.setting,
            )


def _severity(recipe: Recipe, power: Power) -> Severity:
    """Most models of today ship code; adapters of any client's choice are code and files for all."""
    if power.setting == "flags.trust-remote-code":
        return INFO
    opened = any("lora" in route for route in recipe.serving.door.routes)
    everybody = power.setting == _ADAPTERS and opened and recipe.serving.expose is Expose.ALL
    return BLOCK if everybody else WARN


def client_power(context: Context) -> Iterator[Found]:
    recipe = context.recipe
    for power in powers(recipe.env, recipe.flags) if recipe else ():
        if recipe and power.clients:
            exposed = recipe.serving.expose is Expose.ALL
            yield Found(
                f"it {power.gives}; serving.expose: {recipe.serving.expose.value}",
                title=f"{power.setting.partition('.')[2]} gives clients code or files",
                severity=BLOCK if exposed else WARN,
                subject=power.setting,
            )


def media_fetches(context: Context) -> Iterator[Found]:
    recipe, shape = context.recipe, shape_of(context)
    if recipe is None or shape is None or not shape.senses or recipe.model.simulated:
        return
    if traits(recipe).media == "files" and flag(recipe, "enable-multimodal") != "false":
        exposed = recipe.serving.expose is Expose.ALL
        yield _finding(
            OVERRIDE if exposed else WARN,
            "image_url may also be file:///... or a path: clients read files of the head node",
            "keep the endpoint to clients that you trust (expose: loopback or fabric), or serve the model with vLLM",
        )
    if traits(recipe).media == "hosts" and not _closed(recipe):
        yield _finding(
            INFO if recipe.serving.expose is Expose.LOOPBACK else WARN,
            "flags.allowed-media-domains is not set: any host that the head node can reach",
            "flags.allowed-media-domains: [HOST, ...], or flags.language-model-only: true",
        )


def _closed(recipe: Recipe) -> bool:
    return bool(flag(recipe, "allowed-media-domains")) or on(recipe, "language-model-only")


def _finding(severity: Severity, evidence: str, remedy: str) -> Found:
    return Found(evidence, fix=remedy, severity=severity, subject="model")


CHECKS = explained(
    __file__,
    Check("RCP028", WARN, "misspelt environment variable", misspelt_variable),
    Check("RCP031", WARN, "recipe setting runs foreign code", operator_power),
    Check("RCP032", WARN, "recipe setting gives clients code or files", client_power),
    Check("RCP033", WARN, "engine fetches URLs that clients name", media_fetches),
)
