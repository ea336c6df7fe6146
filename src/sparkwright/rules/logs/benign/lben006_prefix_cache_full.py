"""The prefix cache fills the KV cache.

Detects: usage that climbs to a ceiling and stays, without preemptions.
Why: blocks of finished requests are kept until somebody needs the room.
Evidence: a rising row of percentages, or the words of the report.
Remedy: none; watch vllm:num_preemptions_total.
References: https://docs.vllm.ai/en/latest/design/prefix_caching.html
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, line, near

CODE = "LBEN006"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "KV cache usage grows because of prefix caching"
CAUSE = "benign-prefix-cache-fills-kv"
SIGNS = (
    line(r"\d% (->|→) \d+(\.\d+)?% (->|→) \d+(\.\d+)?% (->|→) \d+(\.\d+)?%", LIKELY, unless=r"accept|util"),
    near(
        r"prefix cach(e|ing)",
        r"kv[_ ]?cache[_ ]usage|KV (cache )?(usage|occupancy|fills?)|cache usage",
        r"climb|grow|rises|never (drops|falls|goes down)|stays|does not (drop|fall)|ceiling|not a leak"
        r"|looks like a leak|retain",
        sure=LIKELY,
        within=3,
    ),
)
FIX = ()
EXPLAINS = ()
