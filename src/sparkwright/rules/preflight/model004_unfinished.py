"""A download or copy of the model was not finished.

Detects: `*.incomplete` files in the model's hub entry, or the mark that our own copies leave until they are complete.
Why: engines look for files by name; beside half a download they fail late, or wait for the hub.
Evidence: the unfinished files, as the node lists them.
Remedy: finish it; what is left over from a download that was finished in another way is removed.
References: huggingface_hub's download writes to NAME.incomplete and renames.
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.flaw import Defect
from sparkwright.rules.flaws import flawed
from sparkwright.rules.rule import Context

CODE = "MODEL004"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "a download of the model is unfinished"


def check(context: Context) -> Iterator[Finding]:
    for found in flawed(context, Defect.UNFINISHED):
        root = found.checkpoint.root or found.checkpoint.path
        finish = f"on {found.node}: {found.fetch()}" if found.model.id else "finish the copy"
        yield Finding(
            CODE,
            SEVERITY,
            found.node,
            f"{found.model.label} was not downloaded or copied to the end",
            f"{root}: {found.shown}",
            "the transfer was cut off, or is still running",
            f"{finish}; `up` does so too. If it is complete all the same: find {root} -name '*.incomplete' -delete",
        )
