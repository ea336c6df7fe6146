"""The twins of one cage have different MTUs.

Detects: both netdevs of a cage are up, and one has another MTU than the other.
Why: NCCL spreads its traffic over both rails, and the slower one paces: guardkit measured 17.85 GB/s instead of
  23.85 with one twin at 1500. (Whether 9000 on both is much better than 1500 on both is another question: NET004.)
Evidence: the two MTUs.
Remedy: the larger one on both. The fix sets it until the next boot; netplan keeps it.
References: https://github.com/guardkit/dgx-spark (all_gather with the twin at 1500)
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.fabric import Rail, netplan, twins, wired
from sparkwright.rules.mtu import raised
from sparkwright.rules.rule import Context

CODE = "NET002"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the twins of one cage have different MTUs"


def check(context: Context) -> Iterator[Finding]:
    for facts in wired(context):
        for pair in twins(facts):
            low, high = sorted(pair, key=lambda rail: rail.link.mtu)
            if low.link.mtu < high.link.mtu:
                yield _finding(context, low, high)


def _finding(context: Context, low: Rail, high: Rail) -> Finding:
    return Finding(
        CODE,
        SEVERITY,
        low.node,
        f"{low.name} has MTU {low.link.mtu}, its twin {high.link.mtu}",
        f"{low.name} mtu {low.link.mtu}, {high.name} mtu {high.link.mtu}",
        "one of the twins was forgotten: the rail with small packets paces the other",
        netplan(low, f"mtu: {high.link.mtu}"),
        raised(context, low, high.link.mtu),
    )
