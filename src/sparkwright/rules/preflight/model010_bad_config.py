"""The model's config.json is absent or cannot be read.

Detects: weights without config.json (or Mistral's params.json), a config.json that is no JSON object, and one whose
  layers or width are not those of the weights beside it.
Why: no engine can tell what the weights are.
Evidence: the folder, and what is wrong.
Remedy: fetch config.json of the same revision.
References: docs/planner.md: what the planner reads of a model.
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.flaw import Defect
from sparkwright.rules.flaws import flawed
from sparkwright.rules.rule import Context

CODE = "MODEL010"
STATUS = "stable"
SEVERITY = Severity.OVERRIDE
TITLE = "config.json is absent, broken or another model's"


def check(context: Context) -> Iterator[Finding]:
    for found in flawed(context, Defect.CONFIG):
        yield Finding(
            CODE,
            SEVERITY,
            found.node,
            f"{found.model.label} has no usable config.json",
            f"{found.checkpoint.path}: {found.shown}",
            "only the weights were fetched, or the file was cut off, edited or put there from another model",
            f"on {found.node}: rm -f {found.checkpoint.path}/config.json; {found.fetch('config.json')}",
        )
