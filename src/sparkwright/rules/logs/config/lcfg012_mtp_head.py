"""The checkpoint's MTP head has a layout that this build does not load.

Detects: A weight loader that misses a name of the MTP block.
Why: the draft head of this revision is laid out differently from the one for which the loader was written.
Evidence: The KeyError for mtp_block.
Remedy: A build for this revision, or no speculation.
References: field guide E 78
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line

CODE = "LCFG012"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the checkpoint's MTP head has a layout that this build does not load"
CAUSE = "mtp-head-layout-unknown"
SIGNS = (
    line(r"KeyError:? '?\S*mtp_block\.(?P<name>\w+)", CERTAIN),
    line(r"KeyError:? '?\S*\bmtp\.\d+\.\w+", LIKELY),
)
FIX = (
    "start without --speculative-config",
    "or use an image whose release notes name this model revision",
)
EXPLAINS = ()
