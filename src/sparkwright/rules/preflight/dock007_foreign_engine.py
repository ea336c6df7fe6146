"""Another engine runs in a container.

Detects: a running container without our label whose image, command or name is an engine's, or that was given a GPU.
Why: it holds memory of the one pool, and often port 8000; a rank that starts while it lets the GPU go ends with
  `CUDA-capable device(s) is/are busy or unavailable`.
Evidence: container, image and command.
Remedy: stop it, if it is not meant to stay beside.
References: https://github.com/FHNW-Security-Lab-Experimental/glm-5.2-gb10 (a model router on 8000)
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.foreign import engine_in
from sparkwright.rules.reading import known, simulated
from sparkwright.rules.rule import Context

CODE = "DOCK007"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "another engine runs in a container"


def check(context: Context) -> Iterator[Finding]:
    for facts in context.facts.values() if not simulated(context) else ():
        docker = known(facts.containers)
        for container in docker.containers if docker else ():
            engine = engine_in(container)
            if container.running and engine and not container.ours:
                gpu = ", with the GPU" if container.gpu else ""
                yield Finding(
                    CODE,
                    SEVERITY,
                    facts.node,
                    f"{container.name} runs {engine}",
                    f"docker ps: {container.name} {container.image} {container.command}".rstrip() + gpu,
                    "it was not started by sparkwright, and shares memory, GPU and ports with what is",
                    f"if it is not meant to stay: docker stop {container.name}",
                )
