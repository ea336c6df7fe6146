"""The recipe's image is on no node and in no registry.

Detects: no node has the image, and it is one that `sparkwright build` makes or another of this project's own names
  (`sparkwright/...`).
Why: `up` would try to pull it and fail: this project publishes no image.
Evidence: the nodes that lack it.
Remedy: build it, or load it on one node; `up` copies it to the others.
References: docs/building.md
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.recipe import Recipe, Runtime
from sparkwright.images.name import image_name
from sparkwright.rules.reading import known
from sparkwright.rules.rule import Context

CODE = "DOCK013"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the image is on no node and in no registry"

_OURS = "sparkwright/"


def check(context: Context) -> Iterator[Finding]:
    recipe, asked = context.recipe, [name for name in context.images if name in context.facts]
    if recipe is None or recipe.engine.runtime is not Runtime.DOCKER or not recipe.engine.image.startswith(_OURS):
        return
    dockers = [known(context.facts[name].docker) for name in asked]
    answered = bool(asked) and all(docker and not docker.trouble for docker in dockers)
    if context.cluster.simulated or not answered or any(context.images.values()):
        return
    yield Finding(
        CODE,
        SEVERITY,
        ", ".join(asked),
        f"image {recipe.engine.image} is on no node, and no registry has it",
        f"docker image inspect: no such image on {', '.join(asked)}",
        "this project publishes no image: each is made where it is used",
        _remedy(recipe),
    )


def _remedy(recipe: Recipe) -> str:
    if recipe.build and recipe.engine.image == image_name(recipe, recipe.build):
        return f"sparkwright build {recipe.label}"
    if recipe.engine.name == "twin":
        return "`make testbed` makes it for its own nodes; on others run the simulator with runtime: process"
    return f"docker load an image named {recipe.engine.image} on one node: `up` copies it to the others"
