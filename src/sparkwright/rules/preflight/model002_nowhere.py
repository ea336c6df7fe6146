"""A model given as a path is on no node.

Detects: the recipe names a folder or file on the nodes, and none of them has it.
Why: there is nothing to copy from, and a path cannot be fetched.
Evidence: the nodes that were looked at and the path.
Remedy: put the model there on one node (the others get it from there), or name a hub model.
References: none; a folder of the user's own has no other source.
"""

from collections.abc import Iterator

from sparkwright.domain.checkpoint import Checkpoint
from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import node_of, played
from sparkwright.rules.rule import Context

CODE = "MODEL002"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the model is a path that no node has"


def check(context: Context) -> Iterator[Finding]:
    recipe = context.recipe
    if recipe is None or not recipe.model.path or played(recipe) or not context.checkpoints:
        return
    found = list(context.checkpoints.values())
    if any(not isinstance(entry, Checkpoint) or entry.files for entry in found):
        return
    nodes = ", ".join(context.checkpoints)
    where = _shown(context, recipe.model.path)
    yield Finding(
        CODE,
        SEVERITY,
        recipe.name,
        f"no node has {recipe.model.path}",
        f"looked on {nodes}: nothing at {where}",
        "the recipe names a path, and the model was not put there, or under another name",
        f"put the model at {where} on one node, or change model.path in the recipe",
    )


def _shown(context: Context, path: str) -> str:
    if path.startswith(("/", "~")):
        return path
    node = node_of(context, next(iter(context.checkpoints)))
    return f"{node.paths.models}/{path}" if node else path
