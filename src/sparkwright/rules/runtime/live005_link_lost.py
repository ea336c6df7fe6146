"""The fabric link was up and went down for good.

Detects: a kernel log in which the card's link came up, went down later, and did not come up again.
Why: the cable was pulled or is loose, or the other node went off. `Link down` alone proves nothing: an empty cage
  says so at every boot.
Evidence: the last `Link up` and the last `Link down` of the same port.
Remedy: look at the other node and at the cable; restart all ranks when both ends are up.
References: gb10.md B1, E47
"""

import re
from collections.abc import Iterator

from sparkwright.domain.diagnosis import Proof
from sparkwright.domain.finding import Severity
from sparkwright.rules.log_rule import Row, Story, Verdict
from sparkwright.rules.sign import LIKELY

CODE = "LIVE005"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the fabric link was up and is down now"
CAUSE = "fabric-link-down"
MARKS = {"link comes": r"mlx5_core .{0,80}: Link up\b", "link goes": r"mlx5_core .{0,80}: Link down\b"}
ROWS: dict[str, Row] = {}
FIX = (
    "on each node: rdma link; ethtool {iface} | grep -E 'Speed|Link detected'",
    "on the other node: uptime -s; sudo journalctl -k -b -1 | tail   # did it reboot or freeze?",
    "restart all ranks together when both ends are up",
)
EXPLAINS = ("peer-rank-died", "rank-restart-race-tcpstore")
_PORT = re.compile(r"(f\d)\w*: Link ")


def judge(stories: tuple[Story, ...]) -> Iterator[Verdict]:
    for story in stories:
        up, down = story.marks.get("link comes"), story.marks.get("link goes")
        if up and down and down.last.number > up.last.number and _port(up.last) == _port(down.last):
            yield Verdict(LIKELY, (up.last, down.last))


def _port(proof: Proof) -> str:
    """`f0` of enp1s0f0np0 and of its twin enP2p1s0f0np0."""
    match = _PORT.search(proof.text)
    return match[1] if match else ""
