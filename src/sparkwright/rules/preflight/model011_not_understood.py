"""The model is of a kind that is not wholly understood here.

Detects: a config.json that names a kind of layer, or a key about attention, which sparkwright does not know; a state or
  a window of which it does not say all.
Why: memory and speed of such a model cannot be counted exactly: what is counted is a bound, and must not pass for more.
Evidence: what was not understood.
Remedy: compare with the engine's own log after the start, or give the recipe a `model.shape` and measured limits.
References: docs/planner.md: what the planner reads of a model.
"""

from collections.abc import Iterator

from sparkwright.domain.checkpoint import Checkpoint
from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import played
from sparkwright.rules.rule import Context

CODE = "MODEL011"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the model's kind is not wholly understood"


def check(context: Context) -> Iterator[Finding]:
    if context.recipe is None or played(context.recipe):
        return
    files = {node: c for node, c in context.checkpoints.items() if isinstance(c, Checkpoint) and c.doubts}
    for node, checkpoint in list(files.items())[:1]:
        yield Finding(
            CODE,
            SEVERITY,
            node,
            f"{context.recipe.model.label} is of a kind that is not wholly understood here",
            f"{_told_by(checkpoint)}: {'; '.join(checkpoint.doubts)}",
            "the model is newer than this version of sparkwright, or its config leaves something out",
            "take KV and speed of this plan as a bound; after a start `plan` uses what the engine itself reported",
        )


def _told_by(checkpoint: Checkpoint) -> str:
    return checkpoint.path if checkpoint.path.endswith(".gguf") else f"{checkpoint.path}/config.json"
