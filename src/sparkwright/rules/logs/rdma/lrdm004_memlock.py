"""Too little memory may be locked for RDMA.

Detects: memory registration that fails with `Cannot allocate memory`, and hints at the limit of locked memory.
Why: a container starts with a limit of 8 MiB (or 64 KiB) and without IPC_LOCK. The same error also comes from a kernel
  with KHO, a leaking driver, a DRM override and true memory shortage: the limit must be looked at, not guessed.
Evidence: the failing call, surer with the limit next to it.
Remedy: --ulimit memlock=-1:-1 and --cap-add IPC_LOCK on every node.
References: seed 003; field guide E34 (five causes of one line); https://github.com/NVIDIA/nccl-tests/issues/206
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line, near

CODE = "LRDM004"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the limit of locked memory is too small for RDMA"
CAUSE = "rdma-memlock-limit"
_REG = (
    r"ibv_reg_mr|ibv_reg_dmabuf_mr|register(?:ing)? (?:user )?memory|memory registration|ibv_create_(?:cq|qp)"
    r"|couldn't allocate MR"
)
_LIMIT = r"memlock|max locked memory|ulimit -l|locked[- ]memory|IPC_LOCK"
SIGNS = (
    line(r"RLIMIT_MEMLOCK is \d+ bytes|will severely limit memory registrations", CERTAIN),
    line(r"set max locked memory \(ulimit -l\)", CERTAIN),
    near(_REG, _LIMIT, sure=LIKELY, within=12, unless=r"unlimited"),
    near(_LIMIT, r"\b8192\b|\b65536\b|too (?:small|low)|cannot allocate memory|\bENOMEM\b", sure=LIKELY, within=3),
    line(r"(?:ibv_reg_mr|ibv_reg_mr_iova2|ibv_reg_dmabuf_mr)\b.{0,80}(?:Cannot allocate memory|\bENOMEM)", 0.6),
    line(r"(?:ibv_create_cq|ibv_create_qp|ibv_alloc_pd)\b.{0,60}Cannot allocate memory", 0.6),
    line(r"couldn't allocate MR", LIKELY),
    near(r"memlock|锁定内存", r"RDMA|注册|ibv_|容器", sure=LIKELY, within=2, unless=r"unlimited"),
    line(
        r"failed to (?:initialize while trying to )?(?:allocate some|register).{0,20}(?:locked|pinned) memory", LIKELY
    ),
    near(r"ibv_reg_mr\w*", r"unhandled system error", sure=0.6, within=4),
    line(
        r"ibv_reg_mr.{0,80}(?:exceeds?|above|over|larger than|bigger than|more than|greater than)"
        r" \D{0,16}\d+ ?[KM]i?B?\b",
        0.6,
    ),
)
FIX = (
    "docker run ... --ulimit memlock=-1:-1 --cap-add IPC_LOCK --shm-size 16g   # on every node",
    "docker exec <container> sh -c 'ulimit -l'   # must say unlimited",
    "if it does: grep -i cma /proc/meminfo; uname -r; dmesg | grep 0x00000051   # kernel with KHO, leaking driver",
)
EXPLAINS = (
    "peer-rank-died",
    "rank-restart-race-tcpstore",
)
