"""NCCL settings on which sources contradict each other.

Detects: NCCL_CUMEM_ENABLE=1, or NCCL_IB_MERGE_NICS given, in the recipe or in a node's entry.
Why: two sides each. CUMEM: most recipes for GB10 set 0; 1 is used after a fix of DMA-BUF and on a ring of four. Merging
the twins into one device: 1 doubled the bandwidth of a pair for one owner and is called mandatory for three nodes; 0 is
what NVIDIA's ring and a switch of four use. NCCL's own choice is left alone by the launcher.
Evidence: the variable.
Remedy: measure both (`all_gather_perf` of nccl-tests); leave it out when in doubt.
References: field guide B5, H2
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.compat.reading import environments
from sparkwright.rules.rule import Context

CODE = "RCP022"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "an NCCL setting on which sources contradict each other"
_SIDES = {
    "NCCL_CUMEM_ENABLE": (("1",), "most recipes for GB10 set 0; 1 is used after a fix of DMA-BUF, and on a ring"),
    "NCCL_IB_MERGE_NICS": (
        ("0", "1"),
        "1 doubled the bandwidth of a pair for one owner; 0 is what NVIDIA's ring and switches of four use",
    ),
}


def check(context: Context) -> Iterator[Finding]:
    for variable, (doubtful, sides) in _SIDES.items():
        given = {value for _, value in environments(context, variable)} if len(context.specs) > 1 else set()
        for value in sorted(given & set(doubtful)):
            yield Finding(
                CODE,
                SEVERITY,
                f"env.{variable}",
                f"{variable}={value}: sources contradict each other",
                f"{len(context.specs)} ranks",
                sides,
                "leave it out when in doubt, or measure both with nccl-tests' all_gather_perf",
            )
