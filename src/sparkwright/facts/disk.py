"""Space under the folders that sparkwright writes to; a missing folder has the figures of its first parent."""

import re
from collections.abc import Iterable, Sequence

from sparkwright.domain.command import Command, Completed
from sparkwright.domain.fabric_facts import Ref, Store
from sparkwright.domain.facts import Disk, Unknown
from sparkwright.facts.fact import Fact, not_understood, sections, whole_number
from sparkwright.remote.host import script, script_texts

_sh = script_texts(__name__)
_FS = re.compile(r"(\S+) ([0-9]{1,18}) ([0-9]{1,18})", re.ASCII)
_PARTIAL = re.compile(r"([0-9]{1,18}) (\S.*)", re.ASCII)
_REF = re.compile(r"(models--\S+) (there|absent) ?(.*)")
# Read from the right: the file system's and the mount's names may hold blanks.
_ROW = re.compile(r".*?\s([0-9]+)\s+[0-9]+\s+(-?[0-9]+)\s+(?:[0-9]+%|-)\s+(/.*)", re.ASCII)


def stores(paths: Iterable[str]) -> Command:
    """Sections `N fs` (type and inodes from stat, then the mount's type), `N foreign` (OWNER PATH of the first),
    `N partial` (BYTES FILE), `N refs` (ENTRY there|absent TEXT, a newline in it as `\\n`); none for a folder that is
    not there; at last `end`."""
    return script(_sh("stores"), *paths, timeout=10.0)


def model_stores(paths: Sequence[str]) -> Fact[tuple[Store, ...]]:
    """One Store for each of `paths` that is there; Store.path is the path as given."""
    asked = tuple(dict.fromkeys(paths))

    def parse(done: Completed) -> tuple[Store, ...] | Unknown:
        parts = sections(done.stdout)
        if "end" not in parts:
            return not_understood(done, "sh")
        return tuple(_store(path, str(n), parts) for n, path in enumerate(asked, 1) if f"{n} fs" in parts)

    return Fact(stores(asked), parse)


def _store(path: str, number: str, parts: dict[str, str]) -> Store:
    first, _, mounted = parts[f"{number} fs"].partition("\n")
    told = _FS.fullmatch(first.strip())
    rows = [_PARTIAL.fullmatch(line.strip()) for line in parts.get(f"{number} partial", "").splitlines()]
    refs = [_REF.fullmatch(line.strip()) for line in parts.get(f"{number} refs", "").splitlines()]
    return Store(
        path=path,
        fs=mounted.strip() or (told[1] if told else ""),
        inodes=int(told[2]) if told else 0,
        inodes_free=int(told[3]) if told else 0,
        foreign=parts.get(f"{number} foreign", "").partition("\n")[0],
        partial={found[2]: int(found[1]) for found in rows if found},
        refs=tuple(Ref(m[1], m[3].replace("\\n", "\n"), m[2] == "there") for m in refs if m),
    )


def space_command(paths: Iterable[str]) -> Command:
    """Sections `1`, `2`, ... with df's table, in bytes, of each path or of its first parent that exists."""
    return script(_sh("space"), *paths, timeout=10.0)


def disks_fact(paths: Sequence[str]) -> Fact[tuple[Disk, ...]]:
    """One Disk for each of `paths` (`~` is the node's home) in their order; Disk.path is the path as given."""
    asked = tuple(dict.fromkeys(paths))

    def parse(done: Completed) -> tuple[Disk, ...] | Unknown:
        parts = sections(done.stdout)
        found = [_disk(path, parts.get(str(number), "")) for number, path in enumerate(asked, 1)]
        read = tuple(entry for entry in found if entry)
        return read if len(read) == len(asked) else not_understood(done, "df")

    return Fact(space_command(asked), parse)


def _disk(path: str, text: str) -> Disk | None:
    row = _ROW.fullmatch(text.rpartition("\n")[2])
    total, available = (whole_number(row[1]), whole_number(row[2])) if row else (None, None)
    if row is None or total is None or available is None:
        return None
    return Disk(path, row[3], total, max(0, available))
