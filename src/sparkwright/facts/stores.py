"""Folders of models: owner, file system, unfinished downloads, refs/main of each hub entry."""

import re
from collections.abc import Sequence

from sparkwright.domain.command import Completed
from sparkwright.domain.fabric_facts import Ref, Store
from sparkwright.domain.facts import Unknown
from sparkwright.facts.fact import Fact, not_understood, sections
from sparkwright.remote import stores

_FS = re.compile(r"(\S+) ([0-9]{1,18}) ([0-9]{1,18})", re.ASCII)
_PARTIAL = re.compile(r"([0-9]{1,18}) (\S.*)", re.ASCII)
_REF = re.compile(r"(models--\S+) (there|absent) ?(.*)")


def model_stores(paths: Sequence[str]) -> Fact[tuple[Store, ...]]:
    """One Store for each of `paths` that is there; Store.path is the path as given."""
    asked = tuple(dict.fromkeys(paths))

    def parse(done: Completed) -> tuple[Store, ...] | Unknown:
        parts = sections(done.stdout)
        if "end" not in parts:
            return not_understood(done, "sh")
        return tuple(_store(path, str(n), parts) for n, path in enumerate(asked, 1) if f"{n} fs" in parts)

    return Fact(stores.stores(asked), parse)


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
