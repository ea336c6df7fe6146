"""Checks of the kernel log and of how the last boot ended."""

import re
from collections.abc import Iterator

from sparkwright.checks.reading import in_kernel_log, per_node, sparks
from sparkwright.domain.check import Check, Found, explained
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


CHECKS = explained(
    __file__,
    Check("HOST015", WARN, "kernel oops or lockup since boot", in_kernel_log(_FAILED)),
    Check("HOST021", WARN, "disk or PCIe errors since boot", in_kernel_log(_ERRORS)),
    Check("HOST023", INFO, "previous boot ended uncleanly", per_node(sparks, unclean_shutdown)),
    Check("HOST024", INFO, "kernel log is not readable", per_node(sparks, log_unread)),
)
