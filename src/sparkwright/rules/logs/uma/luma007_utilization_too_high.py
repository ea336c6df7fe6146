"""`gpu_memory_utilization` is too high for unified memory.

Detects: 0.88 and more on GB10 with little left for the host, Xid 43 at long contexts, reports of it.
Why: the share is taken from the pool that the host lives in too. Above 0.85 a few GB remain; under load the driver
  preempts the channel (Xid 43), or the host swaps and kills.
Evidence: the value beside a GB10; used memory near the total with an idle server.
Remedy: 0.80 to 0.85, 0.75 with long contexts and drafters.
References: seed 002; gb10.md E10, F1
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.logs.held.free_memory import NEARLY_ALL, UNIFIED, refused
from sparkwright.rules.sign import HINT, LIKELY, POSSIBLE, line, near

CODE = "LUMA007"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the engine's share leaves the host too little"
CAUSE = "gpu-memory-utilization-too-high-unified"
SIGNS = (
    near(
        r"gpu[_-]memory[_-]utili[sz]ation|GPU_MEM_UTIL|mem-fraction-static",
        r"too high|too much|aggressive|above 0\.8\d| 0\.9\d?\b",
        r" OOM\b| Xid \d|crash|\bswap|killed|freez|headroom|host RAM|preempt|unified",
        sure=LIKELY,
        within=3,
    ),
    line(r"(?:took|puts?|leaves?) host (?:RAM|memory).{0,40}\b1[12]\d(?:\.\d)? ?(?:of|/) ?12[0-8]", LIKELY),
    near(
        r"\b1[12]\d(?:\.\d+)? ?(?:GB? )?of 12[0-8] ?GB",
        r"headroom|server idle|gpu-memory-utilization|at an explicit 0\.9",
        sure=LIKELY,
        within=3,
    ),
    near(
        r"NVRM: Xid \(PCI:000f:01:00\): 43\b",
        r"gpu[-_]memory[-_]utilization[ =]'?0?\.(?:8[6-9]|9)",
        sure=LIKELY,
        within=4000,
    ),
    line(r"NVRM: Xid \(PCI:000f:01:00\): 43\b", POSSIBLE),
    near(
        r"\bXid ?43\b|Xid`? 43",
        r"\butil(?:i[sz]ation)?\b.{0,20}(?:too )?high|long (?:ctx|context|prompt)|131K|preempt",
        sure=LIKELY,
        within=2,
    ),
    near(
        r"gpu[-_]memory[-_]utilization[ =:']{1,3}0?\.(?:8[89]|9\d?)\b",
        r"NVIDIA GB10|\bGB10\b|DGX Spark",
        sure=POSSIBLE,
        within=40,
    ),
    line(refused(NEARLY_ALL, UNIFIED), HINT),
    line(r"gpu.memory.utilization.{0,30}(?:太高|过高|设得太)", LIKELY),
)
FIX = (
    "--gpu-memory-utilization 0.80   # SGLang: --mem-fraction-static 0.75; contexts of 128K and more: 0.75",
    "sparkwright plan {recipe}   # what is left for the host on each node",
)
EXPLAINS = ("uma-exhaustion-host-freeze",)
