"""Loading weights through mmap is several times slower on GB10.

Detects: reports and figures that compare loading with and without mmap on GB10.
Why: each page fault of a mapped file is served alone and copied; on this machine direct reads are about ten times
  faster, and mapped pages fill the page cache as well.
Evidence: load times with and without mmap.
Remedy: load without mmap, or with direct I/O.
References: https://github.com/ggml-org/llama.cpp/pull/18012; gb10.md E30
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LUMA009"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "loading through mmap is slow on GB10"
CAUSE = "mmap-load-slow-gb10"
SIGNS = (
    near(
        r"\bmmap(?:ped)?\b|--no-mmap|--direct-io|load-mode",
        r"slow(?:er|ly)?\b|times longer|x (?:longer|faster|slower)|seconds|takes ~?\d+ ?s|minutes|faster|\bpoor\b"
        r"|no-mmap: \d+",
        r"\bSparks?\b|GB10|unified",
        sure=LIKELY,
        within=3,
    ),
    line(r"mmap.{0,60}(?:GB10|Spark|unified).{0,40}slow|(?:GB10|Spark).{0,60}mmap.{0,60}slow", LIKELY),
    near(
        r"loading model tensors, this can take a while.{0,40}mmap = (?:true|1)|\(mmap = true\)",
        r"NVIDIA GB10",
        sure=POSSIBLE,
        within=80,
    ),
    line(r"mmap.{0,40}(?:加载|载入).{0,20}(?:慢|很久)", LIKELY),
    near(
        r"\bmmap\b|--no-mmap", r"slow(?:er|ly)?\b|\bpoor\b|times longer", r"\bload(?:s|ing)?\b", sure=POSSIBLE, within=0
    ),
    line(
        r"\bmmap\b.{0,40}\b\d+(?:\.\d+)? ?(?:s|sec|min|m)\b.{0,60}(?:no-mmap|without mmap|direct-io"
        r"|mmap off)|(?:--no-mmap|without mmap|mmap off|-mmp 0).{0,60}\b\d+(?:\.\d+)? ?(?:s|sec"
        r"|min)\b.{0,60}\bmmap",
        LIKELY,
    ),
)
FIX = (
    "llama.cpp: --no-mmap (newer: --load-mode none or --direct-io)",
    "vLLM: --load-format instanttensor or --safetensors-load-strategy eager",
    "sync; echo 3 | sudo tee /proc/sys/vm/drop_caches   # on {node}: what mmap has cached",
)
EXPLAINS: tuple[str, ...] = ()
