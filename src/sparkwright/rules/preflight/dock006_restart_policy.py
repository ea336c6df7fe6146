"""A container of an engine comes back by itself.

Detects: a container that is not ours, that runs an engine or holds the GPU, with restart policy always or
  unless-stopped.
Why: sources disagree: some run engines so or as a systemd unit. With several nodes one rank that comes back alone
  waits for the others for ever (29 restarts in a loop were seen), and after a reboot it has the memory before you.
Evidence: container, image and policy.
Remedy: `docker update --restart no`, where another tool starts it.
References: https://github.com/aidendle94/sparkrun-recipes (no policy); https://github.com/MiaAI-Lab (unless-stopped)
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.foreign import engine_in
from sparkwright.rules.reading import known, simulated
from sparkwright.rules.rule import Context

CODE = "DOCK006"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "a container of an engine restarts by itself"


def check(context: Context) -> Iterator[Finding]:
    for facts in context.facts.values() if not simulated(context) and not context.recipe else ():
        docker = known(facts.containers)
        for container in docker.containers if docker else ():
            by_itself = container.restart in ("always", "unless-stopped")
            if by_itself and not container.ours and engine_in(container):
                yield Finding(
                    CODE,
                    SEVERITY,
                    facts.node,
                    f"{container.name} ({engine_in(container)}) comes back after every end and every reboot",
                    f"docker inspect: {container.name} {container.image}, restart policy {container.restart}",
                    "it takes memory before anything else; of several ranks one alone waits for the others for ever",
                    f"if it is not meant to be: docker update --restart no {container.name}",
                )
