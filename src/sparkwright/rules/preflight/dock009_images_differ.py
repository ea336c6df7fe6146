"""One name of an image stands for different images on the nodes.

Detects: the recipe's image, or one with an engine's name, has different ids on two nodes.
Why: tags move: a node that pulled later has another version, and ranks of different versions fail in ways that name
  anything but that. `up` starts all ranks from one id; what is started by hand does not.
Evidence: the ids.
Remedy: pull it on all nodes, or name it by digest.
References: https://github.com/luisefigueroa/pulsar-gb10-vllm-stack (image parity before every start)
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.foreign import engine_of
from sparkwright.rules.reading import known, simulated
from sparkwright.rules.rule import Context

CODE = "DOCK009"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "one image name is different images on the nodes"

_SHOWN = 19  # sha256: and twelve digits, as Docker shows them


def check(context: Context) -> Iterator[Finding]:
    ids: dict[str, dict[str, str]] = {}
    for facts in context.facts.values() if not simulated(context) else ():
        docker = known(facts.containers)
        for image in docker.images if docker else ():
            for tag in image.tags:
                ids.setdefault(tag, {})[facts.node] = image.id
    wanted = context.recipe.engine.image if context.recipe else ""
    for tag, held in ids.items():
        if len(set(held.values())) > 1 and (tag == wanted if wanted else engine_of(tag)):
            yield Finding(
                CODE,
                SEVERITY,
                ", ".join(held),
                f"{tag} is not the same image on all nodes",
                "; ".join(f"{node}: {image[:_SHOWN]}" for node, image in held.items()),
                "the name was moved to another image between two pulls, or one was built on the node",
                f"on each node: docker pull {tag}; better, name it by digest (name@sha256:...)",
            )
