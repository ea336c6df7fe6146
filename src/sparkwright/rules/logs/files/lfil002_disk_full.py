"""A file system is full.

Detects: writes that fail for want of space, and the warnings before it.
Why: checkpoints have 60 to 500 GB, a download needs its own size once more for a moment, images and JIT caches grow
  beside it.
Evidence: errno 28 or its Rust form, a quota error, Ray's 95 % warning.
Remedy: free space, or move the cache to a larger disk.
References: gb10.md A5; https://github.com/huggingface/huggingface_hub;
  https://docs.docker.com/reference/cli/docker/system/prune/
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line, near

CODE = "LFIL002"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "disk is full"
CAUSE = "disk-full"
SIGNS = (
    line(
        r"no space left on device",
        LIKELY,
        unless=r"/dev/shm|torch_\d+_\d+|posix_fallocate|/psm_|shared memory|shm_open|nccl-",
    ),
    line(r"kind: storagefull", CERTAIN),
    line(
        r"not enough (free )?(disk )?space (to download|on|left|available for)|insufficient disk space",
        LIKELY,
        unless=r"KV cache|swap",
    ),
    line(r"disk quota exceeded|\benospc: no space", CERTAIN),
    line(r"is over 9\d% full, available space", LIKELY),
    line(r"failed to register layer.{0,200}no space left|write /\S+: no space left on device", CERTAIN),
    near(
        r"\b(disk|filesystem|file system|nvme|partition|/var/lib/docker)\b.{0,30}\b(is |was |were |ran |got )?(full"
        r"|out of space|100 ?%)",
        r"download|\bpull(ing|ed)?\b|hf_home|cache (dir|folder|fill)|checkpoint|docker|\bimages?\b|writing",
        sure=LIKELY,
        within=1,
        unless=r"KV cache",
    ),
    line(r"ran out of disk( space)?\b", LIKELY),
)
FIX = (
    "df -h / /var/lib/docker ~/.cache /tmp   # on every node",
    "docker system prune; hf cache ls; hf cache rm {repository}   # or HF_HOME=DIR on a larger disk, TMPDIR beside it",
)
EXPLAINS = ()
