"""The findings of `check` on machines that are in order: two nodes as they come, and machines that are no GB10 at
all."""

import re
from dataclasses import replace
from typing import Any

from sparkwright.checks.catalog import check_all
from sparkwright.domain.check import Context
from sparkwright.domain.cluster import Cluster, Node
from sparkwright.domain.fabric_facts import Container, Containers
from sparkwright.domain.facts import (
    NOT_ASKED,
    Address,
    Docker,
    DockerTrouble,
    Driver,
    Gpu,
    GpuProcess,
    Kernel,
    Listener,
    Memory,
    NodeFacts,
    Unknown,
)
from sparkwright.domain.finding import Severity
from sparkwright.domain.host_facts import Package, Unit
from sparkwright.domain.units import GIB, MIB
from sparkwright.facts.kernel import WORTH
from unit.checks.host_samples import BOARD
from unit.checks.samples import CLUSTER, NODES, ODD, RAILS, TOTAL, context, healthy, interfaces, rank_status
from unit.checks.stock import BOOT, stock_context, stock_node
from unit.for_each import for_each

# All that a stock pair that serves well gets; a user may want each mended, and none stops a start.
WARNED = {"HOST012", "RDMA002"}
TOLD = {"DOCK010", "HOST011", "HOST014", "HOST018", "MEM009"}


def severities(where: Context) -> tuple[set[str], set[str]]:
    """(codes that are warned of or worse, codes that are only reported)"""
    findings = check_all(where)
    weighty = {finding.code for finding in findings if finding.severity is not Severity.INFO}
    return weighty, {finding.code for finding in findings} - weighty


@for_each("driver", ["580.142", "580.159.03", "580.173.02", "580.178.04"])
@for_each("maker", ["founders", "asus", "hp"])
def test_a_stock_pair_hears_little(maker: str, driver: str) -> None:
    """Guards that a pair which serves well as it came is warned of the handler and of sleep, and of nothing else."""
    contested = {"DRV011"} if driver == "580.159.03" else set()
    assert severities(stock_context({"driver": driver}, {"maker": maker, "driver": driver})) == (
        WARNED,
        TOLD | contested,
    )


def test_pools_of_different_size_are_only_reported() -> None:
    """Guards that a machine with the larger display reserve next to one with the smaller is no warning."""
    assert severities(stock_context({}, {"maker": "early"})) == (WARNED, TOLD | {"MEM015"})


def test_a_tuned_pair_hears_nothing() -> None:
    """Guards that there is a state in which `check` ends with 0 and not a word."""
    assert check_all(Context(CLUSTER, {name: healthy(name) for name in NODES})) == ()


def test_a_stock_machine_alone_keeps_its_handler() -> None:
    """Guards that nobody with one machine is asked to disarm what cools and saves power there."""
    alone = Context(replace(CLUSTER, nodes=CLUSTER.nodes[:1]), {"spark-1": stock_node("spark-1")})
    assert severities(alone) == ({"HOST012"}, TOLD)


def test_boot_lines_reach_the_rules() -> None:
    """Guards that the silence about a healthy boot is the rules' and not the node's filter's."""
    passed = [line for line in BOOT if re.search("|".join(WORTH), line)]
    assert len(passed) > len(BOOT) // 2


def rails_at(number: int, *networks: str, mtu: int = 9000) -> dict[str, Any]:
    """Both rails of a node, each with an address `NETWORK.number`."""
    given = dict(zip((netdev for _, netdev, _ in RAILS), networks, strict=True))
    links = interfaces(number)
    changed = (
        replace(link, mtu=mtu, addresses=(Address(f"{given[link.name]}.{number}", 24),)) if link.name in given else link
        for link in links
    )
    return {"interfaces": tuple(changed)}


def test_small_packets_everywhere_are_only_reported() -> None:
    """Guards that a pair at MTU 1500, as many run, is not warned of it."""
    both = [rails_at(n, "10.40.0", "10.41.0", mtu=1500) for n in (1, 2)]
    assert severities(stock_context(*both)) == (WARNED, TOLD | {"NET004"})


def machine(*, arch: str, **changes: Any) -> Context:
    """`check` of one machine that is no GB10, reached as itself."""
    facts = healthy("spark-1")
    identity = replace(facts.identity, arch=arch, product="LENOVO 21", dgx_platform=ODD, ota_version=ODD)  # type: ignore[type-var]
    usual: dict[str, Any] = {
        "identity": identity,
        "kernel": Kernel("6.17.0-35-generic", "quiet splash", "Ubuntu 24.04.3 LTS"),
        "gpus": Unknown("", "nvidia-smi is not installed"),
        "gpu_processes": Unknown("", "nvidia-smi is not installed"),
        "driver": Unknown("", "nvidia-smi is not installed"),
        "board": replace(BOARD, nvidia={}, devices=(), libcuda=ODD, module=ODD, zones={"acpitz": 97.0}),
        "packages": (),
        "rdma": (),
        "upkeep": replace(stock_node("spark-1").upkeep, wifi="wlp2s0", power_save=True, locale="de_DE.UTF-8"),  # type: ignore[type-var]
        "nic": NOT_ASKED,
    }
    cluster = Cluster("desk", (Node("spark-1", "local"),), "spark-1")
    return Context(cluster, {"spark-1": replace(facts, **(usual | changes))})


def test_a_laptop_hears_nothing() -> None:
    """Guards that what is wrong on a serving GB10 is not compared with somebody's laptop."""
    assert check_all(machine(arch="x86_64")) == ()


def test_a_broken_driver_on_a_pc_is_not_judged_as_a_gb10s() -> None:
    """Guards that a PC whose nvidia-smi fails is not asked to install what GB10 needs."""
    old = (Package("nvidia-driver-535", "535.183.01-0ubuntu1"), Package("libnvidia-compute-535", "535.183.01-0ubuntu1"))
    where = machine(arch="x86_64", gpus=Unknown("NVIDIA-SMI has failed", "exited 9"), driver=Driver("535.183.01", ODD))
    assert check_all(replace(where, facts={"spark-1": replace(where.facts["spark-1"], packages=old)})) == ()


def test_another_gpu_is_reported_and_not_judged() -> None:
    """Guards that a server with another GPU and driver branch is used as it is."""
    h200 = Gpu("NVIDIA H200", "590.48.01", "9.0", 1, 60.0, 300.0, 1980.0, 98.0)
    where = machine(arch="x86_64", gpus=(h200,), gpu_processes=(), driver=Driver("590.48.01", "590.48.01"))
    assert severities(where) == (set(), {"GPU003"})


def test_a_container_as_node_hears_nothing() -> None:
    """Guards that a container without systemd, kernel log, packages and Docker is no heap of findings."""
    bare = {name: Unknown("", "exited 127") for name in ("times", "kernel_log", "packages", "activity", "network")}
    docker = Docker("", trouble=DockerTrouble.NOT_INSTALLED)
    where = machine(arch="aarch64", upkeep=ODD, board=ODD, docker=docker, **bare)
    assert severities(where) == (set(), {"DOCK001"})


FACTS = [name for name in NodeFacts.__dataclass_fields__ if name not in ("node", "at", "asked")]


@for_each("name", FACTS)
def test_a_fact_less_is_not_a_finding_more(name: str) -> None:
    """Guards that on a stock pair no rule takes what could not be read for a defect."""
    lesser = stock_context({name: Unknown("", "no answer within 10 s")}, {name: Unknown("", "no answer within 10 s")})
    weighty, told = severities(lesser)
    unread = {"kernel_log": {"HOST024"}, "gpus": {"GPU008"}}.get(name, set())
    assert weighty | told <= WARNED | TOLD | unread


def test_sleep_is_only_reported_without_a_desktop() -> None:
    """Guards that the warning about sleep is for nodes on which something may ask for it."""
    upkeep = stock_node("spark-1").upkeep
    assert not isinstance(upkeep, Unknown)
    units = dict(upkeep.units) | {"display-manager.service": Unit("gdm", "loaded", "inactive")}
    headless = {"upkeep": replace(upkeep, units=units)}
    weighty, told = severities(stock_context(headless, headless))
    assert "HOST012" in told and "HOST012" not in weighty


def test_a_pair_that_serves_hears_no_more() -> None:
    """Guards that an engine of ours at its floor, with swap that rests, is not taken for a fault."""
    serving = {
        "ranks": (rank_status("big", engine="vllm", bind="10.40.0.1"),),
        "gpu_processes": (GpuProcess(4711, "VLLM::EngineCore", 96_581 * MIB),),
        "memory": Memory(TOTAL, GIB, 5 * GIB, 6 * GIB, 16 * GIB, 11 * GIB, 103 * GIB),
        "gpus": (Gpu("NVIDIA GB10", "580.178.04", "12.1", ODD, 79.0, 48.0, 2411.0, 96.0),),
        "listeners": (
            Listener("0.0.0.0", 22, "sshd"),
            Listener("10.40.0.1", 8000, "vllm"),
            Listener("::", 25000, "VLLM::EngineCor"),
        ),
        "containers": Containers(
            (Container("sparkwright-big-rank0", "vllm/vllm-openai:v0.21.0", True, "no", gpu=True, ours=True),),
            toolkit="1.19.0",
        ),
    }
    assert severities(stock_context(serving, serving)) == (WARNED, TOLD | {"MEM007"})
    assert all(
        finding.fix is None for finding in check_all(stock_context(serving, serving)) if finding.code != "HOST012"
    )


def test_a_start_on_a_stock_pair_is_not_delayed() -> None:
    """Guards that a recipe that fits is started, and that what is shown next to it is what is shown by `check`."""
    whole = replace(context(), facts={name: stock_node(name) for name in NODES})
    assert all(not finding.severity.stops for finding in check_all(whole))
    assert {finding.code for finding in check_all(whole)} <= WARNED | TOLD | {"COMPAT003"}
