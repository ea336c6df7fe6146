"""Containers' logs grow without end.

Detects: the daemon logs into json-file, and its settings bound no size.
Why: an engine with NCCL_DEBUG=INFO fills a disk in days; weights and caches are on the same one. Ranks of ours are
  started with a bound of their own.
Evidence: the log driver, and that daemon.json has no max-size.
Remedy: bound it for containers that other tools start.
References: https://docs.docker.com/engine/logging/configure/
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import dockers, known
from sparkwright.rules.rule import Context

CODE = "DOCK010"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "containers' logs grow without end"


def check(context: Context) -> Iterator[Finding]:
    for facts, docker in dockers(context) if not context.recipe else ():
        held = known(facts.containers)
        if docker.log_driver == "json-file" and held and not any("max-size" in line for line in held.daemon):
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                "no limit on the logs of containers",
                "log driver json-file, no max-size in /etc/docker/daemon.json",
                "Docker's own default has no limit; ranks of sparkwright have one of their own",
                'in /etc/docker/daemon.json: "log-opts": {"max-size": "64m", "max-file": "4"}; it holds for new '
                "containers after a restart of the daemon",
            )
