"""GB10 loses power under load, without a word in the log.

Detects: reports of a power-off with a journal that just ends and an empty pstore.
Why: a thermal trip of the board or a fault of power delivery; not resolved on the firmware of July 2026.
Evidence: no shutdown marker in the boot before, an empty pstore, several times.
Remedy: lower clocks, better cooling, current firmware, check the supply; RMA.
References: gb10.md E3, A7
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import HINT, LIKELY, POSSIBLE, line, near

CODE = "LDRV011"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the machine switches off under load"
CAUSE = "gb10-hard-power-off-under-load"
SIGNS = (
    near(
        r"power(?:s|ed|ing)?[- ]?off|powers? down|shuts? (?:itself )?off|loses? power|reboots? (?:itself|by itself"
        r"|spontaneously|with zero warning)",
        r"\bunder\b.{0,24}load\b|GPU load|long prefill|into TP|inference|while serving|no warning|no trace",
        r"\bhard\b|sudden|abrupt|journal|pstore|GB10|\bSparks?\b",
        sure=LIKELY,
        within=3,
        unless=r"only a|recover|requires|to fix|wall power off",
    ),
    near(
        r"pstore\b.{0,20}empty|empty\W{0,6}pstore",
        r"journal.{0,60}(?:stops?|ends?|truncat|mid)|no shutdown",
        sure=LIKELY,
        within=3,
        unless=r"wedge|freez|froze|NV_ERR",
    ),
    line(r"journal (?:just )?(?:stops|ends).{0,40}(?:mid.?line|without|no shutdown)", POSSIBLE),
    line(r"system\.journal corrupted or uncleanly shut down", HINT),
    line(r"(?:GB10|Spark|GPU).{0,40}(?:自动关机|突然断电|掉电|突然关机)", LIKELY),
    line(
        r"(?:Spark|GB10|node|box|unit|system)\b.{0,40}(?:shuts? (?:itself )?(?:off|down)"
        r"|powers? (?:itself )?off|turns? (?:itself )?off|reboots?|loses power).{0,60}(?:under (?:full "
        r"|heavy |sustained )?load|both .{0,20}loaded|without (?:any |a )?(?:log|warning|trace))",
        LIKELY,
    ),
)
FIX = (
    "sudo nvidia-smi -lgc 200,2000   # on every node, after each boot: fewer watts, little speed lost",
    "cat /sys/class/thermal/thermal_zone*/temp   # under load: 93000 and above is near the trip point",
    "fwupdmgr refresh --force; fwupdmgr update   # and another outlet; if it stays: NVIDIA's field diagnosis, RMA",
)
EXPLAINS: tuple[str, ...] = ()
