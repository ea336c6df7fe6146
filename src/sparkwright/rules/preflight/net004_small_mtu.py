"""The fabric runs with an MTU of 1500; sources disagree what 9000 is worth.

Detects: every netdev of an ACTIVE RDMA port has an MTU below 9000, on all nodes.
Why: NVIDIA and most guides set 9000. nepenth measured 12.53 against 12.59 GB/s, and Pulsar at most 1.5 %, and keeps
  1500. What costs is a difference between the ends or the twins (NET002, NET003).
Evidence: netdevs and MTUs.
Remedy: 9000 on both twins of all nodes, worker first; or leave it.
References: https://github.com/NVIDIA/dgx-spark-playbooks; https://github.com/nepenth/deepseek-v4-flash-gb10;
  https://github.com/luisefigueroa/pulsar-gb10-vllm-stack
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.fabric import compared, rails
from sparkwright.rules.rule import Context

CODE = "NET004"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "the fabric runs without jumbo frames"

_JUMBO = 9000


def check(context: Context) -> Iterator[Finding]:
    everyone = [rail for facts in compared(context) for rail in rails(facts)]
    if everyone and all(rail.link.mtu < _JUMBO for rail in everyone):
        yield Finding(
            CODE,
            SEVERITY,
            ", ".join(dict.fromkeys(rail.node for rail in everyone)),
            f"the fabric's MTU is {everyone[0].link.mtu}",
            ", ".join(f"{rail.node} {rail.name} mtu {rail.link.mtu}" for rail in everyone),
            "most guides set 9000; two measurements found 0.5 % and 1.5 % in it",
            "mtu: 9000 for both twins on every node (netplan), or leave it as it is",
        )
