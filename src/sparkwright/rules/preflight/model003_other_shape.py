"""The recipe's `model.shape` is not what the model's config.json says.

Detects: a key of model.shape with another value than the config.json of the model on a node.
Why: the recipe was written for another model or release; its limits and figures may not hold for this one.
Evidence: the keys with both values, and the first node where they differ.
Remedy: mend model.shape, or find out why another model lies there. The file is what counts.
References: the key names are those of Hugging Face transformers' configuration classes.
"""

from collections.abc import Iterator

from sparkwright.domain.checkpoint import Checkpoint
from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.model import ModelShape
from sparkwright.rules.rule import Context

CODE = "MODEL003"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "model.shape is not what config.json says"

_SHOWN = 4


def check(context: Context) -> Iterator[Finding]:
    said = context.recipe.model.shape if context.recipe else None
    if said is None:
        return
    files = {node: c.shape for node, c in context.checkpoints.items() if isinstance(c, Checkpoint)}
    wrong = {node: _differences(said, file) for node, file in files.items() if isinstance(file, ModelShape)}
    node = next((node for node, differences in wrong.items() if differences), "")
    if node:
        yield Finding(
            CODE,
            SEVERITY,
            node,
            "the recipe describes another model than the one here",
            "; ".join(wrong[node][:_SHOWN]),
            "model.shape was written for another model or release; the file is what counts",
            "mend model.shape, or check model.id, model.revision and what lies at the path",
        )


def _differences(said: ModelShape, file: ModelShape) -> list[str]:
    """What both say, differently. What the recipe leaves at 0 or '' it does not say, and a file's '' is no word either:
    a mixed checkpoint lists its formats elsewhere."""
    pairs = ((name, getattr(said, name), getattr(file, name)) for name in ModelShape.__slots__)
    return [
        f"{name} {mine} in the recipe, {theirs} in the file"
        for name, mine, theirs in pairs
        if mine and theirs not in (mine, "")
    ]
