"""`facts` as text: for people, and honest about what is not known."""

import re

from sparkwright.cli.facts_text import facts_text
from sparkwright.domain.facts import (
    Address,
    Disk,
    Docker,
    DockerTrouble,
    Driver,
    Gid,
    Gpu,
    GpuProcess,
    Identity,
    Interface,
    Kernel,
    Listener,
    Memory,
    NodeFacts,
    RankStatus,
    RdmaPort,
    Unknown,
)
from sparkwright.domain.units import GIB

NOT_TOLD = Unknown("[N/A]", "not told")
FULL = NodeFacts(
    "spark-1",
    1.0,
    Identity("spark-1", "0" * 32, "aarch64", "b", "ai", "/home/ai", "NVIDIA DGX Spark", "gb10", "7.6.0"),
    Kernel("6.17.0-1014-nvidia", "quiet", "Ubuntu 24.04.3 LTS"),
    Memory(120 * GIB, 100 * GIB, 110 * GIB, 5 * GIB, 16 * GIB, 16 * GIB, 2 * GIB),
    (Gpu("NVIDIA GB10", "580.142", "12.1", NOT_TOLD, 41.0, 4.11, NOT_TOLD, 0.0),),
    (GpuProcess(42, "python3", 3 * GIB), GpuProcess(43, "x", NOT_TOLD)),
    Driver("580.142", "580.95"),
    "580.95",
    (
        RdmaPort("rocep1s0f0", 1, "ACTIVE", "LINK_UP", "enp1s0f0np0", (Gid(3, "::", "v2", "192.168.100.10"),)),
        RdmaPort("rocep1s0f1", 1, "DOWN", "LINK_UP", "enp1s0f1np1"),
    ),
    (Interface("enp1s0f0np0", True, 9000, (Address("192.168.100.10", 24),), 200000),),
    Docker("28.3.3", ("nvidia", "runc"), True, "/var/lib/docker", storage="overlay2"),
    (Disk("/home/ai/models", "/", 1000 * GIB, 400 * GIB), Disk("/data", "/data", 10 * GIB, GIB)),
    (Listener("0.0.0.0", 22, "sshd"), Listener("::", 22, "sshd"), Listener("127.0.0.1", 8000)),
    (RankStatus("big", 0, "spark-1", "docker", "exited", "c", engine="vllm 0.21.0", exit_code=1),),
)


def rows_by_label(facts: NodeFacts) -> dict[str, str]:
    """Label -> its lines, joined."""
    found: dict[str, str] = {}
    for line in facts_text(facts, "spark-1").splitlines()[1:]:
        label = line[2:14].strip()
        last = label or list(found)[-1]
        found[last] = f"{found.get(last, '')}\n{line[14:].strip()}".strip()
    return found


def test_a_node_is_one_readable_block() -> None:
    """Sizes with units, one line for each thing."""
    shown = rows_by_label(FULL)
    assert shown["machine"].splitlines()[0] == "NVIDIA DGX Spark, aarch64, DGX OS 7.6.0, hostname spark-1"
    assert shown["system"] == "Ubuntu 24.04.3 LTS, Linux 6.17.0-1014-nvidia"
    assert shown["memory"].splitlines()[0] == "120.0 GiB in all, MemAvailable 110.0 GiB, MemFree 100.0 GiB"
    assert shown["gpu"] == "NVIDIA GB10, compute capability 12.1, driver 580.142, 41 °C, 4.11 W, 0 % busy"
    assert shown["gpu use"] == "python3 (pid 42, 3.0 GiB)\nx (pid 43, memory unknown)"
    assert shown["rdma"].splitlines()[0].endswith("ACTIVE LINK_UP, enp1s0f0np0, GID 3 192.168.100.10 RoCE v2")
    assert shown["interfaces"].endswith("up, MTU 9000, 200000 Mb/s, 192.168.100.10/24")
    assert shown["docker"] == "28.3.3, runtimes nvidia runc, GPUs by CDI, overlay2, in /var/lib/docker"
    assert shown["disks"] == "/: 400.0 GiB free of 1000.0 GiB (~/models)\n/data: 1.0 GiB free of 10.0 GiB (/data)"
    assert shown["listening"] == "22 (sshd), 8000"
    assert shown["ranks"] == "big rank 0: exited with code 1, vllm 0.21.0, docker"


def test_a_torn_driver_is_seen() -> None:
    """Two versions that should be one."""
    assert rows_by_label(FULL)["driver"] == "kernel module 580.142, GSP firmware 580.95, torn: the two versions differ"


def test_unknown_reports_it_with_its_reason() -> None:
    """Never a guess, never an empty line, never an object's repr."""
    shown = rows_by_label(NodeFacts("spark-1", 1.0, memory=Unknown("odd line", "not understood"), gpus=()))
    assert shown["memory"] == "unknown: not understood (odd line)"
    assert shown["gpu"] == "none"
    assert shown["docker"] == "unknown: not asked"
    text = facts_text(FULL, "spark-1") + facts_text(NodeFacts("n", 1.0), "n")
    assert not re.search(r"Unknown|\w+\(\w+=|\[N/A\]|\b\d{8,}\b", text)


def test_docker_trouble_is_dockers_own_word() -> None:
    """The text has the kind of trouble, and its first line."""
    docker = Docker("", trouble=DockerTrouble.NO_RIGHTS, said="permission denied")
    assert rows_by_label(NodeFacts("n", 1.0, docker=docker))["docker"] == "no rights: permission denied"
