"""The GID index is wrong, empty or differs between the nodes.

Detects: NCCL or UCX that call a GID invalid, queue pairs that fail with `No data available` or `Invalid argument`.
Why: the table of GIDs is renumbered by any change of an address (a link-local one after a reboot or a link flap), and
  is not the same on all nodes and ports: NCCL_IB_GID_INDEX=3 then points to an empty or to another network's entry.
Evidence: the line of NCCL, UCX or perftest; completion error 12 right after the start is often the same.
Remedy: leave NCCL_IB_GID_INDEX unset and say what is meant; give fabric ports fixed addresses.
References: field guide B2, B3, E31, E32, E46; https://github.com/openucx/ucx/issues/4966
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LRDM001"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the GID index does not point to this node's fabric address"
CAUSE = "roce-gid-index-wrong-or-asymmetric"
_GID = (
    r"\bGID (?:index|idx|table|entr)|GID_INDEX|show_gids|RoCEv2 index|link-local GID|\bGIDs? (?:is|are|was|at"
    r"|on|shift|drift)"
)
SIGNS = (
    line(r"invalid GID index", CERTAIN),
    line(r"UCX +ERROR.{0,20}invalid gid\[?\d", CERTAIN),
    line(r"ibv_modify_qp failed with (?:error )?(?:61 )?No data available", CERTAIN),
    line(
        r"ibv_modify_qp.{0,200}local GID (?:index \d+, local GID )?(?:::,|:: |::$|0000:0000:0000:0000:0000:0000)",
        CERTAIN,
    ),
    line(r"ibv_modify_qp.{0,60}(?:Invalid argument|No data available)", LIKELY),
    line(r"ibv_modify_qp.{0,200}local GID (?:index \d+, local GID )?fe80", LIKELY),
    near(r"ibv_modify_qp failed", r"GID_INDEX set by environment|\bgid[ _]index", sure=POSSIBLE, within=40),
    line(r"failed to modify QP \d* ?to RTR", LIKELY),
    line(r"unable to connect the HCA's through the link", POSSIBLE),
    line(r"(?:ibv_query_gid|ncclIbRoceGetVersionNum|ncclIbGetGidIndex|query_gid).{0,60}(?:fail|invalid|error)", LIKELY),
    line(r"no (?:valid|matching|usable|suitable) (?:RoCE(?: ?v2)? )?GID\b.{0,60}(?:found|index|entry|for)", LIKELY),
    line(r"got completion (?:from peer .{0,60})?with (?:error|status=?) ?12\b", 0.6),
    line(r"got completion.{0,120}vendor err 129", POSSIBLE),
    near(
        _GID,
        r"shift|drift|renumber|reshuffl|wrong|asymmetric|169\.254\.|link-local|differ|stale|not always"
        r"|out of range|is empty|mismatch"
        r"|does(?:n't| not) exist|chang(?:ed|es) (?:from|after|to|when)|per[- ](?:node|rank|HCA|NIC)"
        r"|on both ranks|(?:on|in) the (?:head|worker)"
        r"|pinned|actual index|one side",
        sure=LIKELY,
        within=3,
        unless=r"NCCL INFO|UCX",
    ),
    near(
        r"ibv_modify_qp failed|unhandled system error|Got completion",
        r"GID[_ ]INDEX.{0,24}(?:solv|works|fix)|(?:chang|set|setting|use).{0,12}GID[_ ]index",
        sure=0.86,
        within=4,
        unless=r"NCCL INFO",
    ),
    near(r"\bGID(?: 表| 索引|表|索引|_INDEX)", r"漂移|变化|不一致|不同|错误|失败|偏移", sure=LIKELY, within=2),
    near(
        r"GID[ _](?:index|table)",
        r"NCCL .{0,80}(?:fails|hangs|times out|timed out|degrade|errors)",
        sure=POSSIBLE,
        within=3,
        unless=r"NCCL INFO",
    ),
    line(
        r"GID_INDEX\b.{0,60}(?:RoCE ?v?1|v1 GID|wrong|other|second|differs?|asymmetric|link-local"
        r"|does not exist|empty|IPv6)|GID (?:index|table).{0,60}(?:differs?|differently|asymmetric"
        r"|not the same|wrong|other node)",
        LIKELY,
        unless=r"NCCL INFO|set by environment",
    ),
    line(r"IBV_WC_RETRY_EXC_ERR", 0.6),
    line(r"localGid fe80:.{0,60}remoteGids? ?fe80:|local GID fe80:", 0.8),
)
FIX = (
    "on each node: unset NCCL_IB_GID_INDEX; export NCCL_IB_ROCE_VERSION_NUM=2 NCCL_IB_ADDR_FAMILY=AF_INET",
    "on each node: show_gids   # the index of the v2 entry with this node's fabric address, when a number is needed",
    "netplan: link-local: [], dhcp4: false, a fixed address on every fabric port; then netplan apply",
)
EXPLAINS = ("peer-rank-died", "rank-restart-race-tcpstore", "engine-ready-timeout-too-short")
