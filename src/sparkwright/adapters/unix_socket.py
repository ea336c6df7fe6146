"""Unix sockets of the programs on the head, whose names a cleaner may remove while they listen."""

import asyncio
import os
import socket
from pathlib import Path

_LOOK_EVERY = 1.0


class ServiceSocket:
    """Listens on `name` in `folder`, which becomes the working folder: a socket's own path may have 107 bytes.

    Raises OSError where it cannot be made.
    """

    def __init__(self, folder: Path, name: str, backlog: int = 100) -> None:
        os.chdir(folder)
        self._path, new = Path(name), Path(f"{name}.{os.getpid()}")
        new.unlink(missing_ok=True)
        self.listener, before = socket.socket(socket.AF_UNIX), os.umask(0o177)
        try:
            self.listener.bind(str(new))
            self.listener.listen(backlog)
            self._made = self._mark(new)
            new.replace(self._path)  # it listens: whoever sees the socket may come
        except BaseException:
            self.listener.close()
            new.unlink(missing_ok=True)
            raise
        finally:
            os.umask(before)

    def _mark(self, path: Path) -> tuple[int, int] | None:
        try:
            found = path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    async def wait_until_lost(self) -> bool:
        """Returns once nobody reaches this socket by its name: True if that was removed, False if another one has
        it."""
        while (found := self._mark(self._path)) == self._made:  # noqa: ASYNC110 - a file system tells nobody
            await asyncio.sleep(_LOOK_EVERY)
        return found is None
