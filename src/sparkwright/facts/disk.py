"""Space under the folders that sparkwright writes to; a folder that is not there yet is told by its first parent."""

import re
from collections.abc import Sequence

from sparkwright.domain.command import Completed
from sparkwright.domain.facts import Disk, Unknown
from sparkwright.facts.fact import Fact, not_understood, sections, whole
from sparkwright.remote import disk

# Read from the right: the file system's and the mount's names may hold blanks.
_ROW = re.compile(r".*?\s([0-9]+)\s+[0-9]+\s+(-?[0-9]+)\s+(?:[0-9]+%|-)\s+(/.*)", re.ASCII)


def disks(paths: Sequence[str]) -> Fact[tuple[Disk, ...]]:
    """One Disk for each of `paths` (`~` is the node's home) in their order; Disk.path is the path as given."""
    asked = tuple(dict.fromkeys(paths))

    def parse(done: Completed) -> tuple[Disk, ...] | Unknown:
        parts = sections(done.stdout)
        found = [_disk(path, parts.get(str(number), "")) for number, path in enumerate(asked, 1)]
        read = tuple(entry for entry in found if entry)
        return read if len(read) == len(asked) else not_understood(done, "df")

    return Fact(disk.space(asked), parse)


def _disk(path: str, text: str) -> Disk | None:
    row = _ROW.fullmatch(text.rpartition("\n")[2])
    total, available = (whole(row[1]), whole(row[2])) if row else (None, None)
    if row is None or total is None or available is None:
        return None
    return Disk(path, row[3], total, max(0, available))
