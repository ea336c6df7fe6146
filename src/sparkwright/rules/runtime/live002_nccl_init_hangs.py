"""All ranks met, and NCCL or Gloo between them never came up.

Detects: the head's log ends at `NCCL version`, right after the rendezvous, without weights being loaded.
Why: with NCCL_SOCKET_IFNAME or GLOO_SOCKET_IFNAME on a wrong interface (`lo`, an address that the peer cannot reach)
  vLLM 0.21.0 hangs without an error. A firewall between the nodes looks the same, and so does a log that was cut there.
Evidence: NCCL's version line is among the last ones.
Remedy: name the fabric interface on every node; NCCL_DEBUG=INFO shows what each rank takes.
References: own recording of vLLM 0.21.0 on two nodes (m4: the worker's NCCL and Gloo on `lo`).
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Severity
from sparkwright.rules.log_rule import Row, Story, Verdict

CODE = "LIVE002"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the ranks hang while NCCL connects them"
CAUSE = "nccl-socket-ifname-wrong"
MARKS = {
    "head opens": r"world_size=(?:[2-9]|\d\d+) rank=0 .*distributed_init_method=",
    "nccl begins": r"vLLM is using nccl==|NCCL version \d",
}
ROWS: dict[str, Row] = {}
FIX = (
    "on every node: ip -br -4 addr   # which interface has the fabric address",
    "on every node: NCCL_SOCKET_IFNAME={iface} GLOO_SOCKET_IFNAME={iface}, and start again with NCCL_DEBUG=INFO",
    "between the nodes: sudo ufw status   # a rule for the fabric interface is needed where it is active",
)
EXPLAINS = ("peer-never-joined",)
_SURE = 0.65  # a firewall looks the same
_AFTER = 4


def judge(stories: tuple[Story, ...]) -> Iterator[Verdict]:
    for story in stories:
        begun = story.marks.get("nccl begins")
        if begun and story.ended and story.count("head opens") and story.lines - begun.last.number <= _AFTER:
            yield Verdict(_SURE, (begun.last, *story.tail[-1:]))
