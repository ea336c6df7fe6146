"""Processes of an earlier run hold the rendezvous.

Detects: `Init torch distributed begin` that never ends, ranks that have already checked in, reports of old processes.
Why: a rank of the last run still listens on the store's port, or still belongs to its group; new ranks join the old
  store and never meet.
Evidence: NCCL's `already checked in`, or the hang with an old process on the port.
Remedy: stop everything on all nodes, wait until the GPUs and ports are free, then start.
References: field guide C0 (4), E49
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LCLU003"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "processes of an earlier run hold the rendezvous"
CAUSE = "stale-process-holds-rendezvous-port"
_OLD = r"(?:stale|leftover|left-over|previous|earlier|zombie|orphan|lingering)\w* (?:\w+ ){0,2}"
_MEET = r"rendezvous|TCPStore|master[-_ ]port|dist[-_]init|:25000|:29500|:29501|init torch distributed|NCCL init"
SIGNS = (
    line(r"ranks has already checked in", LIKELY),
    near(r"\bold (?:\w+ ){0,2}(?:processes|containers|servers|serving)", _MEET, sure=LIKELY, within=3),
    line(r"Bootstrap Root : mismatch in rank count", LIKELY),
    near(r"init torch distributed begin", r"\bhangs?\b|stuck|forever|never|no progress|freez", sure=LIKELY, within=3),
    near(
        _OLD + r"(?:process|container|server|engine|worker|member|instance|rank|run|job)", _MEET, sure=LIKELY, within=3
    ),
    near(
        _OLD + r"(?:process|container|server|rank|worker|run|job)",
        r"hold(?:s|ing)? (?:the |its |that )?port|still (?:listens|bound|holds)",
        sure=LIKELY,
        within=2,
    ),
    near(
        r"残留.{0,6}(?:进程|容器)|旧(?:进程|容器)|僵尸进程",
        r"端口|占用|握手|rendezvous|卡住|卡死",
        sure=LIKELY,
        within=2,
    ),
    near(
        r"stale\b.{0,40}(?:rendezvous|store|member|:\d{5})", r"hang|stuck|forever|restart|tear", sure=LIKELY, within=2
    ),
    line(r"unexpected (?:magic|rank).{0,60}(?:bootstrap|rendezvous|comm)", POSSIBLE),
)
FIX = (
    "on each node: docker ps; ss -ltnp | grep -E ':(25000|29500|29501) '   # what still runs, and stop it by its name",
    "on each node: nvidia-smi --query-compute-apps=pid --format=csv   # wait until it is empty",
    "then start all ranks again",
)
EXPLAINS = ("engine-ready-timeout-too-short", "rendezvous-peer-missing")
