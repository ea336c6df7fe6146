"""refs/main of the model's hub entry is absent or wrong.

Detects: a hub entry whose refs/main is not there, ends with a newline, or names a snapshot that is not there.
Why: without internet the hub's client finds the snapshot by the text of refs/main alone; a newline makes it a folder
  that does not exist, and the engine says that the model cannot be found.
Evidence: the entry on the node, and what is wrong with refs/main.
Remedy: write the name of the snapshot's folder into it, without a newline.
References: huggingface_hub's cache layout.
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.flaw import Defect
from sparkwright.rules.flaws import flawed
from sparkwright.rules.rule import Context

CODE = "MODEL005"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "refs/main of the hub entry is wrong"


def check(context: Context) -> Iterator[Finding]:
    for found in flawed(context, Defect.REF):
        root, revision = found.checkpoint.root, (found.checkpoint.path and found.checkpoint.revision) or "REVISION"
        yield Finding(
            CODE,
            SEVERITY,
            found.node,
            f"{found.model.label} cannot be found offline",
            f"{root}: {found.shown}",
            "the entry was made by hand, or copied without its refs folder",
            f"on {found.node}: mkdir -p {root}/refs && printf %s {revision} > {root}/refs/main",
        )
