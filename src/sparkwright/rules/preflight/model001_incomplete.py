"""No node has the whole checkpoint.

Detects: files of the model are on a node, and on no node is the checkpoint complete. A model from the hub is fetched
  to its end by the start, which warns; a folder of the user's own has no other source, which blocks.
Why: an engine finds out after minutes of loading, or serves garbage from a file cut short.
Evidence: the first files that the index names and the folder lacks, unfinished downloads, broken links, refs/main.
Remedy: finish the download, or copy the files to one node; the others get them from there.
References: https://github.com/luisefigueroa/pulsar-gb10-vllm-stack; https://github.com/guardkit/dgx-spark
"""

from collections.abc import Iterator

from sparkwright.domain.checkpoint import Checkpoint
from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.flaw import Defect
from sparkwright.rules.reading import played
from sparkwright.rules.rule import Context

CODE = "MODEL001"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the checkpoint is incomplete on every node"

_SHOWN = 3
_OTHERS = frozenset({Defect.SHORT, Defect.POINTER, Defect.REF})  # MODEL005, MODEL006


def check(context: Context) -> Iterator[Finding]:
    if context.recipe is None or played(context.recipe):
        return
    model = context.recipe.model
    found = {name: c for name, c in context.checkpoints.items() if isinstance(c, Checkpoint)}
    if any(checkpoint.complete for checkpoint in found.values()):
        return
    for name, checkpoint in found.items():
        if missing := _missing(checkpoint):
            yield Finding(
                CODE,
                SEVERITY if model.path else Severity.WARN,
                name,
                f"{model.label} is incomplete",
                f"{checkpoint.root or checkpoint.path}: {_listed(missing)}",
                "a download or copy was not finished, and no other node has the rest",
                f"copy the missing files into {checkpoint.path} on one node"
                if model.path
                else f"nothing to do: `up` fetches the rest; by hand: hf download {model.id}",
            )


def _missing(checkpoint: Checkpoint) -> tuple[str, ...]:
    """Without what other rules name: damaged files, which fetching the rest does not mend, and refs/main."""
    others = {str(flaw) for flaw in checkpoint.flaws if flaw.defect in _OTHERS}
    return tuple(text for text in checkpoint.missing if text not in others)


def _listed(missing: tuple[str, ...]) -> str:
    more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
    return ", ".join(missing[:_SHOWN]) + more
