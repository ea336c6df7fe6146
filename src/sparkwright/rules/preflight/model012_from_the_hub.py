"""The plan is made with what the hub says of the model.

Detects: a hub model that no node has, of which the recipe gives no size or no shape.
Why: the hub's figures are those of the files today; what will lie on the nodes is known only after the download.
Evidence: the model, its revision, and what the hub's listing adds up to.
Remedy: nothing; a recipe with `model.size` and `model.shape` is planned without asking anybody.
References: the hub's API: /api/models/ID/tree/REVISION and /resolve/REVISION/config.json.
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.units import gib
from sparkwright.rules.rule import Context

CODE = "MODEL012"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "size and dimensions are what the hub says"


def check(context: Context) -> Iterator[Finding]:
    told = context.published
    if told is None:
        return
    size = f"{gib(told.weights)} of weights" if told.weights else "no files that an engine loads"
    config = "its config.json was read" if told.config else "it has no config.json"
    yield Finding(
        CODE,
        SEVERITY,
        told.model,
        "no node has the model: it is planned with what the hub says",
        f"{told.model}@{told.revision}: {size}; {config}",
        "it was not downloaded yet, and the recipe does not give its size and shape",
        "nothing to do; `up` downloads it, and the next plan reads the files themselves",
    )
