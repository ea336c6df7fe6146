"""Ray reserves about 30 % of the memory for its object store.

Detects: a large object store on a GB10 node, or an out-of-memory while weights load beside one.
Why: `ray start` without a size gives 30 % of the RAM (36 GB) to plasma, which tensor-parallel engines do not use;
  tensors go over NCCL.
Evidence: object_store_memory of tens of GB; less use with a fixed size.
Remedy: 1 GB, on every `ray start`.
References: gb10.md C2; https://docs.ray.io/en/latest/ray-core/scheduling/memory-management.html
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LUMA013"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "Ray's object store takes a third of the unified memory"
CAUSE = "ray-object-store-eats-unified-memory"
SIGNS = (
    near(
        r"object[-_ ]store(?:[-_ ]memory)?|plasma",
        r" 30 %| 30%|overcommit|unified|GB10|\bSparks?\b|NVRM| OOM\b|out of memory|never uses",
        sure=LIKELY,
        within=3,
        unless=r"instead of /dev/shm",
    ),
    line(r"object_store_memory'?\"?: (?:[2-9]\d{10}|\d{12})", POSSIBLE),
    line(
        r"(?:object[-_ ]store|plasma)\b.{0,60}(?:\b\d{2} ?Gi?B\b|30 ?%).{0,60}(?:unified|/dev/shm"
        r"|memory|RAM|Spark)|object-store-memory\b.{0,40}(?:not given|unset|default|missing)",
        LIKELY,
    ),
)
FIX = (
    "ray start --object-store-memory 1073741824 ...   # on every node, head and workers",
    "ray status   # object_store_memory must be about 1 GiB a node",
)
EXPLAINS: tuple[str, ...] = ()
