"""Checks of the kernel log and of how the last boot ended."""

import re
from collections.abc import Iterator

from sparkwright.checks.reading import (
    in_kernel_log,
    per_node,
    sparks,
)
from sparkwright.domain.check import Check, Found
from sparkwright.domain.facts import NOT_ASKED, NodeFacts, Unknown
from sparkwright.domain.finding import INFO, WARN
from sparkwright.domain.unknown import known

_FAILED = re.compile(r"Oops|\bBUG: |soft lockup|Unable to handle kernel|Kernel panic", re.ASCII)


_DISK = (
    r"(I/O|medium) error.*\bdev (nvme|dm-|md)|nvme.*(timeout, |controller is down|resetting controller)|EXT4-fs error"
)


_PCIE = r"(AER: |PCIe Bus Error: severity=)Uncorrect"


_ERRORS = re.compile(f"{_DISK}|{_PCIE}")


def unclean_shutdown(facts: NodeFacts) -> Iterator[Found]:
    times = known(facts.times)
    if times and times.unclean is True:
        yield Found("last -x: two boots and no shutdown between them")


def log_unread(facts: NodeFacts) -> Iterator[Found]:
    if isinstance(facts.kernel_log, Unknown) and facts.kernel_log != NOT_ASKED:
        yield Found(facts.kernel_log.raw or facts.kernel_log.why)


CHECKS = (
    Check("HOST015", WARN, "kernel oops or lockup since boot", in_kernel_log(_FAILED)).about(
        detects="a line of a GB10's kernel log of this boot shows Oops, BUG, soft lockup or `Unable to handle kernel`.",
        why="after that the kernel continues with locks or memory left behind by what failed; hangs and wrong "
        "answers later are its followers.",
        cause="a fault in a driver or in memory; what runs now may hang or fail because of it",
        fix="sudo journalctl -k -b > kernel.log; then sudo systemctl reboot --no-block",
        see=("https://docs.kernel.org/admin-guide/bug-hunting.html",),
    ),
    Check("HOST021", WARN, "disk or PCIe errors since boot", in_kernel_log(_ERRORS)).about(
        detects="lines of a GB10's kernel log of this boot about I/O errors of its own disks, NVMe timeouts or "
        "resets, file system errors, or PCIe errors (AER) that were not corrected. Loop devices and sticks "
        "do not count.",
        why="reading some 100 GB of weights from a disk that fails ends late and looks like an engine's fault; a "
        "PCIe link with errors is slow or goes away.",
        cause="a device that fails, a bad cable, or a link that lost power",
        fix="sudo smartctl -a /dev/nvme0; sudo journalctl -k -b | grep -iE 'aer|nvme|i/o error'",
        see=("https://docs.kernel.org/PCI/pcieaer-howto.html",),
    ),
    Check("HOST023", INFO, "previous boot ended uncleanly", per_node(sparks, unclean_shutdown)).about(
        detects="`last -x` shows two boots of a GB10 with no shutdown between them.",
        why="power was cut, the machine froze, or it switched itself off under load: the last is a known and "
        "open fault of GB10 machines (heat at the board, power delivery). After it the power controller may "
        "be wedged.",
        cause="a power cut, a freeze, or the machine switched itself off under load",
        fix="journalctl -b -1 -n 50 shows its last lines; sparkwright check --deep measures the clocks",
        see=("https://github.com/guardkit/dgx-spark", "https://github.com/DoctorMasterNewb/sparkbase"),
    ),
    Check("HOST024", INFO, "kernel log is not readable", per_node(sparks, log_unread)).about(
        detects="neither the journal nor dmesg gave a line to the ssh user of a GB10 node.",
        why="Xid errors, driver faults, OOM kills and cable events of this boot are then not looked for: a check "
        "without findings says less.",
        cause="the ssh user is in none of the groups adm and systemd-journal, and dmesg is for root",
        fix="sudo usermod -aG systemd-journal $USER on the node, then log in again",
        see=("https://man7.org/linux/man-pages/man1/journalctl.1.html",),
    ),
)
