"""This build of NCCL does not reach the speed of the link.

Detects: reports of ~3 GB/s from a development branch (or another build) where the release reaches 20 and more.
Why: builds differ in tuning and in what they do with the two halves of the port.
Evidence: only the comparison of two builds on the same link shows it.
Remedy: build the release tag for sm_121.
References: https://github.com/NVIDIA/dgx-spark-playbooks/pull/103
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, near

CODE = "LRDM005"
STATUS = "preview"
SEVERITY = Severity.WARN
TITLE = "this build of NCCL is slow on the fabric"
CAUSE = "nccl-build-wrong-ref-slow"
SIGNS = (
    near(
        r"(?:development|dev|master|main|wrong|nightly)[- ](?:branch|ref|build|tag)|release tag"
        r"|built from (?:source|HEAD|master|main|the)|rebuil(?:t|ding) (?:from|with)",
        r"NCCL |busbw|all_gather|all_reduce|release tag|branch build|plateau",
        r"\d ?GB/s|\d ?Gb/s|slow|bandwidth",
        sure=LIKELY,
        within=4,
    ),
)
FIX = (
    "git clone -b v2.28.9-1 https://github.com/NVIDIA/nccl && cd nccl",
    "make -j src.build NVCC_GENCODE='-gencode=arch=compute_121,code=sm_121'",
)
EXPLAINS = ("nccl-ib-hca-not-pinned", "nic-hotplug-power-cap")
