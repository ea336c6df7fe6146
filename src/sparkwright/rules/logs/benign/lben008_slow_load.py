"""A load that is slow and not stuck.

Detects: reports and figures of starts that take many minutes and then serve.
Why: 100 to 300 GB from one disk, compilation for a new chip and warm-ups take 5 to 25 minutes; there is no line
  while it works.
Evidence: progress in another place: disk reads, growing memory, a later line.
Remedy: wait; look at disk reads and MemAvailable on both nodes.
References: gb10.md C1 (time budget), C5 (13-25 min), H15; https://github.com/vllm-project/vllm/issues/17676
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LBEN008"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "loading is slow, not stuck"
CAUSE = "benign-slow-load-looks-hung"
SIGNS = (
    near(
        r"(look|seem|appear|feel)(s|ed)?( like| as if| to be)?( it)?( is| has| a)? (hung|hanging|stuck|frozen|dead"
        r"|hang)\b|not a hang|not hung|not stuck|isn't (hung|stuck)|mistak\w+ for a hang|rather than hanging"
        r"|assuming a hang",
        r"eventually|finish(es|ed)\b|be patient|patience|just wait|\bnormal\b|took ~?\d+ ?(s|sec\w*|m|min\w*)\b"
        r"|takes (~|about |up to |around )*[\w ]{1,10}? ?(s|sec\w*|m|min\w*|minutes)\b"
        r"|(just|only|merely|simply) slow|still (load|work|download|compil)\w+|minutes (before|to load|until)",
        r"(cold|first|model|initial) loads?\b|to load\b|loading|weights|checkpoint|shards|warm-up|compiling"
        r"|start-?up (is|takes)|cold (start|boot|load)|download",
        sure=LIKELY,
        within=4,
        unless=r"deadlock|never (finish|return|complete)|hangs forever",
    ),
    line(r"\bloads? (often |may |can |will )?(look|seem|appear)s? .{0,16}(hung|stuck|frozen|dead)", LIKELY),
    line(r"model loading took .{0,60}\b\d{4,}\.\d+ seconds", POSSIBLE),
    line(r"loading weights took ([3-9]\d\d|\d{4,})\.\d+ seconds", POSSIBLE),
    line(
        r"Loading (?:safetensors |pt )?checkpoint shards:\s+\d{1,2}% Completed \| \d+/\d+ \[(?:\d+:)?(?:0["
        r"3-9]|[1-5]\d):\d\d<\S+,\s+(?:[3-9]\d|\d{3})\.\d+s/it",
        0.5,
    ),
)
FIX = ()
EXPLAINS = ()
