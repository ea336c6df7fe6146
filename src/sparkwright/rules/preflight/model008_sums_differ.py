"""Index and shards of the model do not add up.

Detects: an index that names more tensors than the shards hold, or another sum of bytes.
Why: index and shards are of different releases, or a shard is another model's: tensors are missing or wrong, and an
  engine may start all the same.
Evidence: what the index says, and what the headers of the shards add up to.
Remedy: fetch index and shards of one revision.
References: `metadata.total_size` and `weight_map` of transformers' sharded checkpoints.
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.flaw import Defect
from sparkwright.rules.flaws import flawed
from sparkwright.rules.rule import Context

CODE = "MODEL008"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "index and shards do not add up"


def check(context: Context) -> Iterator[Finding]:
    for found in flawed(context, Defect.SUM):
        again = found.fetch(f"--revision {found.checkpoint.revision or 'main'}")
        yield Finding(
            CODE,
            SEVERITY,
            found.node,
            f"{found.model.label} has shards that are not those of its index",
            f"{found.checkpoint.path}: {found.shown}",
            "index and shards are of different releases, or the index was not rewritten when they were",
            f"on {found.node}: {again}; figures of this plan are those of the shards",
        )
