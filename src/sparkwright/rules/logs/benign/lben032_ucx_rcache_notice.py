"""vLLM sets a UCX variable for NIXL.

Detects: the notice about UCX_RCACHE_MAX_UNRELEASED and NIXL that is or is not there.
Why: vLLM sets it to avoid a leak when NIXL moves the KV cache; without NIXL nothing happens.
Evidence: the notice.
Remedy: none.
References: gb10.md F2
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import HINT, line

CODE = "LBEN032"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "UCX variable set for NIXL"
CAUSE = "benign-ucx-rcache-notice"
SIGNS = (
    line(r"setting UCX_RCACHE_MAX_UNRELEASED to", HINT),
    line(r"NIXL is (not )?available", HINT),
)
FIX = ()
EXPLAINS = ()
