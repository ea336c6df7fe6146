"""The host's memory is too fragmented for the driver.

Detects: allocations that fail with gigabytes free, page allocation failures of a high order, a kernel that compacts
  for ever.
Why: streaming a checkpoint through the page cache leaves no large contiguous blocks; the driver's allocation fails
  and the kernel livelocks in reclaim and compaction.
Evidence: `page allocation failure: order:4` and above, or no block of order 10 in /proc/buddyinfo while much is
  free.
Remedy: load past the page cache, compact before the start, keep a reserve.
References: https://github.com/MiaAI-Lab/DeepSeek-v4.1-Flash-DGX-Sparks/issues/23; gb10.md A4
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, line, near

CODE = "LUMA008"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "no contiguous host memory is left"
CAUSE = "host-memory-fragmentation-gb10"
SIGNS = (
    near(
        r"NV_ERR_NO_MEMORY|NVRM: .{0,40}Out of memory|allocation fail",
        r"(?:while|although|with|despite).{0,20}\b\d+(?:\.\d+)? ?Gi?B.{0,20}free|contiguous|fragment|compaction"
        r"|order[ :]?\d",
        sure=LIKELY,
        within=4,
    ),
    line(r"page allocation failure: order:(?:[4-9]|1\d)", LIKELY),
    near(
        r"kcompactd\d*|compact_zone|compaction",
        r"soft lockup|blocked for more than|livelock|100 ?%|stuck|spins?\b",
        sure=LIKELY,
        within=40,
    ),
    near(
        r"buddyinfo|pagetypeinfo|fragment(?:ed|ation)",
        r"order[- ]?(?:8|9|10)|contiguous|zone Normal|host memory|NV_ERR",
        sure=LIKELY,
        within=4,
    ),
    line(r"(?:host |physical |unified )memory (?:is )?(?:badly |heavily )?fragment", LIKELY),
    line(r"(?:GB10|Spark|NVRM|kernel).{0,60}内存碎片", LIKELY),
)
FIX = (
    "cat /proc/buddyinfo   # on {node}: zeros in the last columns of zone Normal: no large block",
    "echo 3 | sudo tee /proc/sys/vm/drop_caches; echo 1 | sudo tee /proc/sys/vm/compact_memory   # before the start",
    "load past the page cache (--load-format instanttensor), or drop the caches every 60 s while loading",
    "a node that is stuck already: power cycle",
)
EXPLAINS = (
    "uma-exhaustion-host-freeze",
    "driver-memdesc-leak-gb10",
)
