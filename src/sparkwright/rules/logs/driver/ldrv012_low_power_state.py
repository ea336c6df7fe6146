"""GB10 stays at a fraction of its clock although it works at full use.

Detects: 96 % use at 500 to 890 MHz and under 25 W, in nvidia-smi's rows or in a report's figures.
Why: the power controller is wedged after a crash, an unclean reset or a power negotiation. No throttle reason is
  shown, and clock settings do not lift it.
Evidence: use, clock and watts of the same moment.
Remedy: shut down, wall power off for a minute or more.
References: gb10.md E2, A7
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, line, near

CODE = "LDRV012"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the GPU is stuck in a low-power state"
CAUSE = "gb10-stuck-low-power-state"
SIGNS = (
    line(r"\b(?:5\d\d|6\d\d|7\d\d|8[0-8]\d) MHz, (?:\d{1,2}(?:\.\d+)? W, )?9\d %", LIKELY),
    line(r"\b9\d %, (?:\d{1,2}(?:\.\d+)? W, )?(?:5\d\d|6\d\d|7\d\d|8[0-8]\d) MHz", LIKELY),
    line(
        r"\b9\d %, (?:5\d\d|6\d\d|7\d\d|8[0-8]\d) MHz, \d{1,2}(?:\.\d+)? W|\b(?:1?\d|2[0-4])(?:\.\d+)? W, (?:5\d\d"
        r"|6\d\d|7\d\d|8[0-8]\d) MHz, 9\d %",
        LIKELY,
    ),
    near(
        r"utili[sz]ation.{0,30}\b9\d ?%",
        r"clock.{0,40}\b(?:5\d\d|6\d\d|7\d\d|8\d\d) ?MHz",
        r"(?:power|draw|watt).{0,40}\b(?:1?\d|2[0-4])(?:\.\d+)? ?W\b",
        sure=LIKELY,
        within=6,
    ),
    near(
        r"\b(?:513 MHz|513MHz|611 MHz|611MHz|650 MHz|721 MHz|721MHz|728 MHz)",
        r"utili|stuck|pinned|capped|low.power| 96 ?%",
        sure=LIKELY,
        within=3,
    ),
    near(
        r"PD (?:controller|negotiation)|power delivery|safety mode",
        r" MHz|capped|throttl|low.power",
        r"GB10|\bSparks?\b|GX10|\bclocks?\b",
        sure=LIKELY,
        within=3,
    ),
    near(
        r"low.?power state|power.?controller wedge|clock(?:s)? (?:is |are )?(?:stuck|pinned|capped)"
        r"|stuck at \d{3} ?MHz",
        r"GB10|\bSparks?\b|under load",
        sure=LIKELY,
        within=3,
    ),
    line(r"(?:GB10|Spark|GPU).{0,40}(?:降频|低功耗|频率卡在|锁频).{0,40}(?:MHz|\bW\b|瓦)", LIKELY),
    line(
        r"(?:clocks?\W{0,3}(?:sm|gr|graphics)?|SM clock|graphics clock)\W.{0,30}\b[2-8]\d\d MHz.{0,60}(?:9"
        r"\d|100) ?% (?:util|GPU)|stuck at [2-8]\d\d MHz",
        0.7,
    ),
    line(
        r"(?:9\d|100) ?%.{0,60}\b[5-8]\d\d MHz.{0,60}\b(?:[5-9]|1\d|2\d)(?:\.\d+)? ?W\b"
        r"|\b[5-8]\d\d MHz.{0,60}\b(?:[5-9]|1\d|2\d)(?:\.\d+)? ?W\b.{0,60}(?:9\d|100) ?%",
        0.7,
    ),
)
FIX = (
    (
        "nvidia-smi --query-gpu=clocks.sm,power.draw,utilization.gpu --format=csv -l 1   # on every node, under load: "
        "2200 MHz and 30 W or more is healthy"
    ),
    "sudo shutdown -h now on {node}, then wall power off for 60 s to 5 min, then start; a reboot alone seldom helps",
    "sudo nvidia-smi -rgc   # first: no leftover clock lock of ours",
)
EXPLAINS: tuple[str, ...] = ()
