"""A file of the weights is not what its own header says.

Detects: a safetensors or GGUF file shorter than its header promises, one without a header, a Git LFS pointer.
Why: an engine maps the files and fails when it comes to the damaged one, after the others were read. A download client
  that finds a file under its name takes it for good, so that fetching again mends nothing.
Evidence: the files with their sizes against the promised ones.
Remedy: remove them and fetch them again; a node with a whole copy gives it to the others.
References: the safetensors format (8 bytes length, JSON header, data to the end of the file); Git LFS specification.
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.flaw import Defect
from sparkwright.rules.flaws import Flawed, flawed
from sparkwright.rules.rule import Context

CODE = "MODEL006"
STATUS = "stable"
SEVERITY = Severity.OVERRIDE
TITLE = "a file of the weights is damaged"


def check(context: Context) -> Iterator[Finding]:
    for found in flawed(context, Defect.SHORT, Defect.POINTER, Defect.GARBAGE):
        mended = found.another_whole and not found.checkpoint.complete
        yield Finding(
            CODE,
            Severity.WARN if mended else SEVERITY,
            found.node,
            f"{found.model.label} has damaged files",
            f"{found.checkpoint.path}: {found.shown}",
            "a transfer was cut off without being noticed, or something else was put in place of the file",
            "nothing to do: `up` copies it from a node that has all of it" if mended else _hint(found),
        )


def _hint(found: Flawed) -> str:
    name = found.flaws[0].file
    if found.flaws[0].defect is Defect.POINTER:
        return f"on {found.node}: cd {found.checkpoint.path} && git lfs pull"
    path = f"{found.checkpoint.path}/{name}".rstrip("/")
    return f"on {found.node}, for each of them: rm -f $(readlink -f {path}) {path}; then {found.fetch()}"
