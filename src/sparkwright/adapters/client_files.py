"""Files of other programs on this machine: written with what was there before kept, and put back."""

import difflib
import hashlib
import json
import stat
from collections.abc import Callable
from pathlib import Path

from sparkwright.adapters.artifacts import private_folder, write
from sparkwright.domain.errors import UsageError
from sparkwright.domain.foreign_json import read_json
from sparkwright.domain.homes import expand_home
from sparkwright.domain.values import dataclass

_MOST = 4_000_000


@dataclass(frozen=True, slots=True)
class FileChange:
    """A change to a file. before: None if there was no file."""

    path: Path
    before: str | None
    after: str

    @property
    def difference(self) -> str:
        names = (str(self.path), str(self.path)) if self.before is not None else ("/dev/null", str(self.path))
        lines = difflib.unified_diff((self.before or "").splitlines(), self.after.splitlines(), *names, lineterm="")
        return "\n".join(lines)


class ClientFiles:
    """home: where `~` is. record: folder that remembers what was there before, a file a client."""

    def __init__(self, home: Path, record: Path) -> None:
        self._home, self._record = home, record

    def change(self, file: str, make: Callable[[str], str]) -> FileChange:
        """The change that would be made. make: turns the present text into the new one. Raises UsageError."""
        path = Path(expand_home(file, str(self._home)))
        before = self._read(path)
        return FileChange(path, before, make(before or ""))

    def apply(self, client: str, change: FileChange) -> None:
        """Raises UsageError. Once written again, undo still goes back to what was there before the first time."""
        if change.before == change.after:
            return
        known = self._known(client)
        ours = known is not None and change.before is not None and known["after"] == _digest(change.before)
        before = known["before"] if known and ours else change.before
        note = {"path": str(change.path), "before": before, "after": _digest(change.after)}
        try:
            private_folder(self._record)
            write(self._record / f"{client}.json", json.dumps(note).encode())
            real = change.path.resolve()  # a link into a folder of dotfiles stays one
            private_folder(real.parent)
            mode = _mode(real)
            write(real, change.after.encode())
            _keep(real, mode)
        except OSError as error:
            raise UsageError(f"{change.path} cannot be written: {error.strerror}") from error

    def undo(self, client: str) -> Path:
        """The file that was put back. Raises UsageError where nothing was written, or somebody changed it since."""
        if (known := self._known(client)) is None:
            raise UsageError(f"nothing was written for {client} from this machine")
        path = Path(str(known["path"]))
        if _digest(self._read(path) or "") != known["after"]:
            hint = f"what was there before is in {self._record / f'{client}.json'}"
            raise UsageError(f"{path} was changed by somebody else since", hint)
        try:
            if known["before"] is None:
                path.unlink()
            else:
                real = path.resolve()
                mode = _mode(real)
                write(real, str(known["before"]).encode())
                _keep(real, mode)
            (self._record / f"{client}.json").unlink()
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {error.strerror}") from error
        return path

    def _known(self, client: str) -> dict[str, str | None] | None:
        text = self._read(self._record / f"{client}.json")
        return read_json(text) if text else None

    def _read(self, path: Path) -> str | None:
        try:
            with path.open("rb") as file:
                content = file.read(_MOST + 1)
            if len(content) > _MOST:
                raise UsageError(f"{path} has more than {_MOST:,} bytes")
            return content.decode()
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{path} cannot be read: {getattr(error, 'strerror', None) or 'no text'}") from error


def _mode(path: Path) -> int | None:
    """Permissions of a file, None where there is none."""
    return stat.S_IMODE(path.stat().st_mode) if path.exists() else None


def _keep(path: Path, mode: int | None) -> None:
    """Gives a file that was written anew the permissions that it had; a new one stays the user's alone."""
    if mode is not None:
        path.chmod(mode)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
