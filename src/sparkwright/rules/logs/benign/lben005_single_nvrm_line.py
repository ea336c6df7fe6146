"""A single NVRM out-of-memory line.

Detects: the memdesc line of the driver that also comes in starts that succeed.
Why: the driver tries large descriptors first and falls back. One line a start, or some dozens in days at rest, are
  normal here; bursts within seconds, a collapse of MemAvailable or the engine's end are not.
Evidence: the line, alone.
Remedy: none; look at MemAvailable and at the engine.
References: https://github.com/vllm-project/vllm/issues/56824; gb10.md E6 [C: there it is the mark of the leak]
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import HINT, LIKELY, line, near

CODE = "LBEN005"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "single NVRM no-memory line proves nothing"
CAUSE = "benign-nvrm-no-memory-line"
SIGNS = (
    line(r"_memdescAllocInternal", HINT),
    near(
        r"\bNVRM\b",
        r"reached KV|succeed|successful|also (appears?|comes?|seen)|at rest|healthy|idle|every (boot|start)|harmless",
        r"NV_ERR_NO_MEMORY|memdesc|NVRM lines|0x51",
        sure=LIKELY,
        within=8,
    ),
)
FIX = ()
EXPLAINS = (
    "uma-exhaustion-host-freeze",
    "driver-memdesc-leak-gb10",
)
