"""The container's shared memory is too small.

Detects: bus errors, failures to extend files below /dev/shm, Ray's complaint about its object store.
Why: Docker gives /dev/shm 64 MB. NCCL, torch's loaders and vLLM's worker queues pass data through it, and the first
  page that does not fit is a SIGBUS.
Evidence: the size in the warning, errno 28 on a shared memory object, or the bus error itself.
Remedy: --ipc=host, or --shm-size of at least 16g.
References: seed 003; gb10.md A4 (shm);
  https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html;
  https://github.com/vllm-project/vllm/issues/1771
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LIMG003"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "container's /dev/shm is too small"
CAUSE = "container-shm-too-small"
SIGNS = (
    line(r"/dev/shm has only \d+ bytes available", CERTAIN),
    line(r"insufficient shared memory \(shm\)|workers? (are|is) out of shared memory", CERTAIN),
    line(
        r"(failed to extend|error while (creating|extending)|error: failed to .{0,20}) ?/dev/shm/"
        r"|/dev/shm/nccl-\S+ (to|size|of size)",
        CERTAIN,
    ),
    line(r"posix_fallocate failed", CERTAIN),
    line(r"unable to (allocate|resize) shared memory", LIKELY),
    line(r"unable to (open|mmap|write to).{0,24}(shared memory object|file) </torch_", POSSIBLE),
    line(
        r"(/dev/shm|torch_\d+_\d+|shared memory|shm_open|/psm_|shared_memory).{0,120}no space left on device", CERTAIN
    ),
    line(r"no space left on device.{0,120}(/dev/shm|/psm_)", CERTAIN),
    line(r"fatal python error: ?bus error", LIKELY),
    line(r"\bbus error\b|\bSIGBUS\b|signal: bus", POSSIBLE),
    near(
        r"SHMEM allocation limit is set to the default of 64MB",
        r"\bbus error\b|no space left",
        sure=LIKELY,
        within=10**7,
    ),
    near(
        r"shm[-_]size|/dev/shm|--ipc[= ]host|ipc: host",
        r"64 ?MB?\b.{0,40}(default|shm_|docker)|(default|only).{0,30} 64 ?MB|too small|bus error"
        r"|not enough shared memory",
        sure=LIKELY,
        within=2,
    ),
    line(
        r"(?:fail|error|unable|cannot).{0,60}(?:open|creat|map|extend"
        r"|attach)\w* .{0,24}shm(?:em)? segment|/dev/shm/nccl-\w.{0,40}(?:fail|error)",
        0.65,
    ),
    line(
        r"(?:--shm-size|--ipc[= ]host|shm_size|/dev/shm)\b.{0,60}(?:forgotten|missing|too small|default"
        r"|64 ?M|not set|was not|without|full|needed)|(?:without|forgot|missing|needs?"
        r"|add\w*) .{0,12}(?:--shm-size|--ipc[= ]host)",
        LIKELY,
    ),
)
FIX = (
    "docker run ... --ipc=host   (or --shm-size=32g; compose: shm_size: 32gb)",
    "docker exec {container} df -h /dev/shm   # 64M is the default",
)
EXPLAINS = ("disk-full",)
