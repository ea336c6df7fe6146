"""Apport collects crash dumps.

Detects: apport is active, and kernel.core_pattern gives it the memory of programs that crash.
Why: an engine that crashes is then read by apport, page by page, while its memory is still in use: a restart waits for
  it. Some want the dumps.
Evidence: the pattern.
Remedy: turn it off where nobody reads the dumps.
References: https://wiki.ubuntu.com/Apport; core(5).
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import known, sparks
from sparkwright.rules.rule import Context

CODE = "HOST018"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "crashes of an engine are dumped by apport"


def check(context: Context) -> Iterator[Finding]:
    for facts in sparks(context):
        upkeep = known(facts.upkeep)
        pattern = upkeep.sysctls.get("kernel.core_pattern", "") if upkeep else ""
        if upkeep and "apport" in pattern and upkeep.active("apport.service"):
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                "apport reads the memory of engines that crash",
                f"kernel.core_pattern = {pattern[:80]}",
                "Ubuntu's default",
                "sudo systemctl disable --now apport   # crashes are in the engine's log all the same",
            )
