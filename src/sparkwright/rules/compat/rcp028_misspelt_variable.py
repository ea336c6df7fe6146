"""A variable that looks like one of a library, and is none.

Detects: a name in `env` or in a node's entry that differs in a letter or two from a variable of NCCL, Gloo, UCX, Ray,
PyTorch, Hugging Face or CUDA that recipes for GB10 use. Names with an engine's own prefix are checked against that
version's sources instead (ENG008).
Why: libraries ignore what they do not know, without a word.
Evidence: the name, and the one that is meant.
Remedy: the right name; a name that is meant so stays as it is.
References: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html; field guide B5
"""

from collections.abc import Iterator
from difflib import get_close_matches

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.compat.reading import served_on_gb10
from sparkwright.rules.rule import Context

CODE = "RCP028"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "a variable that looks misspelt"
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


def check(context: Context) -> Iterator[Finding]:
    recipe = served_on_gb10(context)
    given = {*(recipe.env if recipe else ()), *(name for node in context.cluster.nodes for name, _ in node.env)}
    for name in sorted(given - KNOWN) if recipe else ():
        near = get_close_matches(name, KNOWN, 1, _CLOSE)
        if near and not (recipe and name in recipe.engine.extra_env):
            yield Finding(
                CODE,
                SEVERITY,
                f"env.{name}",
                f"{name} looks misspelt",
                f"no library is known to read it; {near[0]} is one that does",
                "a variable that nobody reads is ignored without a word",
                f"did you mean {near[0]}?",
            )
