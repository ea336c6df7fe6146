"""The fabric link was up and went down for good: a kernel log in which the card's link came up, went down later,
and did not come up again; or the supervisor saw it down."""

import re
from collections.abc import Iterator

from sparkwright.causes.cause import LogCause, Verdict
from sparkwright.causes.whole_log.ends import CERTAIN, SOURCE
from sparkwright.domain.diagnosis import Proof
from sparkwright.domain.finding import Severity
from sparkwright.logscan.sign import LIKELY
from sparkwright.logscan.story import Row, Story

CAUSE = LogCause(
    code="LIVE005",
    key="fabric-link-down",
    title="fabric link went down",
    severity=Severity.BLOCK,
    why=(
        "the cable was pulled or is loose, or the other node went off. `Link down` alone proves nothing: an "
        "empty cage logs it at every boot."
    ),
    fix=(
        "on each node: rdma link; ethtool {iface} | grep -E 'Speed|Link detected'",
        "on the other node: uptime -s; sudo journalctl -k -b -1 | tail   # did it reboot or freeze?",
        "restart all ranks together when both ends are up",
    ),
    consequences=("peer-rank-died", "rank-restart-race-tcpstore", "worker-stopped-answering"),
)
MARKS = {"link comes": r"mlx5_core .{0,80}: Link up\b", "link goes": r"mlx5_core .{0,80}: Link down\b"}
ROWS: dict[str, Row] = {}
_SEEN = re.compile(r"link \S{1,64} of \S{1,253} (?:is|was) down")
_PORT = re.compile(r"(f\d)\w*: Link ")


def judge(stories: tuple[Story, ...]) -> Iterator[Verdict]:
    for story in stories:
        if seen := [line for line in story.tail if story.source == SOURCE and _SEEN.match(line.text)]:
            yield Verdict(CERTAIN, tuple(seen))
        up, down = story.marks.get("link comes"), story.marks.get("link goes")
        if up and down and down.last.number > up.last.number and _port(up.last) == _port(down.last):
            yield Verdict(LIKELY, (up.last, down.last))


def _port(proof: Proof) -> str:
    """`f0` of enp1s0f0np0 and of its second port enP2p1s0f0np0."""
    match = _PORT.search(proof.text)
    return match[1] if match else ""
