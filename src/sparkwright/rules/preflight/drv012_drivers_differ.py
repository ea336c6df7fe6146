"""Nodes with different drivers or GPU firmware.

Detects: kernel module and GSP firmware are not the same on all nodes.
Why: all ranks run in step: memory that one driver keeps, or speed that it loses, is the whole group's; and faults of
  one version are looked for in the other.
Evidence: the versions on each node.
Remedy: bring all nodes to one release of DGX OS.
References: https://github.com/christopherowen/dgx-spark-networking;
  https://github.com/Reederey87/dgx-spark-2x-deepseek-v4-flash
"""

from collections.abc import Iterator

from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import differing, everywhere, gpu_may_be_used, known, nodes
from sparkwright.rules.remedies import DASHBOARD
from sparkwright.rules.rule import Context

CODE = "DRV012"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the nodes run different drivers"


def check(context: Context) -> Iterator[Finding]:
    shown = differing(context, _versions)
    if shown and all(gpu_may_be_used(context, facts.node) for facts in nodes(context)):
        yield Finding(
            CODE,
            SEVERITY,
            everywhere(context),
            "the nodes run different drivers",
            shown,
            "one node was updated and not the other, or not yet rebooted",
            f"run the update of {DASHBOARD} on the older ones, and reboot all together",
        )


def _versions(facts: NodeFacts) -> str | None:
    driver = known(facts.driver)
    version, firmware = (known(driver.version), known(driver.gsp_firmware)) if driver else (None, None)
    return (version if firmware in (None, version) else f"{version} with GSP firmware {firmware}") if version else None
