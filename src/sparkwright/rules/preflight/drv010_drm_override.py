"""A modprobe setting for nvidia-drm that sources disagree about.

Detects: a line of /etc/modprobe.d sets an option of nvidia-drm; modeset=0 comes with the package
  nvidia-drm-options-modeset0.
Why: sources contradict each other. One side: with modeset=0 CUDA saw 62 of 119.7 GiB, and without DMA-BUF registering
  RDMA memory failed with ENOMEM. Other side: the override came to cure flickering desktops, a change of it has left
  displays dark until a power cut, and many clusters run well with it. So it is told and never touched.
Evidence: the line with its file, and modeset's value now where it can be read.
Remedy: only where one of the two symptoms is there.
References: https://al-engr.com/ (62 GB); forums.developer.nvidia.com 382452 (displays);
  https://github.com/thatcooperguy/NVCheckup
"""

import re
from collections.abc import Iterator

from sparkwright.domain.facts import Unknown
from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import gb10s, known
from sparkwright.rules.rule import Context

CODE = "DRV010"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "nvidia-drm is set by a file that sources disagree about"

_MODESET = re.compile(r"modeset=(0|N)\b", re.ASCII)


def check(context: Context) -> Iterator[Finding]:
    for facts in gb10s(context):
        board = known(facts.board)
        lines = [line for line in board.drm if _MODESET.search(line)] if board else []
        if board and lines:
            now = "only root may read it" if isinstance(board.modeset, Unknown) else "NY"[board.modeset]
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                "nvidia-drm runs without modeset; sources disagree whether that matters",
                f"{lines[0]}; modeset now: {now}",
                "some saw half of the memory in CUDA, or no DMA-BUF for RDMA; many run well with it",
                "only if CUDA sees about 62 GiB or ibv_reg_mr fails: sudo rm that file, update-initramfs -u, reboot "
                "(a display may stay dark until power is cut)",
            )
