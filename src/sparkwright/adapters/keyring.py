"""Keys to gateways, and what to trust there, kept on the machine of the person who called."""

import os
import secrets
from pathlib import Path

from sparkwright.domain.command import Secret
from sparkwright.domain.errors import UsageError
from sparkwright.gateway.keys import BYTES, FIRST


class FolderKeyring:
    """`root/CLUSTER/NAME`, files 0600 in folders 0700."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def fresh(self) -> bytes:
        return secrets.token_bytes(BYTES)

    def save(self, cluster: str, name: str, content: str) -> str:
        """Raises UsageError when it cannot be written."""
        path = self._root / cluster / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.unlink(missing_ok=True)  # one that others may read already stays open to them
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(content)
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {error.strerror}") from error
        return str(path)

    def saved(self, cluster: str) -> tuple[tuple[str, Secret], ...]:
        """(path, key) of those made from this machine, `default` first; one that cannot be read is passed over."""
        found = sorted((self._root / cluster).glob("*.key"), key=lambda path: (path.stem != FIRST, path.stem))
        return tuple((str(path), Secret(text)) for path in found if (text := _text(path)))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""
