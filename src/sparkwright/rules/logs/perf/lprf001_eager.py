"""Eager mode halves the decode speed.

Detects: measurements that blame eager mode.
Why: without CUDA graphs every kernel is launched by the CPU; on GB10 decode loses about half (59 to 26 tok/s in
  seed 002).
Evidence: figures with and without the flag. Eager mode in a log alone is no fault.
Remedy: graphs on.
References: seed 002
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, line, near

CODE = "LPRF001"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "eager mode halves the decode speed"
CAUSE = "enforce-eager-throughput-drop"
SIGNS = (
    near(
        r"disabling CUDA graphs|without CUDA graphs|CUDA graphs disabled",
        r"tok/s|tokens/s|throughput",
        r"drops?\b|half\b|slower|lower",
        sure=LIKELY,
        within=2,
    ),
    line(
        r"enforce[-_]eager`?\W.{0,60}\b(?:cuts|cut|halves|halved|drops|dropped|reduces|costs|lowers"
        r"|slower)\b",
        LIKELY,
    ),
    near(
        r"enforce[-_]eager|eager mode|without cuda graphs|disable-cuda-graph",
        r"tok/s|tokens/s|throughput| t/s",
        r"drop|half\b|slower|cuts\b|lower|loses|from ~?\d+(?:\.\d+)? (?:tok|to) ",
        sure=LIKELY,
        within=0,
        unless=r"non-default args",
    ),
    near(
        r"--enforce[-_]eager\b",
        r"\bvery slow\b|\btoo slow\b|slow \(|\bslower\b|poor (?:throughput|performance)|only \d+(?:\.\d+)? (?:tok|t/s)",
        sure=0.7,
        within=3,
    ),
    line(
        r"\b\d+(?:\.\d+)? ?(?:tok/s|t/s|tokens/s)\b.{0,30}(?:with|under"
        r"|using) .{0,4}--?enforce[-_]eager.{0,60}\b\d+(?:\.\d+)? ?(?:tok/s|t/s|tokens/s)"
        r"|--enforce-eager\b.{0,30}\b\d+(?:\.\d+)? ?(?:tok/s|t/s|tokens/s).{0,60}(?:without|graphs)",
        LIKELY,
    ),
    near(
        r"enforce[-_]eager",
        r"\b(?:no|without|non|not)[- ]eager\b|with(?:out)? CUDA graphs? (?:on|enabled)|graphs? (?:on|enabled)\b",
        r"tokens/s|tok/s",
        sure=0.7,
        within=12,
    ),
)
FIX = (
    "remove --enforce-eager (SGLang: --disable-cuda-graph) and repair what it hides",
    '--compilation-config \'{{"cudagraph_mode": "PIECEWISE"}}\' where full graphs are the trouble',
)
EXPLAINS = ()
