"""The last boot ended without a shutdown.

Detects: `last -x` shows two boots of a GB10 with no shutdown between them.
Why: power was cut, the machine froze, or it switched itself off under load: the last is a known and open fault of GB10
  machines (heat at the board, power delivery). After it the power controller may be wedged.
Evidence: that there is no shutdown line.
Remedy: if nobody pulled the plug: watch temperatures and clocks, and keep the log of the boot before.
References: https://github.com/guardkit/dgx-spark; https://github.com/DoctorMasterNewb/sparkbase
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import known, sparks
from sparkwright.rules.rule import Context

CODE = "HOST023"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "the boot before this one ended without a shutdown"


def check(context: Context) -> Iterator[Finding]:
    for facts in sparks(context):
        times = known(facts.times)
        if times and times.unclean is True:
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                "the boot before this one ended without a shutdown",
                "last -x: two boots and no shutdown between them",
                "a power cut, a freeze, or the machine switched itself off under load",
                "journalctl -b -1 -n 50 shows its last lines; sparkwright check --deep looks at the clocks",
            )
