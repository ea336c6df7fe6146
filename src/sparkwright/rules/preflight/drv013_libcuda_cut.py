"""The host's CUDA library is cut short.

Detects: the file behind libcuda.so.1 has less than 1 MB.
Why: containers get the host's library; each CUDA program then ends with `libcuda.so.1: file too short`.
Evidence: the file and its size.
Remedy: install the driver's library again.
References: https://github.com/guardkit/dgx-spark (an update that ran out of disk).
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import gpu_nodes, known
from sparkwright.rules.rule import Context

CODE = "DRV013"
STATUS = "stable"
SEVERITY = Severity.OVERRIDE
TITLE = "libcuda.so.1 is cut short"

_LEAST = 1_000_000


def check(context: Context) -> Iterator[Finding]:
    for facts in gpu_nodes(context):
        board = known(facts.board)
        library = known(board.libcuda) if board else None
        if library and library.size < _LEAST:
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                "the CUDA library is cut short",
                f"{library.path}: {library.size} bytes; some tens of MB wanted",
                "an update was cut off, or the disk was full",
                "df -h /, then sudo apt install --reinstall libnvidia-compute-580 (the branch of the loaded driver)",
            )
