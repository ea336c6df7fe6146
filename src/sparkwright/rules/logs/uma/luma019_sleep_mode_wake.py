"""vLLM's sleep mode needs the memory twice on unified memory.

Detects: a crash, or a host that thrashes, right after `wake_up`.
Why: sleeping moves weights to host memory, which is the same pool. While waking, both copies exist; with another
  engine on the node there is no room.
Evidence: the wake call before the crash.
Remedy: stop and start engines instead of sleep and wake on GB10.
References: https://github.com/vllm-project/vllm/issues/50011
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, near

CODE = "LUMA019"
STATUS = "preview"
SEVERITY = Severity.BLOCK
TITLE = "waking a sleeping engine exhausts the unified memory"
CAUSE = "sleep-mode-wake-exhausts-unified-memory"
SIGNS = (
    near(
        r"/wake_up|waking up|Sleep mode|sleep mode",
        r"freez|thrash|power.?cycle|OutOfMemory|out of memory|EngineDeadError|Engine core .{0,20}died|crash",
        r"GB10|\bSparks?\b|unified| UMA\b|121\.\d+ GiB",
        sure=LIKELY,
        within=20,
    ),
    near(r"in wake_up\b", r"CUDA Error: out of memory|OutOfMemoryError|cumem_allocator", sure=LIKELY, within=20),
)
FIX = (
    "do not use --enable-sleep-mode on GB10: stop one engine, wait for its memory, start the other",
    "a host that thrashes already: power cycle {node}",
)
EXPLAINS: tuple[str, ...] = ()
