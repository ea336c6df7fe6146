"""The remedy of a fault: a relaunch, a reboot of all nodes, or cutting the power.

Causes are those of the rules about logs, codes those of the checks of nodes. What is not here, a relaunch may fix.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from sparkwright.domain.diagnosis import Diagnosis, Sureness
from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.values import dataclass
from sparkwright.supervisor.core.state import Recovery

_ORDER = tuple(Recovery)


@dataclass(frozen=True, slots=True)
class Needs:
    """recovery, and why in a clause."""

    recovery: Recovery
    why: str


NOTHING = Needs(Recovery.NONE, "")
_REBOOT, _POWER = Recovery.REBOOT, Recovery.POWER_CYCLE

# Key of a cause (causes/*.toml, with its sources) -> what it takes. Only what owners agree on; where they do not (a
# pool that the driver retained and the next CUDA process may have again) the launch itself decides.
BY_CAUSE: Mapping[str, Needs] = {
    "gpu-fell-off-bus-xid79": Needs(_POWER, "the GPU has fallen off the bus"),
    "gb10-stuck-low-power-state": Needs(_POWER, "the GPU's power controller is wedged"),
    "gsp-rpc-timeout": Needs(_REBOOT, "the GPU's firmware does not answer"),
    "gpu-memory-ecc-errors": Needs(_REBOOT, "GPU memory that has failed is taken out of use at a reboot"),
    "nvml-driver-library-mismatch": Needs(_REBOOT, "the driver was updated under the running kernel"),
    "nic-hotplug-power-cap": Needs(_REBOOT, "the network card was attached while running: 13 Gb/s"),
    "nic-detached-by-hotplug": Needs(_REBOOT, "the network card has gone after its peer's reboot"),
    "mstflint-hotplug-kernel-oops": Needs(_REBOOT, "the kernel has crashed in the network card's driver"),
    "uma-exhaustion-host-freeze": Needs(_POWER, "a node froze when its memory was used up"),
}
# Code of a check (checks/*.toml) -> the same, for findings that stop a launch or come up while it serves.
BY_CODE: Mapping[str, Needs] = {
    "GPU005": Needs(_POWER, "the GPU's clock is pinned low under load"),
    "DEEP002": Needs(_POWER, "the GPU's clock is pinned low under load"),
    "GPU011": Needs(_POWER, "GPU fell off the PCI bus"),
    "RDMA001": Needs(_REBOOT, "the network card was attached while running: 13 Gb/s"),
    "RDMA003": Needs(_REBOOT, "functions of the network card are missing"),
    "DRV007": Needs(_REBOOT, "GSP firmware failed to start"),
    "DRV008": Needs(_REBOOT, "the driver was updated under the running kernel"),
    "MEM014": Needs(_REBOOT, "the driver cannot get memory any more (0x51): all nodes cold"),
    "HOST015": Needs(_REBOOT, "the kernel has crashed in a driver"),
}
# Findings of these codes speak of several things: their own severity says which ask for a reboot.
_IF_IT_STOPS: Mapping[str, Needs] = {
    "GPU004": Needs(_REBOOT, "the GPU reported a grave error"),
    "MEM004": Needs(_REBOOT, "the driver keeps memory that no process holds, and the launch needs it"),
    "MEM005": Needs(_REBOOT, "memory is held by nobody"),
}
# What https://docs.nvidia.com/deploy/xid-errors/ says of each; 43 and 94 end one program only.
XIDS: Mapping[int, Needs] = {
    43: Needs(Recovery.RELAUNCH, "the GPU stopped a program after a fault of its own"),
    48: Needs(_REBOOT, "an error in GPU memory that could not be corrected"),
    79: Needs(_POWER, "the GPU has fallen off the bus"),
    94: Needs(Recovery.RELAUNCH, "an error in GPU memory that one program has to end for"),
    95: Needs(_REBOOT, "an error in GPU memory that could not be contained"),
    119: Needs(_REBOOT, "the GPU's firmware did not answer"),
    120: Needs(_REBOOT, "the GPU's firmware failed"),
    140: Needs(_REBOOT, "an error in GPU memory that could not be corrected"),
    154: Needs(_REBOOT, "the GPU asks for a reset or a reboot"),
}
_XID = re.compile(r"Xid \([^)]*\): ([0-9]{1,4})\b", re.ASCII)
# Xid 154 also tells that nothing is needed any more.
_NEEDLESS = re.compile(r"recovery action changed .*\bto 0x0\b")


def worst_needs(needs: Iterable[Needs]) -> Needs:
    """The one that asks for most; the first of equals."""
    return max((NOTHING, *needs), key=lambda one: _ORDER.index(one.recovery))


def of_cause(key: str) -> Needs:
    return BY_CAUSE.get(key, NOTHING)


def of_diagnosis(found: Diagnosis) -> Needs:
    """The needs of the nearly certain causes: a reboot for a guess costs more than a relaunch that fails."""
    return worst_needs(of_cause(cause.key) for cause in found.causes if cause.sureness is Sureness.HIGH)


def of_findings(findings: Sequence[Finding]) -> Needs:
    """The needs of findings about the nodes, as before a launch: only those that stop it or warn."""
    needs = []
    for finding in findings:
        if finding.severity is not Severity.INFO and finding.code in BY_CODE:
            needs.append(BY_CODE[finding.code])
        elif finding.severity.stops and finding.code in _IF_IT_STOPS:
            needs.append(_IF_IT_STOPS[finding.code])
    return worst_needs(needs)


def of_kernel(lines: Iterable[str]) -> tuple[Needs, str]:
    """The gravest Xid among lines of the kernel log, and its line; (NOTHING, '') without one."""
    reported = [(int(m[1]), line) for line in lines if (m := _XID.search(line)) and not _NEEDLESS.search(line)]
    found = [(XIDS[number], line) for number, line in reported if number in XIDS]
    return max(found, key=lambda one: _ORDER.index(one[0].recovery), default=(NOTHING, ""))
