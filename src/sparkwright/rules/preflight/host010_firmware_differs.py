"""Machines of one make with different BIOS or EC firmware.

Detects: nodes of the same vendor and product whose BIOS version or EC firmware release differ.
Why: firmware decides power limits, fan, display reserve and PCIe speed; the slower node sets the pace of all ranks.
  Different makes have versions of their own and are not compared.
Evidence: the versions on each node.
Remedy: bring all to the newest.
References: https://github.com/spark-arena/sparkrun (prefill +140 % after firmware parity);
  https://github.com/thatcooperguy/NVCheckup
"""

from collections.abc import Iterator
from itertools import groupby

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import known, nodes
from sparkwright.rules.remedies import FIRMWARE
from sparkwright.rules.rule import Context

CODE = "HOST010"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "machines of one kind have different firmware"


def check(context: Context) -> Iterator[Finding]:
    rows = sorted((product, firmware, node) for product, firmware, node in _rows(context))
    for product, group in groupby(rows, key=lambda row: row[0]):
        alike = list(group)
        if len({firmware for _, firmware, _ in alike}) > 1:
            yield Finding(
                CODE,
                SEVERITY,
                ", ".join(node for _, _, node in alike),
                f"different firmware on machines of one kind ({product})",
                ", ".join(f"{node} {firmware}" for _, firmware, node in alike),
                "one machine was updated and not the other",
                f"{FIRMWARE} on each, then reboot all together",
            )


def _rows(context: Context) -> Iterator[tuple[str, str, str]]:
    for facts in nodes(context):
        identity, board = known(facts.identity), known(facts.board)
        product = known(identity.product) if identity else None
        if product and board and board.bios:
            yield product, f"BIOS {board.bios}" + (f", EC {board.ec}" if board.ec else ""), facts.node
