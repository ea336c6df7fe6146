"""The kernel killed a process of the engine because memory was out.

Detects: the OOM killer's lines in the kernel log, a container that was killed for memory.
Why: host memory ran out: on unified memory weights, KV cache and host together; in a container with a limit, only
  the host part.
Evidence: `Out of memory: Killed process` with the process; `OOMKilled`.
Remedy: less memory for the engine, or no container limit below what it needs.
References: gb10.md A2, A4, F1
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, HINT, LIKELY, line, near

CODE = "LUMA017"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the kernel's OOM killer ended the engine"
CAUSE = "kernel-oom-killer-ended-engine"
SIGNS = (
    line(r"Out of memory: Killed process (?P<pid>\d+) \((?P<process>[^)]{1,40})\)", CERTAIN),
    line(r"Memory cgroup out of memory: Killed process", CERTAIN),
    line(r"oom-kill:constraint=\w.{0,200}task=", CERTAIN),
    line(r"oom_reaper: reaped process|invoked oom-killer", LIKELY),
    line(r"\"?OOMKilled\"?[:=] ?\"?true|reason: OOMKilled|\bOOMKilled\b.{0,20}exit code 137", LIKELY),
    near(
        r"exit(?:ed)?(?: with)? (?:code|status)(?: |: |=| = )137|\(137\)",
        r"docker|container|service",
        sure=HINT,
        within=2,
    ),
)
FIX = (
    "sudo journalctl -k -b | grep -iE 'oom-kill|Killed process'   # on {node}: who was killed, and how large it was",
    (
        "--gpu-memory-utilization lower by 0.05; docker inspect -f '{{{{.HostConfig.Memory}}}}' <container>   # 0: no "
        "limit"
    ),
    "sparkwright plan {recipe}   # is the reserve for the host there",
)
EXPLAINS: tuple[str, ...] = ()
