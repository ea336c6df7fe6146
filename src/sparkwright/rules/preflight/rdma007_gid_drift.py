"""The RoCE v2 GID with an IPv4 stands at different indices.

Detects: on ACTIVE ports with an IPv4 address the index of that GID differs between nodes or between twins.
Why: every bounce of an interface renumbers the table; what is pinned by number (NCCL_IB_GID_INDEX=3) then means
  another entry. NCCL from 2.21 on, and sparkwright, find it by meaning: nothing to mend as long as nothing is pinned
  (RDMA008 says so if something is).
Evidence: the index on each port.
Remedy: none needed; a bounce of the interface or a reboot puts them in order.
References: https://github.com/bytebunkerlabs/dgx-spark-serve; https://github.com/nepenth/deepseek-v4-flash-gb10
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.fabric import compared, rails, roce_index
from sparkwright.rules.rule import Context

CODE = "RDMA007"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "GID indices differ between nodes or twins"


def check(context: Context) -> Iterator[Finding]:
    indices = [(rail, roce_index(rail.port)) for facts in compared(context) for rail in rails(facts)]
    found = [(rail, index) for rail, index in indices if index is not None]
    if len({index for _, index in found}) > 1:
        yield Finding(
            CODE,
            SEVERITY,
            ", ".join(dict.fromkeys(rail.node for rail, _ in found)),
            "the RoCE v2 GID of IPv4 is at different indices",
            ", ".join(f"{rail.node} {rail.port.device} {index}" for rail, index in found),
            "each bounce of an interface renumbers its table",
            "nothing: it is found by meaning at every start; never set NCCL_IB_GID_INDEX",
        )
