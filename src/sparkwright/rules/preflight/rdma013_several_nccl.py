"""The node has several versions of NCCL.

Detects: library files of libnccl with different versions in the usual folders.
Why: processes take the one that the linker finds first, Python packages bring their own, and the nodes may differ:
  ranks with different versions do not understand each other. Containers have theirs.
Evidence: the files.
Remedy: one version, the same on all nodes; engines in containers are not touched by it.
References: https://docs.nvidia.com/deeplearning/nccl/user-guide (all ranks need the same version)
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.fabric import compared
from sparkwright.rules.reading import known
from sparkwright.rules.rule import Context

CODE = "RDMA013"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "several versions of NCCL on a node or across nodes"


def check(context: Context) -> Iterator[Finding]:
    files = {f.node: settings.nccl for f in compared(context) if (settings := known(f.settings)) and settings.nccl}
    versions = {path.rpartition(".so.")[2] for paths in files.values() for path in paths}
    if len(versions) > 1:
        yield Finding(
            CODE,
            SEVERITY,
            ", ".join(files),
            f"NCCL {' and '.join(sorted(versions))} are installed",
            "; ".join(f"{node}: {', '.join(paths)}" for node, paths in files.items()),
            "several packages or builds brought one; which one a process takes depends on how it is started",
            "sudo apt install the same libnccl2 on all nodes and remove hand-built copies; containers bring their own",
        )
