"""A user-space OOM daemon killed a rank.

Detects: earlyoom's and systemd-oomd's kill lines.
Why: the daemon acts at a few per cent of free memory; a loaded engine on unified memory passes that in a transient.
  One dead rank hangs the others. The field is divided whether to keep it.
Evidence: the daemon's own line with the process.
Remedy: disable it on nodes of a multi-node engine, or spare the engine.
References: gb10.md E111, A4 [C]
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line, near

CODE = "LUMA018"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "earlyoom or systemd-oomd killed a rank"
CAUSE = "earlyoom-kills-rank"
SIGNS = (
    line(
        r"earlyoom\b.{0,40}(?:sending SIG(?:TERM|KILL)|low memory!)|low memory! at or below SIG(?:TERM|KILL) limits",
        CERTAIN,
    ),
    line(r"sending SIG(?:TERM|KILL) to process \d+ uid \d+ \"[^\"]{1,40}\": .{0,20}badness", CERTAIN),
    line(r"systemd-oomd\b.{0,20}Killed |Killed .{0,120}due to memory pressure for .{0,120}being", LIKELY),
    near(r"\bearlyoom\b|systemd-oomd", r"\bkill(?:s|ed|ing)?\b", sure=LIKELY, within=2),
)
FIX = (
    "sudo systemctl disable --now earlyoom systemd-oomd   # on {node}",
    "or in /etc/default/earlyoom: EARLYOOM_ARGS=\"-m 1 --avoid '^(VLLM|python|sglang|ray)'\"",
)
EXPLAINS: tuple[str, ...] = ()
