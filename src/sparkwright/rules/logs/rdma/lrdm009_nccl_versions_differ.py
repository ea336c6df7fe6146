"""The nodes run different versions of NCCL.

Detects: NCCL that names two versions, or a handshake that is misread.
Why: images or preloaded libraries differ between nodes; the messages of the bootstrap have other sizes.
Evidence: `Mismatched NCCL version`, truncated messages, an address of an impossible family.
Remedy: the same image, by digest, on all nodes.
References: https://github.com/NVIDIA/nccl/issues/1267; https://github.com/NVIDIA/nccl-tests/issues/188
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LRDM009"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the nodes run different versions of NCCL"
CAUSE = "nccl-version-mismatch-between-nodes"
_FAMILY_0 = r"connecting to address.{0,40}with family \d+ is neither AF_INET"
SIGNS = (
    line(r"mismatched NCCL version|NCCL version mismatch|NCCL WARN.{0,30}mismatch\w* (?:\w+ )?versions?", CERTAIN),
    near(_FAMILY_0, r"nvidia-nccl-cu\d\d ?=?=", sure=LIKELY, within=30),
    line(r"connecting to address.{0,40}with family 0 is neither AF_INET", 0.6),
    line(r"(?:Net|bootstrap|NCCL WARN).{0,30}message truncated : (?:received|expected)", LIKELY),
    line(r"socketFinalize(?:Accept|Connect): wrong (?:type|magic)|wrong magic \w+ != ", POSSIBLE),
    line(r"different (?:versions? of )?NCCL(?: versions?)?\b.{0,60}(?:node|host|machine|rank|container)", LIKELY),
    line(r"\bNCCL\b.{0,60}versions? (?:differs?|mismatch|are different|is different|不一致)", LIKELY),
    line(
        r"mismatch in NCCL version|[Mm]ismatched NCCL version|NCCL versions? (?:differ|mismatch"
        r"|do not match|does not match)",
        LIKELY,
    ),
    line(
        r"NCCL (?:version )?2\.\d+\.\d+.{0,60}(?:on (?:the )?(?:head|rank ?0|node ?0"
        r"|one)).{0,60}2\.\d+\.\d+.{0,40}(?:worker|rank ?1|other|node ?1)",
        LIKELY,
    ),
)
FIX = (
    "on each node: docker image inspect --format '{{{{.Id}}}}' <image>   # must be equal",
    "on each node: docker exec <container> python3 -c 'import torch; print(torch.cuda.nccl.version())'",
)
EXPLAINS = ("nccl-socket-ifname-wrong", "peer-rank-died", "rank-restart-race-tcpstore")
