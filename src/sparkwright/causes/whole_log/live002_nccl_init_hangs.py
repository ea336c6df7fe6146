"""All ranks met, and NCCL or Gloo between them never came up: the head's log ends at `NCCL version`, right after
the rendezvous, without weights being loaded."""

from collections.abc import Iterator

from sparkwright.causes.cause import LogCause, Verdict
from sparkwright.domain.finding import Severity
from sparkwright.logscan.story import Row, Story

CAUSE = LogCause(
    code="LIVE002",
    key="nccl-socket-ifname-wrong",
    title="NCCL initialization hangs",
    severity=Severity.BLOCK,
    why=(
        "with NCCL_SOCKET_IFNAME or GLOO_SOCKET_IFNAME on a wrong interface (`lo`, an address that the peer "
        "cannot reach) vLLM 0.21.0 hangs without an error. A firewall between the nodes looks the same, and "
        "so does a log that was cut there."
    ),
    fix=(
        "on every node: ip -br -4 addr   # which interface has the fabric address",
        "on every node: NCCL_SOCKET_IFNAME={iface} GLOO_SOCKET_IFNAME={iface}, and start again with NCCL_DEBUG=INFO",
        "between the nodes: sudo ufw status   # a rule for the fabric interface is needed where it is active",
    ),
    consequences=("peer-never-joined",),
)
MARKS = {
    "head opens": r"world_size=(?:[2-9]|\d\d+) rank=0 .*distributed_init_method=",
    "nccl begins": r"vLLM is using nccl==|NCCL version \d",
}
ROWS: dict[str, Row] = {}
_SURE = 0.65  # a firewall looks the same
_AFTER = 4


def judge(stories: tuple[Story, ...]) -> Iterator[Verdict]:
    for story in stories:
        begun = story.marks.get("nccl begins")
        if begun and story.ended and story.count("head opens") and story.lines - begun.last.number <= _AFTER:
            yield Verdict(_SURE, (begun.last, *story.tail[-1:]))
