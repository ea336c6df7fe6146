"""The limit on locked memory is too low for RDMA without a container.

Detects: the recipe runs its engine as a process (no container) with RDMA, and `ulimit -l` of the login is below 1 GiB.
Why: registering RDMA buffers fails (ibv_reg_mr: Cannot allocate memory), and NCCL ends or falls back to slow sockets.
Evidence: the limit.
Remedy: lift it for the user.
References: https://docs.nvidia.com/networking/ (rdma-core: limits.conf memlock);
  https://github.com/luisefigueroa/pulsar-gb10-vllm-stack
"""

from collections.abc import Iterator

from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.recipe import Runtime
from sparkwright.rules.reading import known, nodes, specs_on
from sparkwright.rules.rule import Context

CODE = "HOST017"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "a login may not lock the memory that RDMA needs"

_ENOUGH = 1 << 20  # KiB


def check(context: Context) -> Iterator[Finding]:
    for facts in nodes(context):
        upkeep = known(facts.upkeep)
        limit = known(upkeep.memlock) if upkeep else None
        if limit is not None and limit < _ENOUGH and _process_with_rdma(context, facts):
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                "a login may lock too little memory for RDMA",
                f"ulimit -l: {limit} KiB; wanted: unlimited",
                "the system's default limit; containers get theirs from Docker, processes from the login",
                "'* - memlock unlimited' in /etc/security/limits.d/99-rdma.conf, then log in anew",
            )


def _process_with_rdma(context: Context, facts: NodeFacts) -> bool:
    return any(spec.rdma and spec.runtime is Runtime.PROCESS for spec in specs_on(context, facts.node))
