"""The link came up slower than it can.

Detects: an ACTIVE RDMA port whose netdev says 25, 40, 50 or 100 Gb/s, or where the netdev tells no speed, with a rate
  below 200 Gb/s. (A twin's `active_width 2X, active_speed 100 Gbps` is 200 and normal.)
Why: cage and cable carry 200 Gb/s. Switches (MikroTik CRS8xx) negotiate 100 Gb/s unless told otherwise, and cables
  for 100 Gb/s look alike.
Evidence: rate and speed as sysfs tells them.
Remedy: on a switch, force 200G-baseCR4 without autonegotiation; between two nodes, another cable.
References: https://github.com/NVIDIA/dgx-spark-playbooks (multi-sparks-through-switch)
"""

from collections.abc import Iterator

from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.fabric import Rail, rails, wired
from sparkwright.rules.reading import known, not_gb10
from sparkwright.rules.rule import Context

CODE = "NET008"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the fabric's link is slower than 200 Gb/s"

_WANTED = 200
_SLOW = (25_000, 40_000, 50_000, 100_000)


def check(context: Context) -> Iterator[Finding]:
    for facts in wired(context):
        for rail in rails(facts) if not not_gb10(facts) else ():
            told = _slow(facts, rail)
            if told:
                yield Finding(
                    CODE,
                    SEVERITY,
                    facts.node,
                    f"the link of {rail.name} is slower than {_WANTED} Gb/s",
                    f"{rail.port.device}: {told}",
                    "a switch negotiates 100 Gb/s unless it is told otherwise, or the cable is one for less",
                    "on the switch: 200G-baseCR4, autonegotiation off; between two nodes: an approved 200 Gb/s cable",
                )


def _slow(facts: NodeFacts, rail: Rail) -> str:
    nic, speed = known(facts.nic), known(rail.link.speed_mbps)
    rate = next((d.rate_gbit for d in (nic.devices if nic else ()) if d.name == rail.port.device), None)
    if speed is not None:
        return f"speed {speed} Mb/s" if speed in _SLOW else ""
    return f"rate {rate:g} Gb/s" if rate is not None and 0 < rate < _WANTED else ""
