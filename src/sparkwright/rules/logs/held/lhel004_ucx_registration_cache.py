"""UCX's registration cache grows without a bound.

Detects: memory that shrinks by megabytes a request in an engine that has UCX loaded (NIXL, an image with UCX).
Why: UCX hooks mmap and queues regions that it has not released yet, without a limit. Doubted: NCCL uses verbs and
  not UCX, so an engine without NIXL or UCX cannot leak this way; the figures of the field come from one image.
  Holds only where libucp or libucs is mapped in the engine.
Evidence: a slope in free memory that ends with the two UCX variables set; the A/B of seed 004.
Remedy: set both variables on all ranks, and check on all ranks.
References: seed 004; gb10.md E109, F2 [C]; https://github.com/vllm-project/vllm/issues/24264
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LHEL004"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "UCX keeps registered memory: it shrinks with every request"
CAUSE = "ucx-rcache-unbounded-leak"
SIGNS = (
    line(
        r"UCX_(?:MEM_MMAP_HOOK_MODE|RCACHE_MAX_UNRELEASED).{0,120}(?:leak|unbounded|grow|avoid)",
        LIKELY,
        unless=r"Setting UCX_",
    ),
    near(
        r"UCX_(?:MEM_MMAP_HOOK_MODE|RCACHE_MAX_UNRELEASED)|\bUCX\b.{0,40}(?:rcache|registration cache|mmap hook)",
        r"\bleak| OOM\b|unbounded|\bgrows\b|drain|exhaust",
        sure=LIKELY,
        unless=r"Setting UCX_",
    ),
    near(
        r"without the (?:vars?|variables|env)|no UCX vars?",
        r"free (?:UMA|memory|unified).{0,40}(?:fell|drops?|dropped|shr[iau]nk)|OOM.?abort",
        sure=LIKELY,
    ),
    near(r"\d ?MB (?:per|a|each|/) ?request", r"leak|free (?:UMA|memory)|shrinks|grow", sure=POSSIBLE),
    line(r"\bUCX\b.{0,40}内存泄漏", LIKELY),
)
FIX = (
    (
        "grep -m1 -E 'libuc[ps]' /proc/<engine pid>/maps   # on {node}; nothing printed: UCX is not loaded, this is "
        "not the cause"
    ),
    "in the environment of all ranks: UCX_MEM_MMAP_HOOK_MODE=none UCX_RCACHE_MAX_UNRELEASED=1024",
    "watch MemAvailable over 500 requests before and after: only a changed slope proves it",
)
EXPLAINS = ("uma-exhaustion-host-freeze",)
