"""Shards without their index.

Detects: a model in several safetensors files and no index file beside them.
Why: engines then take every safetensors file of the folder, also one of another format or of an older release; tools
  that read the index (transformers) do not find the weights.
Evidence: the folder and how many shards it has.
Remedy: fetch model.safetensors.index.json of the same revision.
References: transformers' sharded checkpoints; vLLM's default loader filters duplicates by the index only.
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.flaw import Defect
from sparkwright.rules.flaws import flawed
from sparkwright.rules.rule import Context

CODE = "MODEL007"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the index of the shards is missing"


def check(context: Context) -> Iterator[Finding]:
    for found in flawed(context, Defect.NO_INDEX):
        yield Finding(
            CODE,
            SEVERITY,
            found.node,
            f"{found.model.label} lacks its index",
            f"{found.checkpoint.path}: {found.shown}",
            "only the shards were fetched, or the download of the index was cut off",
            f"on {found.node}: {found.fetch('model.safetensors.index.json')}",
        )
