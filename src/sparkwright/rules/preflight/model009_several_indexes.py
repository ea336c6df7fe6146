"""The model is there in more than one format.

Detects: several index files in one folder.
Why: an engine loads what one of them names; the rest fills the disk, and its size is not the model's.
Evidence: the index files, and which one counts.
Remedy: nothing, or remove the files of the other one.
References: Mistral and Meta ship a `consolidated` or `original` copy beside the usual one; vLLM's default loader.
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.flaw import Defect
from sparkwright.rules.flaws import flawed
from sparkwright.rules.rule import Context

CODE = "MODEL009"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "the model is there in more than one format"


def check(context: Context) -> Iterator[Finding]:
    for found in flawed(context, Defect.MANY_INDEXES):
        yield Finding(
            CODE,
            SEVERITY,
            found.node,
            f"{found.model.label} has several indexes",
            f"{found.checkpoint.path}: {found.shown}",
            "the publisher ships its weights twice",
            "nothing to do; to save room, remove the shards that only the other index names",
        )
