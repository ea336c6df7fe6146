"""Disk or PCIe errors in this boot's kernel log.

Detects: lines of a GB10's kernel log of this boot about I/O errors of its own disks, NVMe timeouts or resets, file
  system errors, or PCIe errors (AER) that were not corrected. Loop devices and sticks do not count.
Why: reading some 100 GB of weights from a disk that fails ends late and looks like an engine's fault; a PCIe link with
  errors is slow or goes away.
Evidence: the line, how often, and when.
Remedy: look at the disk's own record; reseat or replace.
References: https://docs.kernel.org/PCI/pcieaer-howto.html; smartctl(8).
"""

import re
from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.kernel_notes import notes, told
from sparkwright.rules.rule import Context

CODE = "HOST021"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the kernel reports errors of the disk or of PCIe"

_DISK = (
    r"(I/O|medium) error.*\bdev (nvme|dm-|md)|nvme.*(timeout, |controller is down|resetting controller)|EXT4-fs error"
)
_PCIE = r"(AER: |PCIe Bus Error: severity=)Uncorrect"
_ERRORS = re.compile(f"{_DISK}|{_PCIE}")


def check(context: Context) -> Iterator[Finding]:
    for facts, found in notes(context, _ERRORS):
        yield Finding(
            CODE,
            SEVERITY,
            facts.node,
            "a disk or a PCIe link has errors",
            told(found),
            "a device that fails, a bad cable, or a link that lost power",
            "sudo smartctl -a /dev/nvme0; sudo journalctl -k -b | grep -iE 'aer|nvme|i/o error'",
        )
