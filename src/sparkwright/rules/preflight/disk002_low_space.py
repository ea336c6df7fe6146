"""A file system that the work needs is nearly full.

Detects: one with models, caches, state or Docker's data with less than 20 GiB or less than 3 % free (our own lines).
Why: compile caches, logs and containers grow while an engine serves; a full disk ends them all, and Docker with them.
  Whether a recipe's weights have room is another question (DISK001).
Evidence: what `df` says, and which folders are on it.
Remedy: make room.
References: https://docs.docker.com/engine/manage-resources/pruning/
"""

from collections.abc import Iterator

from sparkwright.domain.facts import Disk
from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.units import GIB, gib
from sparkwright.rules.reading import known, simulated
from sparkwright.rules.rule import Context

CODE = "DISK002"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "a file system is nearly full"

_LEAST = 20 * GIB
_SHARE = 0.03


def check(context: Context) -> Iterator[Finding]:
    for facts in context.facts.values() if not simulated(context) else ():
        by_mount: dict[str, list[Disk]] = {}
        for disk in known(facts.disks) or ():
            by_mount.setdefault(disk.mount, []).append(disk)
        for mount, disks in by_mount.items():
            free, total = disks[0].available, disks[0].total
            if total and free < max(min(_LEAST, total // 2), total * _SHARE):
                yield Finding(
                    CODE,
                    SEVERITY,
                    facts.node,
                    f"{gib(free)} left on {mount}",
                    f"df: {gib(free)} of {gib(total)} free; on it: {', '.join(disk.path for disk in disks)}",
                    "models, images and caches have filled it",
                    f"sudo du -xh --max-depth=2 {mount} | sort -h | tail; docker system df; hf cache scan",
                )
