"""`gpu_memory_utilization` asks for a little more than the free memory.

Detects: the start-up check on a device that is nearly empty: at least about 88 % free, yet less than the share
  asked for.
Why: a desktop, a CUDA context or the host's own services take a few GiB of the device; 0.95 and more of the total
  is then not free. On GB10 the host always holds 10 to 20 GiB.
Evidence: free and total in vLLM's line.
Remedy: a share below free divided by total.
References: gb10.md A1, F1; https://github.com/MiaAI-Lab/GLM-5.3-Flash-EXL3-2x-DGX-Sparks/issues/47
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.logs.held.free_memory import ANY, EMPTY_CARD, NEARLY_ALL, UNIFIED, refused
from sparkwright.rules.sign import LIKELY, line, near

CODE = "LSIZ005"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the share asked for is a little more than what is free"
CAUSE = "gpu-memory-utilization-above-free"
SIGNS = (
    line(
        rf"Free memory on device\b[^(]{{0,16}}\((?={EMPTY_CARD})(?P<free>{ANY})/(?P<total>{ANY}) ?GiB\) on startu"
        rf"p\b(?!\.)",
        LIKELY,
    ),
    line(refused(NEARLY_ALL, UNIFIED), LIKELY),
    near(
        r"gpu[_-]mem(?:ory)?[_-]util(?:i[sz]ation)?",
        r"never passes|unreachable|more than (?:is|what is) free|free memory.{0,20}caps at",
        sure=LIKELY,
    ),
    line(
        r"\((?P<free>(?P<about>\d+)\.\d+)/(?P<total>[\d.]+) ?GiB\) on startup is less than desired GPU mem"
        r"ory utilization \([\d.]+, (?P=about)\.",
        0.86,
    ),
)
FIX = (
    "--gpu-memory-utilization <a little less than {free}/{total}>",
    "sudo systemctl isolate multi-user.target   # on {node}: without the desktop about 10 GB more are free",
    "sync; echo 3 | sudo tee /proc/sys/vm/drop_caches   # unified memory: the page cache counts as used",
)
EXPLAINS: tuple[str, ...] = ()
