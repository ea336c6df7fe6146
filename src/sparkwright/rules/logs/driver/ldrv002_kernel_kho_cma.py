"""Kernel 7.0 with Kexec HandOver: memory cannot be pinned for RDMA.

Detects: free CMA memory beside a CMA total of zero, the kernel's pinning path with -ENOMEM, a failed registration
  on a 7.0 kernel.
Why: KHO is on by default in the 7.0 arm64 kernels. Its scratch area of about 9 GiB is given back as MIGRATE_CMA,
  which must not be pinned for long; under memory pressure every ibv_reg_mr fails with ENOMEM.
Evidence: `CmaTotal: 0 kB` with `CmaFree` above it; the same start works on 6.17.
Remedy: `kho=off` on the kernel's command line, or the 6.17 kernel.
References: gb10.md A1, E7, E34; https://github.com/NVIDIA/NV-Kernels/pull/591
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LDRV002"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the kernel's KHO reserve breaks RDMA registration"
CAUSE = "kernel-kho-cma-breaks-rdma-pinning"
SIGNS = (
    near(r"CmaTotal:\s+0 kB", r"CmaFree:\s+[1-9]\d{3,} kB", sure=CERTAIN, within=4),
    line(r"CmaTotal[ =:]{1,3}0\b.{0,60}CmaFree", CERTAIN),
    line(r"\bMIGRATE_CMA\b|kexec.?handover", LIKELY),
    line(r"\bKHO |\bkho=o(?:n|ff)\b|kernel/debug/kho|\(KHO\)", LIKELY, unless=r"Command line:"),
    near(
        r"scratch_phys|scratch_len|migrate_longterm_unpinnable_folios|__gup_longterm_locked",
        r"kho/out|ib_umem_get|mlx5_ib_reg_user_mr|ibv_reg_mr|pin_user_pages",
        sure=CERTAIN,
        within=10,
    ),
    near(r"pin_user_pages_fast|__gup_longterm_locked", r"ENOMEM|EAGAIN|Cannot allocate memory", sure=LIKELY, within=4),
    near(
        r"\b7\.0\.0-\d+(?:-nvidia|-generic)?\b|kernel 7\.0",
        r"ibv_reg_mr\w*|ENOMEM|memory registration",
        sure=LIKELY,
        within=4000,
    ),
    line(r"ibv_reg_mr(?:_iova2)?\b.{0,40}(?:ENOMEM|Cannot allocate memory)", POSSIBLE),
    line(r"\b(?:7\.0\.0-\d+|KHO)\b.{0,80}(?:内核|注册失败|无法)", LIKELY),
    near(
        r"ibv_reg_mr\w*",
        r"(?:ulimit -l|memlock|max locked memory|LimitMEMLOCK)\W.{0,24}(?:unlimited|infinity|-1\b)",
        sure=0.8,
        within=8,
    ),
    near(
        r"kernel (?:\w+ )?7\.\d",
        r"(?:cannot|can.t|fails? to|unable to|no longer) (?:register|pin)|memory registration"
        r"|\b6\.1[17]\b.{0,30}(?:helps|works|fine)",
        r"\bNCCL|\bRDMA|\bRoCE|ibv_reg",
        sure=LIKELY,
        within=3,
    ),
)
FIX = (
    "uname -r; grep -E 'Cma|MemFree' /proc/meminfo   # on every node: CmaTotal 0 and CmaFree above it is this defect",
    "add kho=off to GRUB_CMDLINE_LINUX_DEFAULT in /etc/default/grub; sudo update-grub; sudo reboot   # on every node",
    "or boot the installed 6.17 kernel and hold it: sudo apt-mark hold linux-image-$(uname -r)",
    (
        "CMA is in order? then it is another of the five causes: ulimit -l in the container, /dev/shm, 0x51 in the "
        "kernel's log"
    ),
)
EXPLAINS: tuple[str, ...] = ()
