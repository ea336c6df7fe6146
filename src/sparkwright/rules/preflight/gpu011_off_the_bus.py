"""A DGX OS machine without its GPU.

Detects: /etc/dgx-release is there, the PCI bus was read, and it has no GB10 (10de:2e12); nvidia-smi shows no GPU.
Why: the GPU has gone from the bus: power, firmware or hardware. No driver update brings it back.
Evidence: NVIDIA's PCI functions that are there.
Remedy: cut power for a minute; then NVIDIA's or the maker's support.
References: https://github.com/thatcooperguy/NVCheckup
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import GB10_PCI, gpu_nodes, known
from sparkwright.rules.rule import Context

CODE = "GPU011"
STATUS = "stable"
SEVERITY = Severity.OVERRIDE
TITLE = "a DGX Spark shows no GPU on its PCI bus"


def check(context: Context) -> Iterator[Finding]:
    for facts in gpu_nodes(context):
        board, identity = known(facts.board), known(facts.identity)
        functions = known(board.nvidia) if board else None
        on_dgx = identity is not None and known(identity.ota_version) is not None
        if on_dgx and functions is not None and GB10_PCI not in functions.values() and not known(facts.gpus):
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                "the GPU has gone from the PCI bus",
                f"NVIDIA's PCI functions: {', '.join(sorted(set(functions.values()))) or 'none'}; {GB10_PCI} wanted",
                "a power fault, firmware that does not start, or hardware",
                "shut down, cut power for a minute, start again; then the maker's support",
            )
