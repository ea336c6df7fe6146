"""The GPU has reported a grave error in this boot.

Detects: an Xid of the set 43, 48, 79, 94, 95, 119, 120, 140, 154 in a GB10's kernel log of this boot. An override for
  those after which the GPU does not work before a reset or reboot; 43 and 94 end one program only.
Why: after 79 (off the bus), 119 or 120 (its firmware does not answer), 48, 95, 140 (memory) and 154 (recovery needed)
  what is started next fails or hangs, often minutes later.
Evidence: the line, how often, and when.
Remedy: reboot, and a power cycle if it comes again.
References: https://docs.nvidia.com/deploy/xid-errors/; https://github.com/Reederey87/dgx-spark-2x-deepseek-v4-flash
  (the set)
"""

import re
from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.host_facts import KernelNote
from sparkwright.rules.kernel_notes import notes, told
from sparkwright.rules.reading import gpu_may_be_used
from sparkwright.rules.rule import Context

CODE = "GPU004"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the GPU has reported a grave error since boot"

_GRAVE = {
    43: "a program was stopped after a fault on the GPU; on GB10 mostly too much memory at a long context",
    48: "an error in memory that could not be corrected",
    79: "the GPU has fallen off the bus",
    94: "an error in memory that one program had to end for",
    95: "an error in memory that could not be contained",
    119: "the GPU's firmware did not answer",
    120: "the GPU's firmware failed",
    140: "an error in memory that could not be corrected",
    154: "the GPU asks for a reset or a reboot",
}
_ENDS_ONE_PROGRAM = (43, 94)
_XID = re.compile(r"Xid \([^)]*\): ([0-9]{1,4})\b", re.ASCII)


def check(context: Context) -> Iterator[Finding]:
    for facts, found in notes(context, _XID):
        for note in found:
            number = _number(note)
            if number in _GRAVE and gpu_may_be_used(context, facts.node):
                mild = number in _ENDS_ONE_PROGRAM
                yield Finding(
                    CODE,
                    SEVERITY if mild else Severity.OVERRIDE,
                    facts.node,
                    f"the GPU reported Xid {number} since boot",
                    told((note,)),
                    _GRAVE[number],
                    "see the engine's log of that time, and lower serving.memory_fraction"
                    if mild
                    else "sudo systemctl reboot --no-block; if it comes again, shut down and cut power for a minute",
                )


def _number(note: KernelNote) -> int:
    found = _XID.search(note.text)
    return int(found[1]) if found else 0
