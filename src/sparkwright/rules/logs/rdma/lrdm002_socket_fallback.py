"""NCCL uses TCP sockets instead of RDMA.

Detects: NCCL that says NET/Socket, `Using network Socket`, no IB device, or no libibverbs.
Why: the container has no /dev/infiniband, or NCCL_IB_HCA names nothing, or NCCL_IB_DISABLE=1. NCCL says nothing about
  it above INFO; decoding is 40 % slower and more.
Evidence: NCCL's lines; on one node alone they mean nothing.
Remedy: pass the devices into the container and set NCCL_NET=IB, which turns the silent fall-back into an error.
References: field guide B5, B6, E37; https://github.com/bytebunkerlabs/dgx-spark-serve
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LRDM002"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "NCCL uses TCP sockets, not RDMA"
CAUSE = "nccl-socket-fallback-no-rdma"
SIGNS = (
    near(r"NET/IB : No device found", r"via NET/Socket|Using network Socket|NET/Socket : Using", sure=0.6, within=40),
    line(r"\[send\] via NET/Socket|\[receive\] via NET/Socket", LIKELY),
    line(r"Using network Socket", POSSIBLE),
    line(r"\bNET/Socket\b", POSSIBLE),
    line(r"no (?:RDMA|InfiniBand|IB|RoCE) devices? (?:were |was )?(?:found|detected|visible)", LIKELY),
    line(r"using Socket instead of|Socket instead of (?:RoCE|RDMA|IB)", LIKELY),
    line(r"silent(?:ly)? TCP fall-?back|fell back to (?:socket|TCP)\b", LIKELY),
    line(r"NET/IB ?: No device found", POSSIBLE),
    line(r"WARN failed to open libibverbs\.so", LIKELY),
    line(r"failed to open libibverbs\.so", POSSIBLE),
    line(r"failed to initialize NET plugin IB", CERTAIN),
    line(r"NCCL_IB_DISABLE(?: set by environment to |=)1\b", POSSIBLE),
    line(r"NCCL_IB_DISABLE.{0,40}(?:cuts|halves|slow|over TCP|via TCP|falls? back)", LIKELY),
    near(
        r"NCCL |RDMA|RoCE ",
        r"fall(?:s|ing|en)? ?back to (?:TCP|socket|ethernet)|silent(?:ly)? (?:uses?|using|us) (?:TCP|socket)",
        sure=LIKELY,
        within=2,
    ),
    near(
        r"/dev/infiniband",
        r"NCCL |RDMA|RoCE ",
        r"\bwithout\b|missing|had no |has no |have no |\bnot (?:mounted|passed|present|visible|mapped)",
        sure=LIKELY,
        within=2,
    ),
    near(
        r"NCCL .{0,80}(?:over|uses|using|via) (?:TCP|sockets|ethernet|the management)",
        r"instead of|tok/s|slow|\bhalf |\bhalved|RDMA",
        sure=LIKELY,
        within=2,
    ),
    near(
        r"\bib_uverbs|ibv_get_device_list|libibverbs",
        r"no (?:RDMA|IB|InfiniBand)? ?devices?|not found|cannot open|No such file",
        sure=LIKELY,
        within=2,
    ),
    line(r"couldn't load driver 'libmlx5|libmlx5-rdmav\d+\.so: cannot open", 0.87),
    line(
        r"(?:busbw|algbw|bandwidth|all_?(?:reduce|gather)\w*)\b.{0,40}\b[0-3](?:\.\d+)? ?(?-i:GB/s).{0,60}"
        r"(?:200 ?G|100 ?G|RoCE|ConnectX|CX-?7|RDMA|QSFP)",
        0.65,
    ),
    line(
        r"(?:falls?|fell|falling) back to (?:TCP|sockets?|NET/Socket)|(?:NCCL|traffic) (?:runs|goes|went"
        r"|ran|is) (?:over|via|through) (?:TCP|sockets?|Ethernet)\b",
        LIKELY,
    ),
)
FIX = (
    "docker run ... --device /dev/infiniband --cap-add IPC_LOCK --ulimit memlock=-1:-1 --network host",
    "on each node: export NCCL_NET=IB NCCL_IB_DISABLE=0 NCCL_IB_HCA={hca}",
    "NCCL_DEBUG=INFO   # must say `NET/IB : Using ...` and `via NET/IB/0`",
)
EXPLAINS = ()
