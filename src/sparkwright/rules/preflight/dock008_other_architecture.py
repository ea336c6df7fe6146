"""An image for another kind of processor.

Detects: the recipe's image, or one with an engine's name, is on a node and its architecture is not the node's.
Why: it ends at once with `exec format error`. `docker load` and `--platform` bring such images without a word.
Evidence: image and both architectures.
Remedy: pull it again on the node; if the publisher has none for arm64, build it or take another.
References: https://docs.docker.com/build/building/multi-platform/
"""

from collections.abc import Iterator

from sparkwright.domain.fabric_facts import Image
from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.foreign import engine_of
from sparkwright.rules.reading import known, simulated
from sparkwright.rules.rule import Context

CODE = "DOCK008"
STATUS = "stable"
SEVERITY = Severity.OVERRIDE
TITLE = "an image is for another architecture"

_NAMES = {"aarch64": "arm64", "x86_64": "amd64"}


def check(context: Context) -> Iterator[Finding]:
    wanted = context.recipe.engine.image if context.recipe else ""
    for facts in context.facts.values() if not simulated(context) else ():
        own, docker = _own(facts), known(facts.containers)
        for image in docker.images if own and docker else ():
            tag = _tag(image, wanted)
            if image.arch and image.arch != own and tag:
                yield Finding(
                    CODE,
                    SEVERITY if tag == wanted else Severity.INFO,
                    facts.node,
                    f"{tag} is for {image.arch}",
                    f"docker image inspect: {image.arch}; the node: {own}",
                    "it was loaded or pulled for another machine",
                    f"on {facts.node}: docker image rm {tag} && docker pull --platform linux/{own} {tag}",
                )


def _own(facts: NodeFacts) -> str:
    identity = known(facts.identity)
    return _NAMES.get(identity.arch, "") if identity else ""


def _tag(image: Image, wanted: str) -> str:
    """The recipe's own name of it, or without a recipe the first that is an engine's; '' for others."""
    if wanted:
        return wanted if wanted in image.tags else ""
    return next((tag for tag in image.tags if engine_of(tag)), "")
