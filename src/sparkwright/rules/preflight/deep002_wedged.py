"""The GPU's clock is stuck under load.

Detects: `check --deep` sampled the GPU for ten seconds while it was busy: every sample has 90 % utilization or more,
  an SM clock below 1400 MHz and less than 40 W.
Why: after a crash or an unclean reset the power controller may hold one clock (611, 650, 721 or 728 MHz were seen) at
  5 to 15 W and give no throttle reason; one such node paces all (38 tokens a second instead of 93).
Evidence: lowest and highest clock and power of the samples.
Remedy: shut down and take the wall plug out for a minute or more; a reboot alone seldom helps.
References: https://github.com/thatcooperguy/NVCheckup; https://github.com/DoctorMasterNewb/sparkbase
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.measured import Clocks
from sparkwright.rules.rule import Context

CODE = "DEEP002"
STATUS = "stable"
SEVERITY = Severity.OVERRIDE
TITLE = "the GPU's clock is stuck under load"

_BUSY, _SLOW, _LITTLE = 90.0, 1400.0, 40.0


def check(context: Context) -> Iterator[Finding]:
    for clocks in context.measured.clocks if context.measured else ():
        busy = tuple(sample for sample in clocks.samples if sample.utilization >= _BUSY)
        if busy:
            wedged = len(busy) == len(clocks.samples) and all(s.sm_mhz < _SLOW and s.power_w < _LITTLE for s in busy)
            yield _finding(clocks, wedged)


def _finding(clocks: Clocks, wedged: bool) -> Finding:
    low, high = min(s.sm_mhz for s in clocks.samples), max(s.sm_mhz for s in clocks.samples)
    power = max(s.power_w for s in clocks.samples)
    return Finding(
        CODE,
        SEVERITY if wedged else Severity.INFO,
        clocks.node,
        f"the GPU is stuck at {high:.0f} MHz under load"
        if wedged
        else f"the GPU runs at up to {high:.0f} MHz under load",
        f"{len(clocks.samples)} samples, {clocks.load}: SM {low:.0f} to {high:.0f} MHz, up to {power:.0f} W",
        "the power controller holds the clock, without a throttle reason"
        if wedged
        else "a healthy GPU runs at 2200 to 2500 MHz and 30 to 60 W",
        f"shut {clocks.node} down, take the wall plug out for a minute, start it again" if wedged else "",
    )
