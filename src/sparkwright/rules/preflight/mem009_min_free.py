"""vm.min_free_kbytes is small for a GB10.

Detects: vm.min_free_kbytes below 1 GiB on a GB10.
Why: GPU driver and NIC ask for memory in contexts that cannot wait. With the default of some 66 MB they find none while
  weights stream through the page cache, and the load stalls or the machine freezes: owners of clusters that run well
  set 3 to 5 GiB. It has a price: about twice as much no longer counts as available (6.2 GiB were measured for 3), and
  an engine that asks for nearly all of the memory may refuse to start; one owner raises it after the start.
Evidence: the value.
Remedy: 3145728 (3 GiB), now and at each boot; a memory fraction of 0.82 or less leaves room for it. There is no fix
  where less than 16 GiB is available: a machine that serves so could run short at once.
References: https://github.com/GanyX19/deepseek-v4-1m-on-dgx-spark;
  https://github.com/Reederey87/dgx-spark-2x-deepseek-v4-flash;
  https://github.com/tonyd2wild/GLM-5.3-Flash-NVFP4-DFlash2-2x-DGX-Spark/pull/19 (the price)
"""

from collections.abc import Iterator

from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.finding import Finding, Fix, Severity
from sparkwright.domain.units import GIB
from sparkwright.remote import repair
from sparkwright.rules.reading import known, sparks
from sparkwright.rules.rule import Context

CODE = "MEM009"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "the kernel keeps little memory free for GPU and NIC"

_NAME, _LEAST, _WANTED = "vm.min_free_kbytes", 1 << 20, 3 << 20
_ROOM = 16 * GIB


def check(context: Context) -> Iterator[Finding]:
    for facts in sparks(context):
        upkeep = known(facts.upkeep)
        now = upkeep.sysctl(_NAME) if upkeep else None
        if now is not None and now < _LEAST:
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                "the kernel keeps little memory free",
                f"{_NAME} = {now}; wanted: {_WANTED} (3 GiB)",
                "the default is made for machines whose GPU has memory of its own; raising it takes about twice as "
                "much from what an engine may ask for",
                f"sudo sysctl -w {_NAME}={_WANTED}, and the same line in {repair.sysctl_file(_NAME)}",
                _fix(facts, now),
            )


def _fix(facts: NodeFacts, now: int) -> Fix | None:
    memory = known(facts.memory)
    return None if memory and memory.available < _ROOM else repair.sysctl_fix(facts.node, _NAME, _WANTED, now)
