"""The clocks of two nodes are apart.

Detects: two nodes' clocks differ by 2 s or more, also when all the time that asking took is counted in their favour.
Why: lines of several ranks are put in order by their time; certificates and tokens may count as not yet valid.
Evidence: by how much at least, and which is ahead.
Remedy: let all nodes follow one time source.
References: https://docs.nvidia.com/dgx/dgx-spark/ (TensorRT-LLM playbook: certificate errors of a clock that is off).
"""

from collections.abc import Iterator
from itertools import combinations

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import nodes, offset
from sparkwright.rules.rule import Context

CODE = "TIME001"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the nodes' clocks are apart"

_APART = 2.0


def check(context: Context) -> Iterator[Finding]:
    for one, other in combinations(nodes(context), 2):
        first, second = offset(one), offset(other)
        if first is None or second is None:
            continue
        gap, ahead = max((first[0] - second[1], one.node), (second[0] - first[1], other.node))
        if gap >= _APART:
            yield Finding(
                CODE,
                SEVERITY,
                f"{one.node}, {other.node}",
                "the nodes' clocks are apart",
                f"{ahead} is ahead by {gap:.0f} s or more",
                "one of them does not follow a time source, or was set by hand",
                "sudo timedatectl set-ntp true on both; then timedatectl timesync-status",
            )
