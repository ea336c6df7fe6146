"""The environment of a distributed rank, and what a recipe gets wrong without any node."""

from collections.abc import Collection, Iterable, Iterator, Mapping

from sparkwright.domain.facts import FabricChoice
from sparkwright.domain.finding import Finding
from sparkwright.domain.plan import RankSpec
from sparkwright.domain.recipe import Recipe, Runtime
from sparkwright.engines.findings import ENG
from sparkwright.engines.options import option_name

LOOPBACK = "127.0.0.1"
# Bootstrap goes over the fabric. Otherwise NCCL takes the first interface up, Gloo loopback (connection refused,
# or a hang without a line), TensorPipe what the image has baked in, UCX (Ray, MPI, NIXL) all of them, MPI docker0.
SOCKETS = (
    *("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME", "UCX_NET_DEVICES"),
    "OMPI_MCA_btl_tcp_if_include",
)
# Differ from node to node and are taken from its facts: one value for all ranks is always wrong.
IDENTITY = (
    *("VLLM_HOST_IP", "SGLANG_HOST_IP", "HOST_IP", "NODE_IP", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT", "RANK"),
    "LOCAL_RANK",
)
SECRETS = ("VLLM_API_KEY", "LLAMA_API_KEY", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "OPENAI_API_KEY", "RAY_AUTH_TOKEN")
# No egress: weights are staged and verified on every node before, and no telemetry is sent.
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "DO_NOT_TRACK": "1"}


def fabric(choice: FabricChoice) -> dict[str, str]:
    """The variables of the communication libraries on this node: bootstrap over its fabric interface, payload over
    RDMA."""
    rdma = {
        "NCCL_NET": "IB",  # a missing verbs device becomes an error, not a silent fall-back to TCP
        "NCCL_IB_DISABLE": "0",  # some images set 1
        "NCCL_IB_HCA": ",".join(choice.hcas),  # both ports of the pair: one gives 12-14 GB/s, two 20-24
        # The GID is chosen by meaning, RoCE v2 and IPv4: its index changes while the node runs.
        "NCCL_IB_ROCE_VERSION_NUM": "2",
        "NCCL_IB_ADDR_FAMILY": "AF_INET",
        "NCCL_CROSS_NIC": "1",  # rings may go from one port of a pair to the other
    }
    return {
        **dict.fromkeys(SOCKETS, choice.interface),
        **(rdma if choice.hcas else {"NCCL_IB_DISABLE": "1"}),
        "NCCL_NET_PLUGIN": "none",  # plugins in base images reroute or fall back to TCP
        "NCCL_CUMEM_ENABLE": "0",  # most recipes on GB10; 1 only after the DMA-BUF fix
        "NCCL_NVLS_ENABLE": "0",  # there is no NVLink
        "NCCL_IGNORE_CPU_AFFINITY": "1",  # big and little cores: the inherited mask may be little
        "NCCL_DEBUG": "WARN",  # the cause of a failed start is in the log
    }


def check_rdma(specs: Iterable[RankSpec]) -> Iterator[Finding]:
    """A recipe that insists on RDMA, on a node that uses none: NCCL ends where TCP was meant to serve.

    One rank alone talks to nobody, so NCCL opens no network for it.
    """
    ranks = tuple(specs)
    for spec in ranks if len(ranks) > 1 else ():
        if spec.env.get("NCCL_NET") == "IB" and not spec.env.get("NCCL_IB_HCA"):
            yield ENG["ENG033"].on(
                spec.node, "NCCL_NET=IB; no RDMA device was found, or the cluster file has `hcas: []`"
            )


def check_distributed(recipe: Recipe, per_rank: Collection[str]) -> Iterator[Finding]:
    """Checks for engines whose ranks share one command line: environment, per-rank flags, world size, image."""
    yield from _check_env(recipe.env)
    for name, value in recipe.flags.items():
        if (option := option_name(name)) in per_rank:
            yield ENG["ENG013"].on(
                f"flags.{name}", f"{name}: {value}", title=f"--{option} is set per rank by sparkwright"
            )
    p, engine = recipe.parallelism, recipe.engine
    if p.world_size != recipe.nodes:  # one GPU per node
        yield ENG["ENG014"].on(
            "parallelism",
            f"tp {p.tp} x pp {p.pp} x dp {p.dp} = {p.world_size} ranks on {recipe.nodes} nodes",
            fix=f"set nodes: {p.world_size}, or choose tp, pp and dp whose product is {recipe.nodes}",
        )
    if engine.runtime is Runtime.DOCKER and not engine.image:
        yield ENG["ENG016"].on("engine.image")


def _check_env(env: Mapping[str, str]) -> Iterator[Finding]:
    for name in filter(env.__contains__, IDENTITY):
        yield ENG["ENG010"].on(
            f"env.{name}",
            f"{name}={env[name]}",
            title=f"{name} differs from node to node and cannot be in a recipe",
            fix=f"remove {name}: sparkwright sets it per rank from the node's fabric address",
        )
    for name in filter(env.__contains__, SECRETS):
        yield ENG["ENG011"].on(f"env.{name}", title=f"{name} is a secret and a recipe is not")
    if "NCCL_IB_GID_INDEX" in env:
        yield ENG["ENG012"].on("env.NCCL_IB_GID_INDEX", f"NCCL_IB_GID_INDEX={env['NCCL_IB_GID_INDEX']}")
