"""Settings of a recipe that hand power over: to the author of what they point to, or to every client."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from sparkwright.domain.values import dataclass

_OFF = ("", "0", "false", "no", "off", "none", "null")
_LOADS = "loads code from where it points"
_MOST_DEPTH = 8
_LONGEST = 4096


@dataclass(frozen=True, slots=True)
class Power:
    """gives: what the setting does, as the end of a sentence. clients: they get code or files by it."""

    setting: str
    gives: str
    clients: bool = False


_VARIABLES = {
    **dict.fromkeys(("LD_PRELOAD", "LD_AUDIT", "LD_LIBRARY_PATH", "CUDA_INJECTION64_PATH"), _LOADS),
    **dict.fromkeys(("NCCL_NET_PLUGIN", "NCCL_TUNER_PLUGIN", "NCCL_ENV_PLUGIN", "VLLM_PLUGINS"), _LOADS),
    **dict.fromkeys(("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONUSERBASE", "BASH_ENV"), _LOADS),
    "VLLM_SERVER_DEV_MODE": "opens routes of vLLM that steer the engine to every user of the head node",
    "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "lets any client of the route load adapters from any folder or hub",
    "VLLM_ALLOW_INSECURE_SERIALIZATION": "makes the engine unpickle what it is sent, which runs code",
}
_FLAGS = {
    "trust-remote-code": ("runs code that comes with the model's files", False),
    **dict.fromkeys(
        (
            "middleware",
            "tool-parser-plugin",
            "reasoning-parser-plugin",
            "worker-cls",
            "scheduler-cls",
            "logits-processors",
            "io-processor-plugin",
        ),
        (_LOADS, False),
    ),
    "worker-extension-cls": (_LOADS, False),
    "kv-transfer-config": ("lets a request's kv_transfer_params name hosts and blocks of other requests", False),
    "enable-custom-logit-processor": ("runs code that clients send (SGLang: dill.loads of the request)", True),
    "enable-prompt-embeds": ("makes the engine load tensors that clients send, which has been a way to run code", True),
    "allowed-local-media-path": ("lets clients read the files below that folder", True),
}


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
# What engines read by the hundred; their names change with each version.
_PREFIXES = ("VLLM_", "SGLANG_", "SGL_", "TRTLLM_", "TLLM_", "LLAMA_", "GGML_", "FLASHINFER_")
_PATH = re.compile(r"(?:\.{0,2}|~)/\S.*|\S+\.(?:so(?:\.\d+)*|py|jinja2?|pem|key|crt|json|yaml)", re.ASCII)
_MODULE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?::\w+)?", re.ASCII)
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,15}://\S+", re.ASCII)
_NO_SETTINGS = ("name", "title", "description", "model", "engine", "published", "build")  # read by people, or pinned


def pointers(tree: Mapping[str, Any]) -> Iterator[Power]:
    """Settings of a recipe whose value is a path, a module or a URL by its form, and variables that are not known.

    For a recipe that is somebody else's: the name of a setting does not tell whether it runs code.
    """
    for name in tree.get("env", {}):
        if name not in KNOWN and name not in _VARIABLES and not str(name).startswith(_PREFIXES):
            yield Power(f"env.{name}", "is no variable that sparkwright knows")
    for section in tree:
        if section not in _NO_SETTINGS:
            yield from _pointing(str(section), tree[section], 0)


def _pointing(place: str, value: Any, depth: int) -> Iterator[Power]:
    if isinstance(value, Mapping) and depth < _MOST_DEPTH:
        for name, one in value.items():
            yield from _pointing(f"{place}.{name}", one, depth + 1)
    elif isinstance(value, list | tuple) and depth < _MOST_DEPTH:
        for one in value:
            yield from _pointing(place, one, depth + 1)
    elif isinstance(value, str) and len(value) < _LONGEST:
        kinds = ((_URL, "a URL"), (_PATH, "a file or folder"), (_MODULE, "a Python module"))
        what = next((what for form, what in kinds if form.fullmatch(value.strip())), "")
        what = what or ("another tokenizer" if place == "flags.tokenizer" else "")
        if what:
            yield Power(place, f"names {what}: {value.strip()[:80]!r}")


def powers(env: Mapping[str, Any], flags: Mapping[str, Any]) -> Iterator[Power]:
    """The powers that are switched on."""
    for name, gives in _VARIABLES.items():
        if _on(env.get(name)):
            yield Power(f"env.{name}", gives)
    given = {str(name).lstrip("-").replace("_", "-"): value for name, value in flags.items()}
    for name, (gives, clients) in _FLAGS.items():
        if _on(given.get(name)):
            yield Power(f"flags.{name}", gives, clients)


def _on(value: Any) -> bool:
    return value is not None and str(value).strip().lower() not in _OFF
