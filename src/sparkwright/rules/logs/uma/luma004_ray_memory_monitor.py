"""Ray kills the worker at 95 % of the node's memory.

Detects: Ray's out-of-memory error, the raylet's report of killed workers, the actor's exit type.
Why: Ray takes the GPU's share of unified memory for host memory. A loaded model stands at 95 % and more, which is
  normal; nothing is out of memory.
Evidence: Ray's own sentences with the threshold; no OOM kill in the kernel's log.
Remedy: switch the monitor off on every node, or raise its threshold.
References: seed 002; gb10.md C2; https://docs.ray.io/en/latest/ray-core/scheduling/ray-oom-prevention.html
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line, near

CODE = "LUMA004"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "Ray's memory monitor kills the worker"
CAUSE = "ray-memory-monitor-kills-worker"
SIGNS = (
    line(r"ray\.exceptions\.OutOfMemoryError", CERTAIN),
    line(r"Workers? \(tasks / actors\) killed due to memory pressure", CERTAIN),
    line(r"exceeds the memory usage threshold of 0?\.\d+|worker\(s\) were killed due to the node", CERTAIN),
    line(r"(?:Task|Actor|worker\S*) (?:was|were) killed due to the node running low on memory", CERTAIN),
    line(r"exit_type=NODE_OUT_OF_MEMORY|\bNODE_OUT_OF_MEMORY\b", CERTAIN),
    line(
        r"[Ss]et (?:the environment variable )?`?RAY_memory_(?:usage_threshold"
        r"|monitor_refresh_ms)`?.{0,40}(?:when starting|to zero)",
        LIKELY,
    ),
    near(
        r"\bRay\b.{0,60}memory monitor|RAY_memory_monitor_refresh_ms|RAY_memory_usage_threshold",
        r"\bkill",
        sure=LIKELY,
        within=4,
    ),
)
FIX = (
    "RAY_memory_monitor_refresh_ms=0   # in the environment of `ray start`, on every node",
    "or RAY_memory_usage_threshold=0.99; then restart Ray: the raylet reads it at its start",
    "sudo journalctl -k | grep -iE 'oom-kill|NVRM'   # on {node}: nothing there means that memory was not out",
)
EXPLAINS = ("ray-placement-group-unsatisfiable",)
