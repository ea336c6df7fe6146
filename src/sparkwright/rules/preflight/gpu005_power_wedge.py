"""The pattern of a wedged power controller.

Detects: nvidia-smi shows a GB10 at 90 % or more, below 1400 MHz and below 40 W. One sample: `check --deep` takes ten
  seconds of them under load.
Why: after a crash or a power fault the power controller can hold the GPU at one low clock (611, 650, 721 or 728 MHz)
  with no reason given. The whole tensor-parallel group then runs at that node's pace: 38 tokens a second in place of
  93 was measured.
Evidence: utilization, clock and power.
Remedy: cut power for a minute; a reboot alone often does not help.
References: https://github.com/DoctorMasterNewb/sparkbase; https://github.com/thatcooperguy/NVCheckup (the thresholds)
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import gb10s, known
from sparkwright.rules.rule import Context

CODE = "GPU005"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the GPU is busy at a clock and power that are far too low"

_BUSY, _SLOW, _FAINT = 90, 1400, 40


def check(context: Context) -> Iterator[Finding]:
    for facts in gb10s(context):
        for gpu in known(facts.gpus) or ():
            busy, clock, power = known(gpu.utilization), known(gpu.sm_clock_mhz), known(gpu.power_w)
            if busy is None or clock is None or power is None:
                continue
            if busy >= _BUSY and clock < _SLOW and power < _FAINT:
                yield Finding(
                    CODE,
                    SEVERITY,
                    facts.node,
                    "the GPU is busy at a fraction of its clock",
                    f"nvidia-smi: {busy:g} % busy at {clock:g} MHz and {power:g} W; 2200-2500 MHz and 30-60 W wanted",
                    "the power controller is wedged, or the GPU spins while it waits for a peer",
                    "sparkwright check --deep; if it stays so: shut down, cut power for a minute, start again",
                )
