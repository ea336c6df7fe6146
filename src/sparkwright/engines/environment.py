"""The environment of a distributed rank, each variable with its reason, and what a recipe gets wrong without any node.

Findings ENG010-ENG016 and ENG033.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from sparkwright.domain.facts import FabricChoice
from sparkwright.domain.finding import Finding
from sparkwright.domain.plan import RankSpec
from sparkwright.domain.recipe import Recipe, Runtime
from sparkwright.engines.findings import ENG
from sparkwright.engines.options import option_name

LOOPBACK = "127.0.0.1"
SOCKETS = (
    "NCCL_SOCKET_IFNAME",
    "GLOO_SOCKET_IFNAME",
    "TP_SOCKET_IFNAME",
    "UCX_NET_DEVICES",
    "OMPI_MCA_btl_tcp_if_include",
)
# Differ from node to node and are taken from its facts: one value for all ranks is always wrong (field guide B4, E35).
IDENTITY = (
    "VLLM_HOST_IP",
    "SGLANG_HOST_IP",
    "HOST_IP",
    "NODE_IP",
    "NODE_RANK",
    "MASTER_ADDR",
    "MASTER_PORT",
    "RANK",
    "LOCAL_RANK",
)
SECRETS = ("VLLM_API_KEY", "LLAMA_API_KEY", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "OPENAI_API_KEY", "RAY_AUTH_TOKEN")


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable of a rank: why it has that value, and the source (field guide section, seed, or engine source)."""

    name: str
    value: str
    why: str
    source: str


def as_env(variables: tuple[Variable, ...]) -> dict[str, str]:
    return {v.name: v.value for v in variables}


def fabric(choice: FabricChoice) -> tuple[Variable, ...]:
    """What the communication libraries need on this node: bootstrap over its fabric interface, payload over RDMA."""
    return (*_sockets(choice.interface), *(_rdma(choice.hcas) if choice.hcas else _no_rdma()), *_nccl())


def _sockets(interface: str) -> tuple[Variable, ...]:
    reasons = {
        "NCCL_SOCKET_IFNAME": (
            "bootstrap over the fabric; otherwise NCCL takes the first interface up",
            "B5; capture m4",
        ),
        "GLOO_SOCKET_IFNAME": (
            "Gloo takes loopback otherwise: Connection refused, or a hang without a line",
            "B5, seed 000",
        ),
        "TP_SOCKET_IFNAME": ("TensorPipe; some base images bake the management interface in", "B5"),
        "UCX_NET_DEVICES": ("UCX (Ray, MPI, NIXL) scans every interface otherwise", "B5"),
        "OMPI_MCA_btl_tcp_if_include": ("MPI's TCP transport picks docker0 otherwise", "B5"),
    }
    return tuple(Variable(name, interface, *reasons[name]) for name in SOCKETS)


def _rdma(hcas: tuple[str, ...]) -> tuple[Variable, ...]:
    return (
        Variable("NCCL_NET", "IB", "a missing verbs device becomes an error, not a silent fall-back to TCP", "B5"),
        Variable("NCCL_IB_DISABLE", "0", "some images set 1", "B5, seed 002"),
        Variable("NCCL_IB_HCA", ",".join(hcas), "both ports of the pair: one gives 12-14 GB/s, two 20-24", "B5"),
        Variable("NCCL_IB_ROCE_VERSION_NUM", "2", "the GID is chosen by meaning: RoCE v2 ...", "B3, B5"),
        Variable("NCCL_IB_ADDR_FAMILY", "AF_INET", "... and IPv4. Its index drifts, so it is never given", "B3, E31"),
        Variable("NCCL_CROSS_NIC", "1", "rings may go from one port of a pair to the other", "B5, seed 003"),
    )


def _no_rdma() -> tuple[Variable, ...]:
    return (Variable("NCCL_IB_DISABLE", "1", "no usable RDMA device on this node: TCP on purpose", "B5"),)


def _nccl() -> tuple[Variable, ...]:
    return (
        Variable("NCCL_NET_PLUGIN", "none", "plugins in base images reroute or fall back to TCP", "B5, seed 002"),
        Variable("NCCL_CUMEM_ENABLE", "0", "most recipes on GB10; 1 only after the DMA-BUF fix", "B5, seed 003"),
        Variable("NCCL_NVLS_ENABLE", "0", "there is no NVLink", "B5"),
        Variable(
            "NCCL_IGNORE_CPU_AFFINITY",
            "1",
            "big and little cores: the inherited mask may be little",
            "B5",
        ),
        Variable("NCCL_DEBUG", "WARN", "the cause of a failed start is in the log", "B5"),
    )


def offline() -> tuple[Variable, ...]:
    """No egress: weights are staged before, and nothing is reported home."""
    return (
        Variable("HF_HUB_OFFLINE", "1", "weights were staged and verified on every node before", "B5"),
        Variable("TRANSFORMERS_OFFLINE", "1", "the same for configuration and tokenizer", "B5"),
        Variable("DO_NOT_TRACK", "1", "no telemetry", "product.md"),
    )


def check_env(recipe: Recipe) -> tuple[Finding, ...]:
    """ENG010 a per-rank variable in the recipe, ENG011 a secret in a recipe, ENG012 a fixed GID index."""
    return (*_identity(recipe.env), *_secrets(recipe.env), *_gid(recipe.env))


def _identity(env: Mapping[str, str]) -> tuple[Finding, ...]:
    return tuple(
        ENG["ENG010"].on(
            f"env.{name}",
            f"{name}={env[name]}",
            title=f"{name} differs from node to node and cannot be in a recipe",
            fix=f"remove {name}: sparkwright sets it per rank from the node's fabric address",
        )
        for name in IDENTITY
        if name in env
    )


def _secrets(env: Mapping[str, str]) -> tuple[Finding, ...]:
    return tuple(
        ENG["ENG011"].on(f"env.{name}", title=f"{name} is a secret and a recipe is not")
        for name in SECRETS
        if name in env
    )


def _gid(env: Mapping[str, str]) -> tuple[Finding, ...]:
    if "NCCL_IB_GID_INDEX" not in env:
        return ()
    return (ENG["ENG012"].on("env.NCCL_IB_GID_INDEX", f"NCCL_IB_GID_INDEX={env['NCCL_IB_GID_INDEX']}"),)


def check_rdma(specs: Iterable[RankSpec]) -> Iterator[Finding]:
    """ENG033 a recipe that insists on RDMA, on a node that uses none: NCCL ends where TCP was meant to serve."""
    for spec in specs:
        if spec.env.get("NCCL_NET") == "IB" and not spec.env.get("NCCL_IB_HCA"):
            yield ENG["ENG033"].on(
                spec.node, "NCCL_NET=IB; no RDMA device was found, or the cluster file has `hcas: []`"
            )


def check_distributed(recipe: Recipe, per_rank: Collection[str]) -> tuple[Finding, ...]:
    """For engines whose ranks share one command line: environment, per-rank flags, world size, image."""
    return (*check_env(recipe), *_per_rank_flags(recipe, per_rank), *_world(recipe), *_program(recipe))


def _per_rank_flags(recipe: Recipe, per_rank: Collection[str]) -> tuple[Finding, ...]:
    return tuple(
        ENG["ENG013"].on(
            f"flags.{name}", f"{name}: {value}", title=f"--{option_name(name)} is set per rank by sparkwright"
        )
        for name, value in recipe.flags.items()
        if option_name(name) in per_rank
    )


def _world(recipe: Recipe) -> tuple[Finding, ...]:
    """One GPU per node: the ranks must be as many as the nodes."""
    p = recipe.parallelism
    if p.world_size == recipe.nodes:
        return ()
    return (
        ENG["ENG014"].on(
            "parallelism",
            f"tp {p.tp} x pp {p.pp} x dp {p.dp} = {p.world_size} ranks on {recipe.nodes} nodes",
            fix=f"set nodes: {p.world_size}, or choose tp, pp and dp whose product is {recipe.nodes}",
        ),
    )


def _program(recipe: Recipe) -> tuple[Finding, ...]:
    engine = recipe.engine
    if engine.runtime is not Runtime.DOCKER or engine.image:
        return ()
    return (ENG["ENG016"].on("engine.image"),)
