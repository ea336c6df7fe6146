"""NCCL does without GPUDirect RDMA.

Detects: NCCL's notice, nvidia-peermem that does not load, missing dma-buf symbols.
Why: GB10 has no GPUDirect RDMA; copies go through host memory, which is the same memory. All good figures were
  measured so.
Evidence: the notice on every adapter, with NET/IB in use.
Remedy: none; do not wait for it.
References: gb10.md A3 (last point); https://docs.nvidia.com/dgx/dgx-spark/
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line

CODE = "LBEN003"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "GPUDirect RDMA is off: expected on GB10"
CAUSE = "benign-gpudirect-rdma-disabled"
SIGNS = (
    line(r"gpu direct rdma (is )?disabled", LIKELY),
    line(r"gpu ?direct\b.{0,60}(unsupported|not (supported|available) on)", LIKELY),
    line(
        r"(GDR[ :,()=]|gpudirect rdma\b).{0,60}(disabled|not (supported|available|enabled)|unavailable| off\b)", LIKELY
    ),
    line(r"mlx5dv_reg_dmabuf_mr.{0,60}(fail|MLX5_)|dlvsym failed on mlx5dv", POSSIBLE),
    line(r"could not insert '?nvidia[_-]peermem|nvidia[_-]peermem: unknown symbol", POSSIBLE),
)
FIX = ()
EXPLAINS = ()
