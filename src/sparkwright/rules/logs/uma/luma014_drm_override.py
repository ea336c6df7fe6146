"""A modprobe drop-in makes CUDA see about half of the unified memory.

Detects: CUDA totals of 58 to 63 GB on a Spark, and the file itself in a report.
Why: the file zz-nvidia-drm-override.conf sets `nvidia-drm modeset=0`. Against it: many nodes run well with the
  file, and on others its removal was needed for displays. It counts only where the total is half.
Evidence: the total of `torch.cuda.mem_get_info()`; with it the file.
Remedy: only if the total is half: remove the file, rebuild the initramfs, reboot; never automatically.
References: seed 000; gb10.md A3, E13 [C]
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.logs.held.free_memory import ANY, refused
from sparkwright.rules.sign import HINT, LIKELY, POSSIBLE, line, near

CODE = "LUMA014"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "CUDA sees only half of the memory: nvidia-drm override"
CAUSE = "spark-drm-override-halves-cuda-memory"
SIGNS = (
    line(
        r"\b(?:5[89]|6[0-3])(?:\.\d+)? ?Gi?B?\b.{0,60}\b(?:instead of|rather than)\b.{0,30}\b1(?:19"
        r"|2\d)(?:\.\d+)? ?Gi?B?\b",
        LIKELY,
    ),
    line(
        r"\b(?:CUDA runtime|mem_get_info|MemGetInfo)\b.{0,80}\b(?:5[89]|6[0-3])(?:\.\d+)? ?Gi?B?\b.{0,20}\b(?:of"
        r"|not)\b.{0,30}\b1(?:19|2\d)(?:\.\d+)? ?Gi?B?\b",
        LIKELY,
    ),
    line(r"CUDA (?:only )?(?:sees|reports|shows) (?:only )?(?:about )?~?(?:5[89]|6[0-3])(?:\.\d+)? ?Gi?B\b", LIKELY),
    near(
        r"zz-nvidia-drm-override|nvidia-drm-options-modeset0|nvidia[-_]drm modeset=0",
        r"\bhalf\b|halve|cannot load|out of memory|\b60 GB| 6[0-3]\.\d+ GiB",
        sure=LIKELY,
        within=6,
    ),
    line(r"zz-nvidia-drm-override\.conf", POSSIBLE),
    line(refused(ANY, r"(?:5[89]|6[0-3])\.\d+"), POSSIBLE),
    near(
        r"total(?:_memory| memory|=| of)?.{0,20}\b(?:5[89]|6[0-3])(?:\.\d+)? ?Gi?B\b",
        r"NVIDIA GB10|DGX Spark",
        sure=LIKELY,
        within=4,
    ),
    line(
        r"(?:cudaMemGetInfo|mem_get_info|total_memory|total memory|VRAM|CUDA (?:sees|reports"
        r"|runtime))\b.{0,60}\b6[0-4](?:\.\d+)? ?Gi?B\b.{0,60}(?:12[0-8]|119|Spark|GB10|half|instead)",
        LIKELY,
    ),
    line(
        r"ggml_cuda_init.{0,60}GB10|Device \d: NVIDIA GB10.{0,80}VRAM: 6[0-5]\d{3} MiB",
        HINT,
        unless=r"VRAM: 1[12]\d{4}|found \d CUDA",
    ),
)
FIX = (
    'python3 -c "import torch; print(torch.cuda.mem_get_info()[1] / 2**30)"   # on {node}: 119.7 or 121.7 is right',
    (
        "only if it shows about 60: sudo rm /etc/modprobe.d/zz-nvidia-drm-override.conf && sudo update-initramfs -u "
        "&& sudo reboot"
    ),
    "the total is right: leave the file alone, it is not the cause",
)
EXPLAINS = (
    "model-weights-too-large-for-node",
    "other-process-holds-gpu-memory",
)
