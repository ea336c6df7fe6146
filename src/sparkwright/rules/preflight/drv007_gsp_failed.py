"""The GPU's own firmware did not start in this boot.

Detects: lines of a GB10's kernel log of this boot say that the GSP or SEC2 firmware did not start or that the adapter
  was not initialized. An override when nvidia-smi shows no GPU, a warning when it does.
Why: the driver and the firmware that it loads are not a pair, mostly after a bare `apt upgrade`; the GPU is then not
  there.
Evidence: the line.
Remedy: run the update of DGX OS to its end.
References: https://github.com/DoctorMasterNewb/sparkbase; https://github.com/thatcooperguy/NVCheckup
"""

import re
from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.kernel_notes import notes, told
from sparkwright.rules.reading import gpu_may_be_used, known
from sparkwright.rules.remedies import DASHBOARD
from sparkwright.rules.rule import Context

CODE = "DRV007"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the GPU's firmware did not start"

_FAILED = re.compile(r"RmInitAdapter|Cannot initialize GSP|SEC2 secure boot partition timed out|GSP_INIT_DONE")


def check(context: Context) -> Iterator[Finding]:
    for facts, found in notes(context, _FAILED):
        if gpu_may_be_used(context, facts.node):
            yield Finding(
                CODE,
                SEVERITY if known(facts.gpus) else Severity.OVERRIDE,
                facts.node,
                "the GPU's firmware did not start",
                told(found),
                "driver and GPU firmware are not a pair: an update was not finished, or only half of it was pulled",
                f"run the update of {DASHBOARD} again, or put the paired packages back and hold them; then reboot",
            )
