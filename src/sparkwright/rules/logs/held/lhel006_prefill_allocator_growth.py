"""The caching allocator keeps what a long prefill needed.

Detects: memory that falls with each longer prompt and does not come back when the request ends.
Why: torch keeps freed blocks. The score buffers of a long prefill grow with the square of the prompt, so after one
  of 128K tokens nothing is left for the host.
Evidence: the low-water mark falls with prompt length; `reserved but unallocated` is large in the out-of-memory
  line.
Remedy: smaller prefill chunks, and an allocator that gives segments back.
References: gb10.md E115, F2
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LHEL006"
STATUS = "preview"
SEVERITY = Severity.WARN
TITLE = "reserved memory grows with the prompt and is not given back"
CAUSE = "prefill-allocator-growth"
SIGNS = (
    line(
        r"Of the allocated memory .{0,120}and (?:[2-9]\d|1\d{2})(?:\.\d+)? GiB is reserved by PyTorch but unallocated",
        POSSIBLE,
    ),
    near(
        r"reserved (?:memory|by PyTorch)|caching allocator|empty_cache",
        r"prompt(?:\^2|.{0,20}(?:squared|length|longer))|long prefill|128K",
        sure=LIKELY,
    ),
)
FIX = (
    "--chunked-prefill-size 2048   # SGLang; vLLM: --max-num-batched-tokens 2048",
    (
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True   # the field is divided on GB10: compare MemAvailable with "
        "and without"
    ),
    "restart {deployment} when MemAvailable stays below its value after the start",
)
EXPLAINS: tuple[str, ...] = ()
