"""Checks of the ConnectX-7."""

import re
from collections.abc import Iterator

from sparkwright.checks.rails import rails_of, wired_nics, wired_nodes
from sparkwright.checks.reading import not_gb10, per_node, real_nodes
from sparkwright.domain.check import Check, Context, Found, explained
from sparkwright.domain.fabric_facts import Nic, RdmaDevice
from sparkwright.domain.facts import NodeFacts, Unknown
from sparkwright.domain.finding import INFO, OVERRIDE, WARN
from sparkwright.domain.unknown import known_or_none
from sparkwright.facts.nic import MARKER

_PLUGGED = re.compile(r"\bcable plug(ged|in)\b", re.IGNORECASE)
_BOOT_SECONDS = 30.0
_FUNCTIONS = 4
_GOOD_FIRMWARE = (28, 45, 4028)
_PCIE_SPEED, _PCIE_LANES = 32.0, 4
_MANY_ERRORS = {"link_downed": 5, "symbol_error": 1000, "out_of_sequence": 1000, "packet_seq_err": 1000}
_FAULT = re.compile(
    r"mlx5_core .*(pre-init|wait_fw_init|firmware over \d+ MS|failed with error -(110|12|5)\b|error -110"
    r"|firmware (fatal|internal) error|health poll failed|health compromised)|\bDOE\b.*\bmailbox",
    re.IGNORECASE,
)


def hot_attached(facts: NodeFacts) -> Iterator[Found]:
    log = known_or_none(facts.kernel_log)
    notes = log.matching(_PLUGGED) if log else ()
    timed = [(note.last, note) for note in notes if note.last is not None and note.last > _BOOT_SECONDS]
    late = max(timed, key=lambda pair: pair[0])[1] if timed else None
    if late and rails_of(facts):
        yield Found(f"kernel, {late.last:.0f} s after boot: {late.latest or late.text}")


def hotplug_armed(facts: NodeFacts, nic: Nic) -> Iterator[Found]:
    if nic.armed:
        yield Found(f"{MARKER} is there")


def functions_missing(context: Context) -> Iterator[Found]:
    for facts, nic in wired_nics(context):
        functions = nic.functions
        if isinstance(functions, Unknown) or not known_or_none(facts.gpus) or not_gb10(facts):
            continue
        elsewhere = not functions and rails_of(facts)  # ports without a function: they are not on this bus
        if len(functions) < _FUNCTIONS and not elsewhere:
            yield Found(
                ", ".join(function.address for function in functions) or "no network function of vendor 15b3",
                title=f"{_FUNCTIONS - len(functions)} of {_FUNCTIONS} PCI functions of the NIC are missing",
                subject=facts.node,
            )


def verbs_missing(context: Context) -> Iterator[Found]:
    for facts, nic in wired_nics(context):
        active = [port.device for port in known_or_none(facts.rdma) or () if port.active]
        if active and nic.verbs == ():
            yield Found(
                f"{', '.join(active)} ACTIVE; no /dev/infiniband/uverbs*",
                severity=OVERRIDE if context.recipe else WARN,
                subject=facts.node,
            )


def nic_firmware_old(facts: NodeFacts, nic: Nic) -> Iterator[Found]:
    old = [device for device in nic.devices if _is_old(device.firmware)]
    if old and not not_gb10(facts):
        yield Found(
            ", ".join(f"{device.name} fw_ver {device.firmware}" for device in old),
            title=f"NIC firmware {old[0].firmware} is older than {'.'.join(map(str, _GOOD_FIRMWARE))}",
        )


def _is_old(version: str) -> bool:
    """True if the firmware is older than a good one of its series; only the ConnectX-7's own, 28, is judged."""
    parts = version.split(".")
    numbers = tuple(int(part) for part in parts if part.isascii() and part.isdigit())
    return (
        len(numbers) == len(parts) == len(_GOOD_FIRMWARE)
        and numbers[0] == _GOOD_FIRMWARE[0]
        and numbers < _GOOD_FIRMWARE
    )


def nic_firmware_differs(context: Context) -> Iterator[Found]:
    versions = {
        facts.node: sorted({d.firmware for d in nic.devices if d.firmware}) for facts, nic in wired_nics(context)
    }
    told = {node: found for node, found in versions.items() if found}
    if len({tuple(found) for found in told.values()}) > 1:
        yield Found("; ".join(f"{node}: {', '.join(found)}" for node, found in told.items()), subject=", ".join(told))


def pcie_slow(facts: NodeFacts, nic: Nic) -> Iterator[Found]:
    known_gb10 = bool(known_or_none(facts.gpus)) and not not_gb10(facts)
    functions = () if isinstance(nic.functions, Unknown) else nic.functions
    narrow = [
        function
        for function in functions
        if known_gb10 and (0 < function.speed_gt < _PCIE_SPEED or 0 < function.width < _PCIE_LANES)
    ]
    if narrow:
        yield Found(
            ", ".join(f"{f.address} {f.speed_gt:g} GT/s x{f.width}" for f in narrow)
            + f"; expected: {_PCIE_SPEED:g} GT/s x{_PCIE_LANES}",
            title=f"slow PCIe link of {narrow[0].address}",
        )


def link_bounced(context: Context) -> Iterator[Found]:
    for facts, nic in wired_nics(context) if not context.recipe else ():
        active = {rail.port.device for rail in rails_of(facts)}
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
        f"{name} {device.counters[name]}" for name, many in _MANY_ERRORS.items() if device.counters.get(name, 0) >= many
    )


def nic_fault(facts: NodeFacts) -> Iterator[Found]:
    log = known_or_none(facts.kernel_log)
    notes = log.matching(_FAULT) if log else ()
    if notes:
        yield Found(f"kernel: {notes[0].text}" + (f" ({notes[0].count} times)" if notes[0].count > 1 else ""))


CHECKS = explained(
    __file__,
    Check("RDMA001", WARN, "cable hot-plugged, link may be capped", per_node(wired_nodes, hot_attached)),
    Check("RDMA002", WARN, "NIC hot-plug handler is active", per_node(wired_nics, hotplug_armed)),
    Check("RDMA003", WARN, "NIC functions missing on the PCI bus", functions_missing),
    Check("RDMA004", OVERRIDE, "no /dev/infiniband device nodes", verbs_missing),
    Check("RDMA005", WARN, "outdated NIC firmware", per_node(wired_nics, nic_firmware_old)),
    Check("RDMA006", WARN, "NIC firmware differs between nodes", nic_firmware_differs),
    Check("RDMA010", WARN, "slow PCIe link of the NIC", per_node(wired_nics, pcie_slow)),
    Check("RDMA011", INFO, "error counters of the link are high", link_bounced),
    Check("RDMA014", WARN, "ConnectX-7 fault in the kernel log", per_node(real_nodes, nic_fault)),
)
