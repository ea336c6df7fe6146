"""A kernel wheel lacks the architecture of one rank.

Detects: the missing kernel image in a group of unlike GPUs.
Why: ranks have different GPUs and the installed kernel wheel, or the variant that its loader picks, has code for
  only some of them; each card alone may work.
Evidence: the CUDA error together with words about unlike cards. The bare error is only a hint.
Remedy: use equal GPUs, or a build for all of them.
References: SGLang issues about sgl_kernel on mixed cards
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import HINT, line, near

CODE = "LKRN002"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "a kernel wheel lacks the architecture of one rank"
CAUSE = "kernel-wheel-lacks-one-ranks-arch"
SIGNS = (
    near(
        r"no kernel image is available",
        r"heterogeneous|mixed (?:gpu|arch)|different (?:gpu|arch)|two (?:different|unlike) (?:gpu|card)"
        r"|(?:only|just) one (?:rank|card|gpu)|works? on (?:one|either|each)|on both ranks|rank 1 is",
        sure=0.87,
        within=12,
    ),
    near(
        r"no kernel image is available",
        r"sm_86\b(?!.{0,20}sm_)|RTX 30\d0|RTX 40\d0",
        sure=0.65,
        within=12,
    ),
    line(r"no kernel image is available for execution", HINT),
    line(
        r"(?:one|other|second|rank ?[01]|worker)\b.{0,60}(?:sm_\d+|compute_\d+)\b.{0,60}(?:rank|worker"
        r"|other|node)\b.{0,60}(?:has none|lacks|missing|not (?:built|in the wheel)|no kernels?)",
        0.7,
    ),
)
FIX = (
    "on each node: nvidia-smi --query-gpu=name,compute_cap --format=csv",
    "cuobjdump --list-elf <the kernel library> | grep -o 'sm_[0-9a-z]*' | sort -u   # must name every rank's GPU",
    "serve on the GPUs of one generation, or build the kernel package for both: TORCH_CUDA_ARCH_LIST='8.6;12.1'",
)
EXPLAINS = ("no-kernel-image-sm12x",)
