"""The driver on the disk is not the one that runs.

Detects: `modinfo nvidia` for the running kernel tells another version than the loaded module. Where libcuda differs
  too, that is DRV008.
Why: the next boot brings a driver that was not tested with what is served now, also when it comes from a power cut.
Evidence: both versions.
Remedy: reboot at a time of your choosing.
References: modinfo(8); https://github.com/DoctorMasterNewb/sparkbase
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.driver import library_differs
from sparkwright.rules.reading import known, nodes
from sparkwright.rules.rule import Context

CODE = "DRV009"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the next boot loads another driver"


def check(context: Context) -> Iterator[Finding]:
    for facts in nodes(context):
        driver, board = known(facts.driver), known(facts.board)
        loaded, waiting = (known(driver.version), known(board.module)) if driver and board else (None, None)
        if loaded and waiting and loaded != waiting and not library_differs(facts):
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                f"the next boot loads driver {waiting}",
                f"loaded kernel module {loaded}, on the disk {waiting}",
                "the driver was updated and the machine has run on since then",
                "reboot all nodes together when nothing is served; then sparkwright check",
            )
