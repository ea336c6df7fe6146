"""The FIXTURE blocks of the field guide, cut out of it and parsed where the guide is at hand (it is not shipped)."""

import re
from pathlib import Path

import pytest

from sparkwright.domain.command import Completed
from sparkwright.domain.facts import Gpu, Identity, Interface, Memory, RdmaPort, Unknown
from sparkwright.domain.units import GIB, MIB
from unit.facts.subjects import ALL_FACTS, SUBJECTS, show_gids
from unit.for_each import for_each

GUIDE = Path(__file__).resolve().parents[4] / "shared" / "field-guide" / "gb10.md"
pytestmark = pytest.mark.skipif(
    not GUIDE.is_file(), reason=f"data: the field guide is not next to this checkout: {GUIDE.name}"
)


@pytest.fixture(scope="module")
def field_guide() -> str:
    return GUIDE.read_text()


def blocks(guide: str, word: str) -> list[str]:
    """Fenced blocks that hold `word`, in order."""
    return [block for block in re.findall(r"^```\n(.*?)^```", guide, re.M | re.S) if word in block]


def read(subject: str, text: str) -> object:
    return SUBJECTS[subject](Completed(0, text, ""))


def test_release_files(field_guide: str) -> None:
    """Guards that quoted and unquoted dgx-release files report the platform and the last OTA, and never the serial."""
    who = "@@ hostname\nh\n@@ arch\naarch64\n@@ user\nu\n@@ home\n/home/u\n@@ dgx\n"
    found = [read("identity", who + block) for block in blocks(field_guide, "DGX_PLATFORM=")]
    assert all(isinstance(one, Identity) for one in found)
    told = [(one.dgx_platform, one.ota_version) for one in found if isinstance(one, Identity)]
    assert told == [("GX10", "7.6.0"), ("HP ZGX Nano G1n AI Station", "7.5.0")]
    assert "<serial>" not in repr(found)


def test_query_lines(field_guide: str) -> None:
    """Guards that GB10's odd cells are read one by one: numbers with and without units, [N/A] as unknown."""
    (block,) = blocks(field_guide, "--query-gpu=name,memory.used")
    rows = re.findall(r"--query-gpu=(\S+) --format=csv,noheader\n(.*)\n", block)
    assert len(rows) == 2
    known = {"driver_version": "580.159.03"}
    for fields, cells in rows:
        known |= dict(zip(fields.split(","), cells.split(", "), strict=True))
    found = read("nvidia-smi-gpu", ", ".join(known) + "\n" + ", ".join(known.values()) + "\n")
    unknown = Unknown("[N/A]", "nvidia-smi does not report memory.total")
    no_cap = Unknown("", "nvidia-smi does not report compute_cap")
    not_asked = Unknown("", "nvidia-smi does not report memory.reserved")
    assert found == (Gpu("NVIDIA GB10", "580.159.03", no_cap, unknown, 43.0, 12.61, 2418.0, 2.0, not_asked),)


def test_process_memory(field_guide: str) -> None:
    """Guards that memory by process is read where the GPU's total is not reported."""
    (block,) = blocks(field_guide, "--query-compute-apps")
    found = read("nvidia-smi-processes", block[block.index("pid, process_name") :])
    assert isinstance(found, tuple)
    assert [(one.pid, one.used) for one in found] == [
        (168864, 24420 * MIB),
        (169094, 19871 * MIB),
        (169489, 9279 * MIB),
    ]


def test_driver_retained_pool(field_guide: str) -> None:
    """Guards that the guide's retained-pool machine shows its ~80 GiB that no process holds."""
    (block,) = [block for block in blocks(field_guide, "AnonPages") if "MemTotal" in block]
    found = read("meminfo", block)
    assert isinstance(found, Memory)
    assert found.available == 40174336 * 1024
    assert 79 * GIB < found.unaccounted < 81 * GIB


def test_three_line_excerpts_of_meminfo_are_not_enough(field_guide: str) -> None:
    """Guards that a cut-off printout is unknown, naming what it lacks, and not a machine without page cache."""
    excerpts = [block for block in blocks(field_guide, "MemTotal:") if "AnonPages" not in block]
    columns = [re.findall(r"(Mem\w+:) +(\d+ kB)", line) for line in "".join(excerpts).splitlines()]
    rows = [row for row in columns if row]
    assert len(rows) == 6
    for row in (rows[0], rows[3]):
        for column in range(len(row)):
            at = 0 if row is rows[0] else 3
            found = read("meminfo", "".join(f"{' '.join(rows[at + n][column])}\n" for n in range(3)))
            assert isinstance(found, Unknown)
            assert "lacks Buffers, Cached, AnonPages" in found.why


def rdma_ports(text: str) -> list[RdmaPort]:
    found = read("rdma-link", text)
    assert isinstance(found, tuple)
    return list(found)


def test_rdma_links(field_guide: str) -> None:
    """Guards that the state decides: a DOWN port with LINK_UP is not active."""
    links = [re.findall(r"^link .*$", block, re.M) for block in blocks(field_guide, "link roce")]
    clean, tricky = (rdma_ports("\n".join(lines)) for lines in links)
    assert [port.device for port in clean if port.active] == ["rocep1s0f0", "roceP2p1s0f0"]
    assert [port.device for port in tricky if port.active] == ["rocep1s0f1", "roceP2p1s0f1"]
    assert [port.physical_state for port in tricky] == ["DISABLED", "LINK_UP", "LINK_UP", "LINK_UP"]


def test_ibdev2netdev_in_either_order(field_guide: str) -> None:
    """Guards that no meaning is taken from the order of lines."""
    answers = ["\n".join(re.findall(r"^roce.*==>.*$", block, re.M)) for block in blocks(field_guide, "==>")]
    assert len(answers) == 2
    for text in answers:
        found = read("rdma", f"@@ exit\n127\n@@ rdma\n\n@@ ibdev2netdev\n{text}\n")
        assert isinstance(found, tuple)
        assert {port.netdev for port in found if port.active} == {"enp1s0f0np0", "enP2p1s0f0np0"}


def test_show_gids(field_guide: str) -> None:
    """Guards that an empty IPv4 column, tabs and masked digits shift nothing."""
    table, raw = (show_gids(Completed(0, block)) for block in blocks(field_guide, "fe80:0000") if "roce" in block)
    assert isinstance(table, dict)
    assert isinstance(raw, dict)
    assert {key: len(rows) for key, rows in table.items()} == {
        "rocep1s0f0/1": 4,
        "rocep1s0f1/1": 2,
        "roceP2p1s0f0/1": 4,
        "roceP2p1s0f1/1": 2,
    }
    wanted = [(gid.index, gid.ipv4) for rows in table.values() for gid in rows if gid.version == "v2" and gid.ipv4]
    assert wanted == [(3, "192.168.100.10"), (3, "192.168.100.14")]
    assert [(gid.index, gid.ipv4) for gid in raw["rocep1s0f0/1"]] == [(1, ""), (3, "192.168.100.10")]


def test_ip_addr(field_guide: str) -> None:
    """Guards the text form of `ip addr` (the guide's asterisks around the address are its own)."""
    (line,) = re.findall(r"^FIXTURE `ip addr show`.*$", field_guide, re.M)
    head, ether, inet, inet6 = re.findall(r"`([^`]+)`", line)[1:5]
    inet = inet.replace("*", "").replace("...", "scope global")
    found = read("ip-addr", f"@@ ip\n{head}\n    {ether}\n    {inet}\n    {inet6}\n")
    assert isinstance(found, tuple)
    (link,) = found
    assert isinstance(link, Interface)
    assert (link.name, link.mtu, link.up) == ("enp1s0f1np1", 1500, True)
    assert [(a.ipv4, a.prefix) for a in link.addresses] == [("192.168.100.10", 24)]


@for_each("text", ["[N/A]", "N/A", "Not Supported", "", "NVIDIA-SMI has failed", "No devices were found"])
def test_query_forms_that_must_not_crash(text: str) -> None:
    """Guards the guide's list of answers that have broken other tools' parsers."""
    for name in ("gpus", "driver"):
        assert isinstance(ALL_FACTS[name].read(Completed(0, text + "\n", "")), Unknown)
