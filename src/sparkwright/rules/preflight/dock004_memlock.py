"""The Docker daemon cannot lift the limit on locked memory.

Detects: a rank uses RDMA in a container, and dockerd has neither CAP_SYS_RESOURCE in the machine's own user namespace
  nor an unlimited hard limit of locked memory (rootless Docker, containers within containers).
Why: `--ulimit memlock=-1` would fail the start, so it is left out; RDMA then may not register its buffers.
Evidence: the fact can_raise_memlock, read from /proc of dockerd.
Remedy: give the daemon the limit, or run the rootful daemon.
References: https://github.com/luisefigueroa/pulsar-gb10-vllm-stack (8 MiB, a container's default, make verbs fail or
  fall back).
"""

from collections.abc import Iterator

from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import dockers, known, specs_on, weigh
from sparkwright.rules.rule import Context

CODE = "DOCK004"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the Docker daemon cannot raise memlock"


def check(context: Context) -> Iterator[Finding]:
    for facts, docker in dockers(context):
        if docker.can_raise_memlock is False and _rdma_here(context, facts):
            how = "rootless Docker" if docker.rootless else "dockerd without CAP_SYS_RESOURCE"
            yield Finding(
                CODE,
                weigh(context, SEVERITY),
                facts.node,
                "containers cannot lock memory without limit",
                f"{how}, and its hard limit of locked memory is not unlimited",
                "the start leaves `--ulimit memlock=-1` out; registering RDMA buffers may fail (ibv_reg_mr: ENOMEM)",
                "use the rootful daemon"
                if docker.rootless
                else "sudo systemctl edit docker   # add: [Service] LimitMEMLOCK=infinity; then restart docker",
            )


def _rdma_here(context: Context, facts: NodeFacts) -> bool:
    if context.recipe:
        return any(spec.rdma for spec in specs_on(context, facts.node))
    return any(port.active for port in known(facts.rdma) or ())
