"""The NIC's firmware is older than the one that cured the halved speed.

Detects: an RDMA device with firmware below 28.45.4028, on a node whose GPU is a GB10 or not known.
Why: spring 2026's firmware halved the bandwidth; 28.45.4028 is the first without it. One cluster went from 3 to
  22 GB/s of NCCL by bringing all its firmware up to date.
Evidence: the device and its firmware, from sysfs (mstflint on a hot-attached NIC crashed a kernel: do not run it).
Remedy: fwupd, on all nodes. Hold mlnx-fw-updater: its own flash of another version bricked NICs.
References: https://github.com/guardkit/dgx-spark; NVIDIA developer forum 368025
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.fabric import nics
from sparkwright.rules.reading import not_gb10
from sparkwright.rules.remedies import FIRMWARE
from sparkwright.rules.rule import Context

CODE = "RDMA005"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the NIC's firmware is too old"

_GOOD = (28, 45, 4028)


def check(context: Context) -> Iterator[Finding]:
    for facts, nic in nics(context):
        old = [device for device in nic.devices if _is_old(device.firmware)]
        if old and not not_gb10(facts):
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                f"NIC firmware {old[0].firmware} is older than {'.'.join(map(str, _GOOD))}",
                ", ".join(f"{device.name} fw_ver {device.firmware}" for device in old),
                "older firmware halves the link's speed",
                f"on {facts.node}: {FIRMWARE}; then reboot all nodes with the cable in",
            )


def _is_old(version: str) -> bool:
    """Only of the ConnectX-7's own series, 28."""
    parts = version.split(".")
    numbers = tuple(int(part) for part in parts if part.isascii() and part.isdigit())
    return len(numbers) == len(parts) == len(_GOOD) and numbers[0] == _GOOD[0] and numbers < _GOOD
