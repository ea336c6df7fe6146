"""`check` and `check --deep` from real commands to findings: two nodes of this machine, with trees for hardware."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from fakes.sink import FakeSink
from sparkwright.app.check.deep import run_deep_checks
from sparkwright.app.cluster_options import ClusterOptions
from sparkwright.app.gather import gather, reached
from sparkwright.app.services import Services
from sparkwright.checks.catalog import check_all
from sparkwright.domain.check import Context
from sparkwright.domain.cluster import Cluster
from sparkwright.domain.finding import Severity
from sparkwright.facts.ranks import ranks_fact
from sparkwright.simulator.nodes import make_cluster
from sparkwright.wiring import services

MINE = ("DEEP", "RDMA", "NET", "DOCK", "DISK", "FILE", "MODEL", "SEC")
# The shim listens to nothing and sends nothing; it prints the tool's table for whatever it is asked.
PERFTEST = r"""#!/bin/sh
case "$*" in *-h*) echo '  --bind_source_ip  x'; exit 0 ;; esac
printf ' #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n'
printf ' 65536      1059332          0.00               13.22              0.176557\n'
"""
SPEEDS = "32.0 GT/s PCIe\n"


def pci_files(address: str) -> dict[str, str]:
    at = f"sys/bus/pci/devices/{address}"
    files = {"vendor": "0x15b3\n", "class": "0x020000\n", "current_link_speed": SPEEDS, "current_link_width": "4\n"}
    return {f"{at}/{name}": text for name, text in files.items()}


def write_files(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    """Two nodes as the demo makes them, taken for real, with a NIC that is in order."""
    made = replace(make_cluster(tmp_path), simulated=False)
    for node in made.nodes:
        system = tmp_path / node.name / "system"
        for address in ("0000:01:00.0", "0000:01:00.1", "0002:01:00.0", "0002:01:00.1"):
            write_files(system, pci_files(address))
        for device in ("rocep1s0f0", "roceP2p1s0f0"):
            here = f"sys/class/infiniband/{device}"
            write_files(system, {f"{here}/fw_ver": "28.45.4028\n", f"{here}/ports/1/rate": "200 Gb/sec (2X NDR)\n"})
        write_files(system, {"dev/infiniband/uverbs0": ""})
    return made


@pytest.fixture
async def real_services(cluster: Cluster) -> AsyncIterator[Services]:
    async with services(cluster, ClusterOptions(), FakeSink()) as made:
        yield made


async def finding_codes(real: Services) -> dict[str, Severity]:
    facts = reached(await gather(real.hosts, real.cluster.nodes, real.clock, ranks_fact))
    assert len(facts) == 2
    findings = check_all(Context(real.cluster, facts))
    return {finding.code: finding.severity for finding in findings if finding.code.startswith(MINE)}


async def test_a_link_in_order_has_nothing_above_info(real_services: Services) -> None:
    """Guards against false alarms: what the commands report of healthy trees makes no rule of the link speak."""
    found = {
        code: severity for code, severity in (await finding_codes(real_services)).items() if not code.startswith("SEC")
    }
    assert {code for code, severity in found.items() if severity is not Severity.INFO} == set()


async def test_defects_are_seen_from_the_node_to_the_finding(real_services: Services, tmp_path: Path) -> None:
    """Guards the whole way of each kind of fact: sysfs, device nodes, marker, netplan, variables, ip, the hub cache."""
    system, home = tmp_path / "spark-1" / "system", tmp_path / "spark-1" / "home"
    write_files(system, {"etc/nvidia/cx7-hotplug-enabled": "", "etc/netplan/40-cx7.yaml": "network: {}\n"})
    write_files(
        system, {"etc/environment": "NCCL_IB_GID_INDEX=1\nNCCL_IB_DISABLE=1\n", "etc/ufw/ufw.conf": "ENABLED=yes\n"}
    )
    write_files(system, {"sys/class/infiniband/rocep1s0f0/fw_ver": "28.44.2506\n"})
    write_files(system, {"sys/bus/pci/devices/0002:01:00.1/current_link_width": "1\n"})
    (system / "dev/infiniband/uverbs0").unlink()
    hub = home / ".cache/huggingface/hub/models--org--big"
    write_files(hub, {"refs/main": "abc\n", "snapshots/abc/config.json": "{}", "blobs/0a.incomplete": "1"})
    write_files(home, {".cache/huggingface/token": "x"})
    ip = tmp_path / "spark-1" / "bin" / "ip"
    ip.write_text(ip.read_text().replace("9000", "1500", 1))
    found = await finding_codes(real_services)
    wanted = {"RDMA002", "RDMA004", "RDMA005", "RDMA006", "RDMA008", "RDMA010", "RDMA012", "NET002", "NET003", "NET011"}
    assert wanted | {"NET012", "MODEL004", "MODEL005", "SEC008"} <= set(found)


async def test_deep_asks_the_real_nodes(real_services: Services, tmp_path: Path) -> None:
    """Guards that servers and clients of both rails run on the nodes, side by side, and that the cap is named."""
    for node in real_services.cluster.nodes:
        shim = tmp_path / node.name / "bin" / "ib_write_bw"
        shim.write_text(PERFTEST)
        shim.chmod(0o755)
    nodes = real_services.cluster.nodes
    facts = reached(await gather(real_services.hosts, nodes, real_services.clock, ranks_fact))
    idle = {name: replace(one, gpus=()) for name, one in facts.items()}
    findings = await run_deep_checks(real_services, nodes, idle)
    told = [(f.code, f.title) for f in findings if f.code == "DEEP001"]
    assert told == [("DEEP001", f"{device} moves 13 Gb/s") for device in ("rocep1s0f0", "roceP2p1s0f0")]
    assert all("attached while the machine ran" in f.cause for f in findings if f.code == "DEEP001")
