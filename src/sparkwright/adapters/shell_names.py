"""Names for shell completion, kept in small files of the cache: a Tab must not ask nodes or load every rule."""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from sparkwright.adapters.artifacts import private_folder, write
from sparkwright.domain.deployment import is_deployment_name
from sparkwright.domain.foreign_json import read_json

_MAX_BYTES = 256_000


def _file(cluster: str) -> str:
    return f"deployments-{re.sub(r'[^A-Za-z0-9._-]', '_', cluster)}.json"


class ShellNames:
    """Deployments of each cluster as last seen, and the codes of one version. Nothing raises: it is a convenience."""

    def __init__(self, folder: Path, version: str) -> None:
        self._folder, self._version = folder, version

    def deployments(self, cluster: str) -> Sequence[str]:
        return tuple(filter(is_deployment_name, self._read(_file(cluster)).get("names", ())))

    def keep_deployments(self, cluster: str, names: Iterable[str]) -> None:
        wanted = sorted(set(names))
        if wanted != list(self.deployments(cluster)):
            self._write(_file(cluster), {"names": wanted})

    def codes(self, load: Callable[[], Iterable[str]]) -> Sequence[str]:
        kept = self._read("codes.json")
        if kept.get("version") == self._version:
            return tuple(kept.get("names", ()))
        names = tuple(load())
        self._write("codes.json", {"version": self._version, "names": names})
        return names

    def _read(self, name: str) -> dict[str, Any]:
        with suppress(OSError, ValueError):
            with (self._folder / name).open("rb") as file:
                found = read_json(file.read(_MAX_BYTES))
            if isinstance(found, dict) and all(isinstance(one, str) for one in found.get("names", ())):
                return found
        return {}

    def _write(self, name: str, content: dict[str, object]) -> None:
        with suppress(OSError):
            private_folder(self._folder)
            write(self._folder / name, json.dumps(content).encode(), sync=False)
