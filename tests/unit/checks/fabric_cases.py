"""Rules about the link, Docker, disks and open ports: a context in which each fires, and some in which it must not."""

from dataclasses import replace
from typing import Any

from sparkwright.domain.check import Context
from sparkwright.domain.fabric_facts import (
    Bandwidth,
    Clocks,
    ClockSample,
    Container,
    DeepMeasurements,
    EnvironmentSetting,
    Firewall,
    Image,
    Network,
    PciFunction,
    Profile,
    RdmaDevice,
    Ref,
    Route,
    Settings,
    Skipped,
    Store,
)
from sparkwright.domain.facts import (
    NOT_ASKED,
    Address,
    Docker,
    DockerTrouble,
    Gpu,
    Interface,
    Listener,
    RdmaPort,
    Unknown,
)
from sparkwright.domain.host_facts import KernelLog, KernelNote, Unit, Upkeep
from sparkwright.facts.upkeep import AVAHI
from unit.checks.samples import (
    CLUSTER,
    EMBEDDED,
    NIC,
    ODD,
    RAILS,
    READY,
    RECIPE,
    context,
    gids_of,
    healthy,
    interfaces,
    make_disk,
    rank_status,
    rdma_ports,
)

ONE = replace(RECIPE, nodes=1)
UNPUBLISHED = replace(RECIPE, engine=replace(RECIPE.engine, image="sparkwright/big:0123456789ab"))
STOPPED = Docker("", trouble=DockerTrouble.NOT_RUNNING)
BY_MDNS = replace(CLUSTER, nodes=tuple(replace(node, ssh=f"ai@{node.name}.local") for node in CLUSTER.nodes))
ALONE = replace(CLUSTER, nodes=CLUSTER.nodes[:1])
H200 = {"gpus": (Gpu("NVIDIA H200", "570.1", "9.0", 1),)}
FIRST, TWIN = RAILS[0][1], RAILS[1][1]
OTHER_CAGE = ("rocep1s0f1", "enp1s0f1np1")
OWN = {"ranks": (rank_status("big", port=8000),)}
HUB = "~/.cache/huggingface/hub"


def context_of_two(first: dict[str, Any], second: dict[str, Any] | None = None, **changes: Any) -> Context:
    """`check` of two nodes; second: what is different on spark-2, the same as on spark-1 when not given."""
    facts = {
        "spark-1": healthy("spark-1", **first),
        "spark-2": healthy("spark-2", **(first if second is None else second)),
    }
    return replace(context(recipe=None), facts=facts, **changes)


def context_with(**first: Any) -> Context:
    """`check` with spark-1 different."""
    return context_of_two(first, {})


def link_facts(number: int, **changed: dict[str, Any]) -> dict[str, Any]:
    """Interfaces of a node; changed: netdev -> fields."""
    return {"interfaces": tuple(replace(link, **changed.get(link.name, {})) for link in interfaces(number))}


def twin_without_address(number: int) -> dict[str, Any]:
    return link_facts(number, **{TWIN: {"addresses": ()}})


def with_address(ipv4: str, prefix: int = 24) -> dict[str, Any]:
    return {"addresses": (Address(ipv4, prefix),)}


def network(*routes: Route, **more: Any) -> dict[str, Any]:
    return {"network": Network(routes, **more)}


def nic_facts(**changes: Any) -> dict[str, Any]:
    return {"nic": replace(NIC, **changes)}


def firmware(version: str) -> dict[str, Any]:
    return nic_facts(devices=(RdmaDevice("rocep1s0f0", version, 200.0),))


def plugged(
    seconds: float | None, text: str = "mlx5_core 0000:01:00.0: Port module event: module 0, Cable plugged"
) -> Any:
    return KernelLog(900, (KernelNote(text, 1, seconds, seconds, text),))


def variables(*entries: str, where: str = "/etc/environment") -> dict[str, Any]:
    pairs = (entry.partition("=") for entry in entries)
    return {
        "settings": Settings(communication=tuple(EnvironmentSetting(where, name, value) for name, _, value in pairs))
    }


def proxied(exceptions: str) -> dict[str, Any]:
    found = (
        EnvironmentSetting("session", "http_proxy", "http://proxy:3128"),
        EnvironmentSetting("session", "no_proxy", exceptions),
    )
    return {"settings": Settings(proxies=found)}


def occupied(*containers: Container, images: tuple[Image, ...] = (), **more: Any) -> dict[str, Any]:
    found = healthy("spark-1").containers
    assert not isinstance(found, Unknown)
    return {"containers": replace(found, containers=containers, images=images, **more)}


def listens(address: str, port: int, process: str = "") -> dict[str, Any]:
    return {"listeners": (Listener(address, port, process),)}


def store_facts(**changes: Any) -> dict[str, Any]:
    return {"stores": (replace(Store(HUB, "ext4", 1000, 900), **changes),)}


def drifted(index: int, ipv4: str = "10.40.0.1") -> dict[str, Any]:
    first, simulator = rdma_ports(1)
    return {"rdma": (replace(first, gids=gids_of(ipv4, index)), simulator)}


def second_cage(number: int, *addresses: Address) -> dict[str, Any]:
    device, netdev = OTHER_CAGE
    return {
        "rdma": (*rdma_ports(number), RdmaPort(device, 1, "ACTIVE", "LINK_UP", netdev)),
        "interfaces": (*interfaces(number), Interface(netdev, True, 9000, addresses, 200_000)),
    }


def only_cage(number: int, net: int = 40) -> dict[str, Any]:
    device, netdev = OTHER_CAGE
    link = Interface(netdev, True, 9000, (Address(f"10.{net}.0.{number}", 24),), 200_000)
    return {"rdma": (RdmaPort(device, 1, "ACTIVE", "LINK_UP", netdev),), "interfaces": (link,)}


def bandwidth_measured(gbit: float | Unknown) -> DeepMeasurements:
    return DeepMeasurements(bandwidths=(Bandwidth("spark-1", "spark-2", "rocep1s0f0", "rocep1s0f0", gbit),))


def under_load(*samples: ClockSample) -> DeepMeasurements:
    return DeepMeasurements(clocks=(Clocks("spark-1", "torch on the node", samples),))


def avahi_facts(name: str) -> dict[str, Any]:
    says = f"Server startup complete. Host name is {name}.local. Local service cookie is 2071339872."
    return {"upkeep": Upkeep(units={AVAHI: Unit(AVAHI, "loaded", "active", "enabled", says)})}


VLLM = Container("qwen", "vllm/vllm-openai:v0.21.0", True, "no", gpu=True, command="vllm serve")
PLAIN = Container("db", "postgres:17", True, "always")
OURS = replace(VLLM, ours=True, restart="no")
ARM, AMD = (Image(f"sha256:{n}" + "0" * 63, arch, ("vllm/vllm-openai:v1",)) for n, arch in ((1, "arm64"), (2, "amd64")))
LIMITS: dict[str, Any] = {"daemon": ()}
TOOLKIT: dict[str, Any] = {"toolkit": "", "daemon": ('"path": "nvidia-container-runtime",',)}
FUNCTION = PciFunction("0000:01:00.0", 32.0, 4)
UFW = Firewall("ufw", (FIRST,))
MADE_UP = tuple(Profile(f"netplan-{netdev}", netdev, "link-local") for _, netdev, _ in RAILS)
REF = Ref("models--org--big", "abc123", True)

POWER = "mlx5_core 0000:01:00.0: mlx5_pcie_event:326:(pid 165): Detected insufficient power on the PCIe slot (27W)."
# Without a recipe: of any model in the cache.
UNFINISHED = context_with(**store_facts(partial={"models--org--big/blobs/a.incomplete": 5 << 30}))
BAD_REF = context_with(**store_facts(refs=(replace(REF, text="abc123\n"),)))

FIRING = {
    "NET001": context_of_two(twin_without_address(1), twin_without_address(2)),
    "NET002": context_of_two(link_facts(1, **{TWIN: {"mtu": 1500}}), {}),
    "NET003": context_of_two(link_facts(1, **{FIRST: {"mtu": 1500}, TWIN: {"mtu": 1500}}), {}),
    "NET004": context_of_two(*(link_facts(n, **{FIRST: {"mtu": 1500}, TWIN: {"mtu": 1500}}) for n in (1, 2))),
    "NET005": context_with(**network(Route("default", "10.40.0.9", FIRST))),
    "NET006": context_with(**link_facts(1, enP7s7=with_address("10.40.0.77"))),
    "NET007": context_with(**nic_facts(bonds={"bond0": (FIRST, TWIN)})),
    "NET008": context_with(**link_facts(1, **{FIRST: {"speed_mbps": 100_000}})),
    "NET009": context_with(**network(profiles=(Profile("netplan-enP2", TWIN, "link-local"),))),
    "NET010": context_with(**link_facts(1, **{FIRST: with_address("169.254.7.1", 16)})),
    "NET011": context_with(**network(netplan={"/etc/netplan/40-cx7.yaml": "644"})),
    "NET012": context_with(**network(firewall=UFW)),
    "NET013": context_with(**proxied("localhost,127.0.0.1")),
    "NET014": context_of_two({}, only_cage(2)),
    "NET015": context_of_two(second_cage(1), second_cage(2)),
    "NET016": context_of_two({}, link_facts(2, **{TWIN: with_address("10.99.0.2")})),
    "NET017": context_of_two(twin_without_address(1), {}),
    "NET019": context_of_two({}, link_facts(2, enP7s7=with_address("10.40.0.1"))),
    "NET018": context_of_two(avahi_facts("spark-1-5"), {}, cluster=BY_MDNS),
    "RDMA001": context_with(kernel_log=plugged(4711.0)),
    "RDMA002": context_with(**nic_facts(armed=True)),
    "RDMA003": context_with(**nic_facts(functions=()), rdma=()),
    "RDMA004": context_with(**nic_facts(verbs=())),
    "RDMA005": context_with(**firmware("28.44.2506")),
    "RDMA006": context_with(**firmware("28.47.1088")),
    "RDMA007": context_with(**drifted(5)),
    "RDMA008": context_with(**variables("NCCL_IB_GID_INDEX=1")),
    "RDMA009": context_with(rdma=rdma_ports(1, "roceP2p1s0f0")),
    "RDMA010": context_with(**nic_facts(functions=(replace(FUNCTION, speed_gt=2.5, width=1),) * 4)),
    "RDMA011": context_with(**nic_facts(devices=(RdmaDevice("rocep1s0f0", "28.45.4028", 200.0, {"link_downed": 9}),))),
    "RDMA012": context_with(**variables("NCCL_IB_DISABLE=1")),
    "RDMA013": context_with(settings=Settings(nccl=("/usr/lib/libnccl.so.2.28.9", "/usr/local/lib/libnccl.so.2.30.4"))),
    "RDMA014": context_with(
        kernel_log=plugged(3.1, "mlx5_core 0000:01:00.0: mlx5_function_setup: pre-init failed, error -110")
    ),
    "DOCK005": context_with(docker=replace(READY, snap=True, root="/var/snap/docker/common/var-lib-docker")),
    "DOCK006": context_with(**occupied(replace(VLLM, restart="always"))),
    "DOCK007": context_with(**occupied(VLLM)),
    "DOCK008": context_with(**occupied(images=(AMD,))),
    "DOCK009": context_of_two(occupied(images=(ARM,)), occupied(images=(replace(ARM, id="sha256:9" + "0" * 63),))),
    "DOCK010": context_with(docker=replace(READY, log_driver="json-file"), **occupied(**LIMITS)),
    "DOCK011": context_with(docker=replace(READY, storage="vfs")),
    "DOCK012": context_with(**occupied(**TOOLKIT)),
    "DOCK013": context(recipe=UNPUBLISHED, images={"spark-1": 0, "spark-2": 0}),
    "DISK002": context_with(disks=(make_disk("~/models", 3),)),
    "DISK003": context_with(**store_facts(inodes_free=9)),
    "DISK004": context_with(**store_facts(fs="nfs4")),
    "FILE003": context_with(**store_facts(foreign="root /home/ai/.cache/huggingface/hub/models--org--big")),
    "SEC001": context_with(**listens("0.0.0.0", 8000, "vllm")),
    "SEC002": context_with(**listens("::", 11434, "ollama")),
    "SEC003": context_with(**listens("0.0.0.0", 8265, "python3")),
    "SEC004": context_with(**listens("0.0.0.0", 50052, "rpc-server")),
    "SEC005": context_with(**listens("10.1.0.1", 8889, "jupyter-lab")),
    "SEC006": context_with(**listens("::", 2375, "dockerd")),
    "SEC007": context_with(**occupied(toolkit="1.17.4")),
    "SEC008": context_with(settings=Settings(token_file="/home/ai/.cache/huggingface/token", token_mode="644")),
    "SEC009": context_with(settings=Settings(lax_ssh=("/home/ai/.ssh/config",))),
    "SEC010": context_with(**listens("0.0.0.0", 2233, "sshd")),
    "SEC011": context_with(
        **listens("0.0.0.0", 8000, "python3"), ranks=(rank_status("b", port=8000, bind="127.0.0.1"),)
    ),
}

MEASURED = {
    "DEEP001": context_of_two({}, measured=bandwidth_measured(13.22)),
    "DEEP002": context_of_two({}, measured=under_load(ClockSample(721.0, 12.0, 96.0))),
    "DEEP003": context_of_two(
        {}, measured=DeepMeasurements(skipped=(Skipped("RDMA bandwidth", "spark-1, spark-2", "no ib_write_bw"),))
    ),
}
SIMULATED = [(code, "simulated nodes are one machine", replace(c, cluster=EMBEDDED)) for code, c in FIRING.items()]
FIRING |= MEASURED
SILENT = [
    ("NET001", "one node has an address there: NET017", FIRING["NET017"]),
    ("NET002", "both are small", FIRING["NET004"]),
    ("NET003", "the house's network has another MTU", context_of_two({})),
    (
        "NET003",
        "nobody else has that subnet",
        context_of_two(link_facts(1, **{FIRST: with_address("10.7.0.1") | {"mtu": 1500}}), {}),
    ),
    ("NET004", "one rail has jumbo frames", FIRING["NET003"]),
    ("NET005", "directly on the link", context_with(**network(Route("10.40.0.0/24", "", FIRST)))),
    ("NET005", "the house's gateway", context_of_two({})),
    (
        "NET006",
        "an interface that is down",
        context_with(**link_facts(1, enP7s7=with_address("10.40.0.77") | {"up": False})),
    ),
    ("NET006", "a wider network loses", context_with(**network(Route("10.0.0.0/8", "", "tun0")))),
    (
        "NET006",
        "the bond of the rails",
        context_with(**nic_facts(bonds={"enP7s7": (FIRST,)}), **link_facts(1, enP7s7=with_address("10.40.0.77"))),
    ),
    ("NET007", "a bond of other netdevs", context_with(**nic_facts(bonds={"bond0": ("eth0", "eth1")}))),
    ("NET008", "another kind of machine", context_with(**link_facts(1, **{FIRST: {"speed_mbps": 100_000}}), **H200)),
    ("NET008", "the device reports no speed", context_with(**link_facts(1, **{FIRST: {"speed_mbps": ODD}}), nic=ODD)),
    ("NET019", "each has its own", context_of_two(link_facts(1), link_facts(2))),
    (
        "NET019",
        "both have a bridge of Docker's",
        context_of_two(
            link_facts(1, enP7s7=with_address("172.17.0.1")), link_facts(2, enP7s7=with_address("172.17.0.1"))
        ),
    ),
    ("NET018", "its own name", context_with(**avahi_facts("spark-1"))),
    ("NET018", "a name that was chosen", context_with(**avahi_facts("spark-1-lab"))),
    (
        "NET008",
        "what the rate of a twin may say",
        context_with(**nic_facts(devices=(RdmaDevice("rocep1s0f0", "28.45.4028", 100.0),))),
    ),
    ("NET009", "all rails of all nodes alike: NET010", context_of_two(network(profiles=MADE_UP))),
    ("NET009", "addresses set by hand", context_with(**network(profiles=(Profile("a", TWIN, "manual"),)))),
    ("NET009", "the house's network may", context_with(**network(profiles=(Profile("a", "enP7s7", "auto"),)))),
    (
        "NET010",
        "a fixed one beside it",
        context_with(**link_facts(1, **{FIRST: {"addresses": (Address("169.254.7.1", 16), Address("10.40.0.1", 24))}})),
    ),
    ("NET011", "600", context_with(**network(netplan={"/etc/netplan/40-cx7.yaml": "600"}))),
    ("NET012", "both rails may pass", context_with(**network(firewall=Firewall("ufw", (FIRST, TWIN))))),
    ("NET012", "by network", context_with(**network(firewall=Firewall("ufw", ("10.40.0.0/16", TWIN))))),
    ("NET012", "no firewall", context_of_two({})),
    ("NET013", "all is excepted", context_with(**proxied("*"))),
    ("NET013", "by network", context_with(**proxied("localhost, 10.40.0.0/16,10.41.0.0/16"))),
    ("NET014", "the same cage", context_of_two({})),
    ("NET015", "all have an address", context_of_two(second_cage(1, Address("10.42.0.1", 24)), {})),
    ("NET015", "one cable", context_of_two(twin_without_address(1), twin_without_address(2))),
    ("NET016", "the twins meet", context_of_two({})),
    ("NET017", "none has one", FIRING["NET001"]),
    ("RDMA001", "while booting", context_with(kernel_log=plugged(11.2))),
    ("RDMA001", "the time is not told", context_with(kernel_log=plugged(None))),
    (
        "RDMA001",
        "pulled out",
        context_with(kernel_log=plugged(99.0, "mlx5_core 0000:01:00.1: Port module event: Cable unplugged")),
    ),
    ("RDMA001", "no link", context_with(kernel_log=plugged(4711.0), rdma=())),
    ("RDMA002", "a machine alone keeps it", context_of_two(nic_facts(armed=True), cluster=ALONE)),
    ("RDMA002", "the recipe takes one node", context(nic_facts(armed=True), ONE)),
    ("RDMA003", "not to be seen there", context_with(**nic_facts(functions=NOT_ASKED))),
    ("RDMA003", "another kind of machine", context_with(**nic_facts(functions=()), rdma=(), **H200)),
    ("RDMA004", "not looked at", context_with(**nic_facts(verbs=NOT_ASKED))),
    ("RDMA004", "no link", context_with(**nic_facts(verbs=()), rdma=())),
    ("RDMA005", "another series", context_with(**firmware("20.31.1014"))),
    ("RDMA005", "another kind of machine", context_with(**firmware("28.39.1002"), **H200)),
    ("RDMA005", "an odd version", context_with(**firmware("28.x"))),
    ("RDMA006", "one was not told", context_with(**firmware(""))),
    (
        "RDMA007",
        "index 5 everywhere",
        context_of_two(
            *({"rdma": tuple(replace(p, gids=gids_of("10.40.0.1", 5)) for p in rdma_ports(n))} for n in (1, 2))
        ),
    ),
    ("RDMA008", "the right one", context_with(**variables("NCCL_IB_GID_INDEX=3"))),
    (
        "RDMA008",
        "the table is not known",
        context_with(**variables("NCCL_IB_GID_INDEX=1"), rdma=tuple(replace(p, gids=()) for p in rdma_ports(1))),
    ),
    ("RDMA009", "one node has no cable: FAB006", context_with(rdma=rdma_ports(1, "rocep1s0f0", "roceP2p1s0f0"))),
    ("RDMA010", "not told", context_with(**nic_facts(functions=(replace(FUNCTION, speed_gt=0.0, width=0),)))),
    (
        "RDMA011",
        "a reboot of the peer",
        context_with(**nic_facts(devices=(RdmaDevice("rocep1s0f0", "", None, {"link_downed": 2}),))),
    ),
    ("RDMA012", "nothing is set", context_of_two({})),
    ("RDMA013", "the same everywhere", context_of_two({"settings": Settings(nccl=("/usr/lib/libnccl.so.2.28.9",))})),
    ("RDMA014", "a warning that full speed has too", context_with(kernel_log=plugged(6.1, POWER))),
    ("DOCK005", "no GPU", context_with(docker=replace(READY, snap=True), gpus=())),
    ("DOCK006", "no engine", context_with(**occupied(PLAIN))),
    ("DOCK006", "ours", context_with(**occupied(replace(OURS, restart="always")))),
    ("DOCK007", "ours", context_with(**occupied(OURS))),
    ("DOCK007", "it has ended", context_with(**occupied(replace(VLLM, running=False)))),
    ("DOCK007", "no engine", context_with(**occupied(PLAIN))),
    ("DOCK008", "the same", context_with(**occupied(images=(ARM,)))),
    ("DOCK008", "another image than the recipe's", context(occupied(images=(AMD,)))),
    ("DOCK009", "the same id", context_of_two(occupied(images=(ARM,)))),
    ("DOCK010", "a limit is set", context_with(docker=replace(READY, log_driver="json-file"))),
    (
        "DOCK010",
        "the journal has its own",
        context_with(docker=replace(READY, log_driver="journald"), **occupied(**LIMITS)),
    ),
    ("DOCK011", "overlay", context_with(docker=replace(READY, storage="overlay2"))),
    ("DOCK012", "another runtime under that name", context_with(**occupied(toolkit=""))),
    ("DOCK013", "one node has it", context(recipe=UNPUBLISHED, images={"spark-1": 0, "spark-2": 9})),
    ("DOCK013", "Docker gave no answer", context({"docker": STOPPED}, UNPUBLISHED, images={"spark-1": 0})),
    ("DOCK013", "a registry has it", context(images={"spark-1": 0, "spark-2": 0})),
    ("DISK002", "room enough", context_of_two({})),
    ("DISK003", "the file system counts none", context_with(**store_facts(inodes=0, inodes_free=0))),
    ("DISK004", "its own disk", context_of_two({})),
    ("MODEL004", "with a recipe others speak of its model", context(store_facts(partial={"a": 1}))),
    ("MODEL005", "in order", context_with(**store_facts(refs=(REF,)))),
    ("FILE003", "root is the user", context_with(**store_facts(foreign="ai /x"), identity=ODD)),
    ("SEC001", "loopback", context_with(**listens("127.0.0.1", 8000, "vllm"))),
    ("SEC001", "the fabric", context_with(**listens("10.40.0.1", 8000, "vllm"))),
    ("SEC001", "ours", context_with(**listens("0.0.0.0", 8000, "vllm"), **OWN)),
    ("SEC001", "a web server on another port", context_with(**listens("0.0.0.0", 443, "nginx"))),
    ("SEC001", "another program has that port", context_with(**listens("0.0.0.0", 8080, "nginx"))),
    ("SEC002", "loopback", context_with(**listens("::1", 11434, "ollama"))),
    ("SEC003", "Redis itself", context_with(**listens("0.0.0.0", 6379, "redis-server"))),
    (
        "SEC003",
        "beside a rank of ours",
        context_with(**listens("0.0.0.0", 8265, "python3"), ranks=(rank_status("b", engine="vllm"),)),
    ),
    ("SEC004", "the fabric", context_with(**listens("10.41.0.1", 50052, "rpc-server"))),
    ("SEC005", "another program has that port", context_with(**listens("0.0.0.0", 8888, "nginx"))),
    ("SEC006", "with certificates", context_with(**listens("0.0.0.0", 2376, "dockerd"))),
    ("SEC007", "cured", context_with(**occupied(toolkit="1.17.8"))),
    ("SEC007", "not there", context_with(**occupied(toolkit=""))),
    ("SEC008", "600", context_with(settings=Settings(token_file="/t", token_mode="600"))),
    ("SEC009", "nothing there", context_of_two({})),
    (
        "SEC011",
        "where it was told",
        context_with(**listens("127.0.0.1", 8000, ""), ranks=(rank_status("b", port=8000, bind="127.0.0.1"),)),
    ),
    ("SEC010", "the node's own", context_with(**listens("0.0.0.0", 22, "sshd"))),
    *((code, "nothing was measured", context_of_two({})) for code in MEASURED),
    *SIMULATED,
]
