"""Pages of memory were taken out of use after errors.

Detects: HardwareCorrupted of a GB10's /proc/meminfo is above 0, or its kernel log of this boot has a memory error that
  the firmware reports or a page that was given up. Errors of PCIe in the same form are HOST021's.
Why: memory that fails takes programs with it, and on a GB10 it is the model's memory too: wrong answers and ends
  without a cause.
Evidence: the counter, or the line.
Remedy: NVIDIA's field diagnostics; the maker's support.
References: https://docs.kernel.org/mm/hwpoison.html
"""

import re
from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.kernel_notes import told
from sparkwright.rules.reading import known, sparks
from sparkwright.rules.rule import Context

CODE = "MEM020"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "pages of memory were taken out of use"

_ERROR = re.compile(r"section_type: memory error|Memory failure: 0x|EDAC .*\bUE\b", re.ASCII)


def check(context: Context) -> Iterator[Finding]:
    for facts in sparks(context):
        memory, log = known(facts.memory), known(facts.kernel_log)
        lines = log.matching(_ERROR) if log else ()
        if lines or (memory and memory.corrupted):
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                "the machine has memory that fails",
                told(lines)
                if lines or not memory
                else f"/proc/meminfo: HardwareCorrupted {memory.corrupted // 1024} kB",
                "a memory error that could not be corrected; the kernel has put the page aside",
                "run NVIDIA's field diagnostics (partnerdiag), and ask the maker for a repair if it comes again",
            )
