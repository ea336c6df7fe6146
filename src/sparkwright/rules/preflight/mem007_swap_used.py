"""Swap is in use, about which sources disagree.

Detects: more than 1 GiB of swap is in use on a GB10.
Why: sources contradict each other. One side: `swapoff -a`, because a machine that swaps GPU memory freezes. Other
  side: leave it on, as DGX OS has it, for the peak at start-up (150 minutes under load with 4.8 GB in swap and none
  moving are on record), and never turn it off under load. What counts is swapping, which MEM006 tells.
Evidence: how much is used.
Remedy: none, as long as nothing moves.
References: https://github.com/luisefigueroa/pulsar-gb10-vllm-stack (on);
  https://github.com/GanyX19/deepseek-v4-1m-on-dgx-spark (off)
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.units import GIB, gib
from sparkwright.rules.reading import known, sparks
from sparkwright.rules.rule import Context

CODE = "MEM007"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "swap is in use; sources disagree on swap"


def check(context: Context) -> Iterator[Finding]:
    for facts in sparks(context):
        memory = known(facts.memory)
        used = memory.swap_total - memory.swap_free if memory else 0
        if memory and used > GIB:
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                f"{gib(used)} of swap is in use",
                f"{gib(used)} used of {gib(memory.swap_total)}",
                "memory was short at some time since boot; pages that rest in swap do no harm",
                "nothing while no pages move (MEM006); some turn swap off before a start, others keep it for the peak",
            )
