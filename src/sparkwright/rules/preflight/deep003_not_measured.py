"""Something that `check --deep` was to measure was not measured.

Detects: a measurement that was left out: a tool is missing, a rank of ours runs, there is no RDMA, nothing to make a
  load with, or the GPU was not busy while it was watched.
Why: what was not measured is not known to be in order.
Evidence: why.
Remedy: what makes it possible.
References: perftest (ib_write_bw) is a package of Ubuntu and Debian.
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.measured import Measured, Skipped
from sparkwright.rules.rule import Context

CODE = "DEEP003"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "a measurement was not made"

_BUSY = 90.0


def check(context: Context) -> Iterator[Finding]:
    for one in _all(context.measured) if context.measured else ():
        yield Finding(
            CODE,
            SEVERITY,
            one.subject,
            f"{one.what}: not measured",
            one.why,
            "nothing is known of it",
            _remedy(one.why),
        )


def _all(measured: Measured) -> Iterator[Skipped]:
    yield from measured.skipped
    for clocks in measured.clocks:
        highest = max(sample.utilization for sample in clocks.samples)
        if highest < _BUSY:
            yield Skipped("clocks under load", clocks.node, f"{clocks.load}: the GPU was at {highest:.0f} % at most")


def _remedy(why: str) -> str:
    if "ib_write_bw" in why:
        return "sudo apt install perftest   # on every node"
    return "sparkwright down, then sparkwright check --deep" if "runs there" in why else ""
