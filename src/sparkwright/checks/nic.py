"""Checks of the ConnectX-7."""

import re
from collections.abc import Iterator

from sparkwright.checks.rails import nics, rails, wired
from sparkwright.checks.reading import (
    FIRMWARE,
    not_gb10,
    per_node,
    real_nodes,
)
from sparkwright.domain.check import Check, Context, Found
from sparkwright.domain.fabric_facts import Nic, PciFunction, RdmaDevice
from sparkwright.domain.facts import NodeFacts, Unknown
from sparkwright.domain.finding import INFO, OVERRIDE, WARN
from sparkwright.domain.host_facts import KernelNote
from sparkwright.domain.unknown import known
from sparkwright.facts.nic import MARKER

_PLUGGED = re.compile(r"\bcable plug(ged|in)\b", re.IGNORECASE)
_BOOTING = 30.0


def hot_attached(facts: NodeFacts) -> Iterator[Found]:
    late = _late(facts)
    if late and rails(facts):
        yield Found(f"kernel, {late.last:.0f} s after boot: {late.latest or late.text}")


def _late(facts: NodeFacts) -> KernelNote | None:
    log = known(facts.kernel_log)
    notes = log.matching(_PLUGGED) if log else ()
    timed = [(note.last, note) for note in notes if note.last is not None and note.last > _BOOTING]
    return max(timed, key=lambda pair: pair[0])[1] if timed else None


def hotplug_armed(facts: NodeFacts, nic: Nic) -> Iterator[Found]:
    if nic.armed:
        yield Found(f"{MARKER} is there")


_FUNCTIONS = 4


def functions_missing(context: Context) -> Iterator[Found]:
    for facts, nic in nics(context):
        functions = nic.functions
        if isinstance(functions, Unknown) or not known(facts.gpus) or not_gb10(facts):
            continue
        elsewhere = not functions and rails(facts)  # ports without a function: they are not on this bus
        if len(functions) < _FUNCTIONS and not elsewhere:
            yield Found(
                ", ".join(function.address for function in functions) or "no network function of vendor 15b3",
                title=f"{_FUNCTIONS - len(functions)} of {_FUNCTIONS} PCI functions of the NIC are missing",
                subject=facts.node,
            )


def _verb(count: int) -> str:
    return "is" if count == 1 else "are"


def verbs_missing(context: Context) -> Iterator[Found]:
    for facts, nic in nics(context):
        active = [port.device for port in known(facts.rdma) or () if port.active]
        if active and nic.verbs == ():
            yield Found(
                f"{', '.join(active)} ACTIVE; no /dev/infiniband/uverbs*",
                severity=OVERRIDE if context.recipe else WARN,
                subject=facts.node,
            )


_GOOD = (28, 45, 4028)


def nic_firmware_old(facts: NodeFacts, nic: Nic) -> Iterator[Found]:
    old = [device for device in nic.devices if _is_old(device.firmware)]
    if old and not not_gb10(facts):
        yield Found(
            ", ".join(f"{device.name} fw_ver {device.firmware}" for device in old),
            title=f"NIC firmware {old[0].firmware} is older than {'.'.join(map(str, _GOOD))}",
        )


def _is_old(version: str) -> bool:
    """Only of the ConnectX-7's own series, 28."""
    parts = version.split(".")
    numbers = tuple(int(part) for part in parts if part.isascii() and part.isdigit())
    return len(numbers) == len(parts) == len(_GOOD) and numbers[0] == _GOOD[0] and numbers < _GOOD


def nic_firmware_differs(context: Context) -> Iterator[Found]:
    versions = {facts.node: sorted({d.firmware for d in nic.devices if d.firmware}) for facts, nic in nics(context)}
    told = {node: found for node, found in versions.items() if found}
    if len({tuple(found) for found in told.values()}) > 1:
        yield Found("; ".join(f"{node}: {', '.join(found)}" for node, found in told.items()), subject=", ".join(told))


_SPEED, _LANES = 32.0, 4


def pcie_slow(facts: NodeFacts, nic: Nic) -> Iterator[Found]:
    known_gb10 = bool(known(facts.gpus)) and not not_gb10(facts)
    functions = () if isinstance(nic.functions, Unknown) else nic.functions
    narrow = [function for function in functions if known_gb10 and _is_narrow(function)]
    if narrow:
        yield Found(
            ", ".join(f"{f.address} {f.speed_gt:g} GT/s x{f.width}" for f in narrow)
            + f"; expected: {_SPEED:g} GT/s x{_LANES}",
            title=f"slow PCIe link of {narrow[0].address}",
        )


def _is_narrow(function: PciFunction) -> bool:
    return 0 < function.speed_gt < _SPEED or 0 < function.width < _LANES


_MANY = {"link_downed": 5, "symbol_error": 1000, "out_of_sequence": 1000, "packet_seq_err": 1000}


def link_bounced(context: Context) -> Iterator[Found]:
    for facts, nic in nics(context) if not context.recipe else ():
        active = {rail.port.device for rail in rails(facts)}
        for device in nic.devices:
            counted = _counted(device) if device.name in active else ""
            if counted:
                yield Found(
                    f"since boot: {counted}",
                    title=f"error counters of {device.name} are high",
                    fix="seat the cable at both ends and compare the counters after a run: "
                    f"grep . /sys/class/infiniband/{device.name}/ports/1/*counters/*",
                    subject=facts.node,
                )


def _counted(device: RdmaDevice) -> str:
    return ", ".join(
        f"{name} {device.counters[name]}" for name, many in _MANY.items() if device.counters.get(name, 0) >= many
    )


_FAULT = re.compile(
    r"mlx5_core .*(pre-init|wait_fw_init|firmware over \d+ MS|failed with error -(110|12|5)\b|error -110"
    r"|firmware (fatal|internal) error|health poll failed|health compromised)|\bDOE\b.*\bmailbox",
    re.IGNORECASE,
)


def nic_fault(facts: NodeFacts) -> Iterator[Found]:
    log = known(facts.kernel_log)
    notes = log.matching(_FAULT) if log else ()
    if notes:
        yield Found(f"kernel: {notes[0].text}" + (f" ({notes[0].count} times)" if notes[0].count > 1 else ""))


CHECKS = (
    Check("RDMA001", WARN, "cable hot-plugged, link may be capped", per_node(wired, hot_attached)).about(
        detects="the kernel saw a cable being plugged in more than 30 s after boot, and an RDMA port is ACTIVE.",
        why="a ConnectX-7 that comes onto the bus of a running GB10 stays in a power state with which the link "
        "says 200 Gb/s, ping is fine, and 13 to 14 Gb/s is all it moves, whatever one tunes (NCCL: 2.8 GB/s).",
        cause="a NIC that is attached while the machine runs keeps a power cap that the link's state does not show",
        fix="sparkwright check --deep measures it; if it is so, reboot all nodes together with the cable in (if "
        "that does not help: a minute without mains power)",
        see=(
            "https://github.com/guardkit/dgx-spark",
            "https://forums.developer.nvidia.com/t/370035",
            "https://forums.developer.nvidia.com/t/363461",
            "https://forums.developer.nvidia.com/t/373538",
            "https://forums.developer.nvidia.com/t/383649",
        ),
    ),
    Check("RDMA002", WARN, "NIC hot-plug handler is active", per_node(nics, hotplug_armed)).about(
        detects="/etc/nvidia/cx7-hotplug-enabled on a node of a cluster of several.",
        why="when a node reboots, the handler takes the NIC of its peer off the PCI bus, and it does not always "
        "come back; a cable that is seated later gives 13 Gb/s (RDMA001). It is there to save about 18 W "
        "without a cable, and on one machine alone it should stay: there is a report of the fan stopping at "
        "idle with the NIC off.",
        cause="DGX OS takes the NIC off the PCI bus when its link goes down, to save about 18 W",
        fix=f"on all nodes: sudo mv {MARKER} {MARKER}.off; then reboot all together with the cable in",
        see=("https://forums.developer.nvidia.com/t/378945",),
    ),
    Check("RDMA003", WARN, "NIC functions missing on the PCI bus", functions_missing).about(
        detects="a GB10 in a cluster that has fewer than four functions of the NIC on the bus.",
        why="two cages are two functions on each of two PCI domains. None: the hot-plug handler has taken the "
        "NIC off (no cable at boot, or the peer went away). Two: one domain is missing, and with it half of "
        "the bandwidth.",
        cause="the hot-plug handler took the NIC off the bus: no cable at boot, or the peer's end went down",
        fix="seat the cable on both nodes and reboot both with it in (without a reboot: sudo "
        "mtk-hotplug-handler.sh plug-in, which leaves the speed capped)",
        see=("https://github.com/guardkit/dgx-spark",),
    ),
    Check("RDMA004", OVERRIDE, "no /dev/infiniband device nodes", verbs_missing).about(
        detects="an ACTIVE RDMA port, and no /dev/infiniband/uverbs* on the node.",
        why="NCCL finds no HCA and falls back to sockets without a word (a third of the speed), and `docker run "
        "--device /dev/infiniband` fails.",
        cause="the module ib_uverbs is not loaded, or udev made no nodes",
        fix="on {node}: sudo modprobe ib_uverbs; at every boot: sudo apt install rdma-core",
        see=("https://github.com/luisefigueroa/pulsar-gb10-vllm-stack",),
    ),
    Check("RDMA005", WARN, "outdated NIC firmware", per_node(nics, nic_firmware_old)).about(
        detects="an RDMA device with firmware below 28.45.4028, on a node whose GPU is a GB10 or not known.",
        why="spring 2026's firmware halved the bandwidth; 28.45.4028 is the first without it. One cluster went "
        "from 3 to 22 GB/s of NCCL by bringing all its firmware up to date.",
        cause="older firmware halves the link's speed",
        fix=f"on {{node}}: {FIRMWARE}; then reboot all nodes with the cable in",
        see=("https://github.com/guardkit/dgx-spark", "https://forums.developer.nvidia.com/t/368025"),
    ),
    Check("RDMA006", WARN, "NIC firmware differs between nodes", nic_firmware_differs).about(
        detects="the newest firmware of one node's RDMA devices is another than that of another node's.",
        why="everybody who runs a stable cluster keeps them equal; mixed pairs were seen at an eighth of the speed.",
        cause="one node was updated and another was not",
        fix=f"on each node: {FIRMWARE}; then reboot all with the cable in",
        see=("https://github.com/spark-arena/sparkrun",),
    ),
    Check("RDMA010", WARN, "slow PCIe link of the NIC", per_node(nics, pcie_slow)).about(
        detects="a function of the ConnectX-7 on a GB10 whose link is below 32 GT/s or narrower than four lanes.",
        why="each function has four lanes of PCIe 5 (126 Gb/s); with less the whole rail is slower: one lane of "
        "the first generation was reported with busbw of 2.8 GB/s.",
        cause="old firmware, or a NIC that was attached while the machine ran",
        fix="update the firmware (fwupdmgr), shut down, a minute without mains power, boot with the cable in",
        see=("https://github.com/DoctorMasterNewb/sparkbase",),
    ),
    Check("RDMA011", INFO, "error counters of the link are high", link_bounced).about(
        detects="an ACTIVE port that counts five or more losses of its link, or a thousand or more retransmissions "
        "for a packet out of sequence (our own lines: no source gives any; a reboot of the peer counts one "
        "or two losses).",
        why="connections that are up survive a short loss, the next start may not: the GID table is renumbered "
        "each time.",
        cause="a cable that is not well seated, or a peer that comes and goes",
        fix="seat the cable, try another; inspect the peer's power",
        see=("https://github.com/bytebunkerlabs/dgx-spark-serve",),
        status="preview",
    ),
    Check("RDMA014", WARN, "ConnectX-7 fault in the kernel log", per_node(real_nodes, nic_fault)).about(
        detects="lines of this boot's kernel log in which mlx5_core cannot initialise the NIC (`pre-init`, error "
        "-110) or loses its firmware; and `DOE mailbox` errors. PCIe errors are HOST021's.",
        why="an unasked-for update by mlnx-fw-updater bricked NICs so; with three cables in two machines had "
        "dead ports. The line about insufficient power on the slot (27 W) is printed at full speed too, and "
        "is not blamed.",
        cause="broken or half-written firmware, or a fault of the NIC",
        fix="shut {node} down and take it off mains power for a minute; if it stays, ask the maker (and: sudo "
        "apt-mark hold mlnx-fw-updater)",
        see=("https://github.com/DoctorMasterNewb/sparkbase", "https://forums.developer.nvidia.com/t/365584"),
    ),
)
