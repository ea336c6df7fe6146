"""SGLang will find the nodes' free memory unbalanced.

Detects: SGLang over several nodes where the node with the least available memory has under 90 % of the one with the
most, and SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK (its spelling) is not 0.
Why: at start it compares the ranks and ends with `The memory capacity is unbalanced`. Memory that a killed container
left behind in the driver is the usual reason (one owner: 33 GB each time, given back by a reboot only); page cache and
other services are others.
Evidence: available memory of the two nodes.
Remedy: drop the page cache on the thinner node, stop its services, reboot it if nothing explains the gap; where the gap
is meant, SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK=0.
References: https://al-engr.com/minimax-sglang-debug.html; field guide E76, C3
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.units import gib
from sparkwright.rules.compat.reading import served_on_gb10, variables
from sparkwright.rules.reading import known
from sparkwright.rules.rule import Context

CODE = "RCP017"
STATUS = "stable"
SEVERITY = Severity.OVERRIDE
TITLE = "SGLang will find the nodes' memory unbalanced"
_SHARE = 0.9  # srt/model_executor: min over ranks < local * 0.9
_CHECK = "SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK"


def check(context: Context) -> Iterator[Finding]:
    recipe = served_on_gb10(context, "sglang")
    off = variables(context).get(_CHECK, "").lower() in ("0", "false")
    if recipe is None or recipe.parallelism.tp == 1 or off:
        return
    nodes = dict.fromkeys(spec.node for spec in context.specs)
    sizes = [
        (memory.available, name)
        for name in nodes
        if name in context.facts and (memory := known(context.facts[name].memory))
    ]
    least, most = min(sizes, default=(0, "")), max(sizes, default=(0, ""))
    if least[0] < most[0] * _SHARE:
        yield Finding(
            CODE,
            SEVERITY,
            least[1],
            "SGLang will find the nodes' memory unbalanced",
            f"available: {gib(least[0])} on {least[1]}, {gib(most[0])} on {most[1]}",
            "it ends with `The memory capacity is unbalanced` when one rank has under 90 % of another's",
            "sync; echo 3 | sudo tee /proc/sys/vm/drop_caches   # on that node; reboot it if the gap stays",
        )
