"""UCX's registration cache is not bounded: sources contradict each other on whether that matters.

Detects: DeepSeek-V4 on vLLM over several nodes without UCX_MEM_MMAP_HOOK_MODE=none and
UCX_RCACHE_MAX_UNRELEASED=1024, or with one of them only.
Why: two sides. One owner measured 14 MB a request lost (256K, 5 at once: 10 to 6 GB free in 18 minutes) and none with
the two variables. Other side: NCCL's RDMA uses verbs, not UCX; the cause that he cites was found for NIXL; nobody has
repeated it.
Evidence: the variables as given.
Remedy: setting both costs nothing; watch the free memory in any case.
References: https://forums.developer.nvidia.com/t/374742; field guide F2, E109
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.compat.reading import VLLM, served_on_gb10, shape_of, variables
from sparkwright.rules.rule import Context

CODE = "RCP019"
STATUS = "preview"
SEVERITY = Severity.INFO
TITLE = "UCX's cache is not bounded: sources contradict each other"
_WANTED = {"UCX_MEM_MMAP_HOOK_MODE": "none", "UCX_RCACHE_MAX_UNRELEASED": "1024"}


def check(context: Context) -> Iterator[Finding]:
    recipe, shape, env = served_on_gb10(context, *VLLM), shape_of(context), variables(context)
    if recipe is None or recipe.nodes == 1 or shape is None:
        return
    lacking = [name for name in _WANTED if name not in env]
    if lacking and (shape.architecture.startswith("DeepseekV4") or len(lacking) == 1):
        yield Finding(
            CODE,
            SEVERITY,
            "env",
            "UCX's cache is not bounded: sources contradict each other",
            f"not set: {', '.join(lacking)}",
            "one owner saw 14 MB a request lost without them; NCCL does not use UCX, and nobody has repeated it",
            "env: {UCX_MEM_MMAP_HOOK_MODE: none, UCX_RCACHE_MAX_UNRELEASED: 1024} costs nothing; watch the free memory",
        )
