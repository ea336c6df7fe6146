"""Options of engines that the owner had read, one file a build, in the state folder of this machine."""

import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparkwright.adapters.artifacts import private_folder, write
from sparkwright.domain.errors import StoreError
from sparkwright.engines.flag_data import SHIPPED, FlagData, FlagLibrary

if TYPE_CHECKING:
    from collections.abc import Mapping

_KEPT = 50  # files
_ODD = re.compile(r"[^A-Za-z0-9.+-]", re.ASCII)


class FolderFlags:
    """Implements ports.FlagStore as root/ENGINE-VERSION-BUILD.json."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def load(self) -> FlagLibrary:
        own = tuple(data for data in self.read().values() if isinstance(data, FlagData))
        return FlagLibrary(own) if own else SHIPPED

    def read(self) -> dict[str, FlagData | str]:
        """Path -> data, the one that was read last at the end; text: why a file cannot be used."""
        paths = sorted(self._root.glob("*.json"))[: 4 * _KEPT] if self._root.is_dir() else []
        found = {str(path): _data(path) for path in paths}
        return dict(sorted(found.items(), key=lambda item: _age(item[1])))

    def save(self, row: "Mapping[str, Any]") -> str:
        from sparkwright.engines.own_data import to_text

        build = row["build"].removeprefix("sha256:")[:12] or "any"
        path = self._root / f"{row['engine']}-{_ODD.sub('_', row['version'])}-{build}.json"
        try:
            private_folder(self._root)
            write(path, to_text(dict(row)).encode())
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror or error}") from None
        for old in [*self.read()][:-_KEPT]:
            with suppress(OSError):
                Path(old).unlink()
        return str(path)


def _age(found: FlagData | str) -> float:
    return float(found.source["at"]) if isinstance(found, FlagData) else 0.0


def _data(path: Path) -> FlagData | str:
    from sparkwright.engines.own_data import MOST_BYTES, from_text  # with pydantic: only where there is a file

    try:
        with path.open("rb") as file:
            return from_text(file.read(MOST_BYTES + 1).decode())
    except (OSError, ValueError) as error:
        return getattr(error, "strerror", None) or str(error)[:200]
