"""The models are on a network file system.

Detects: the folder of models or the hub cache is on nfs, cifs, or through FUSE.
Why: engines map the weights into memory: over a network that is slow at each start (150 GB at 1 Gb/s: 20 minutes), a
  lost server stops the engine in the middle of a read, and FUSE goes through one program for every page.
Evidence: the folder and its file system.
Remedy: a local copy of what is served; `up` copies between nodes over the fabric.
References: https://man7.org/linux/man-pages/man5/nfs.5.html
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import known, simulated
from sparkwright.rules.rule import Context

CODE = "DISK004"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "models are on a network file system"

_REMOTE = ("nfs", "cifs", "smb", "fuse.", "fuseblk", "9p", "ceph", "glusterfs", "afs")


def check(context: Context) -> Iterator[Finding]:
    for facts in context.facts.values() if not simulated(context) else ():
        for store in known(facts.stores) or ():
            if store.fs.startswith(_REMOTE):
                yield Finding(
                    CODE,
                    SEVERITY,
                    facts.node,
                    f"{store.path} is on {store.fs}",
                    f"/proc/mounts: {store.fs} at {store.path}",
                    "weights are read through the network at every start",
                    f"keep what is served on the node's own disk (paths.models and paths.hub of {facts.node} in the "
                    "cluster file)",
                )
