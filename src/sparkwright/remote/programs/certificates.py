"""Certificates of the gateway's own CA on this head: damaged files are removed or restored, so that Caddy can serve.

    certificates.py mend|renew STORE DOOR

STORE: Caddy's folder of its CA; next to it `given.crt` and `given.key`, the CA that clients were given. DOOR: the
folder that Caddy runs in. Caddy makes a missing certificate again, but fails for good on one that it cannot read.
Prints one JSON line: mended (sentences, one for each part), lost (the reason why the CA cannot be restored, '' if it
can). `renew` moves a lost CA away when no Caddy runs, so that the next one makes a new CA.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
import sys
import time
from pathlib import Path

_MOST_BYTES = 1 << 20
_ADMIN, _ADMIN_SECONDS = "admin.sock", 20
_ROUNDS = 10


def is_pair(certificate: Path, key: Path) -> bool:
    """True if both files are whole PEM files that belong together."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        if max(certificate.stat().st_size, key.stat().st_size) > _MOST_BYTES:
            return False
        context.load_cert_chain(certificate, key, password=lambda: b"")
    except (OSError, ValueError):
        return False
    return True


def is_trusted(certificate: Path, key: Path, root: Path) -> bool:
    """True if a client that has this root accepts the certificate now: a handshake in memory, without names."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client, server = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    client.check_hostname = False
    try:
        client.load_verify_locations(root)
        server.load_cert_chain(certificate, key, password=lambda: b"")
        ends = client.wrap_bio(to_client, to_server), server.wrap_bio(to_server, to_client, server_side=True)
        for _ in range(_ROUNDS):
            if sum(map(_waits, ends)) == 0:
                return True
    except (OSError, ValueError):
        pass
    return False


def _waits(end: ssl.SSLObject) -> bool:
    try:
        end.do_handshake()
    except ssl.SSLWantReadError:
        return True
    return False


class AuthorityStore:
    """Caddy's store. mended: what was put right; lost: why the CA itself cannot be."""

    def __init__(self, store: Path) -> None:
        self._store, self._local = store, store / "pki" / "authorities" / "local"
        self._given = store.parent / "given.crt", store.parent / "given.key"
        self._root = self._local / "root.crt", self._local / "root.key"
        self.mended: list[str] = []
        self.lost = ""

    def mend(self) -> None:
        """Raises OSError if a file cannot be written or removed."""
        self._open_up()
        if not any(map(os.path.lexists, self._root)):
            return  # Caddy makes a new CA
        if not is_pair(*self._root) and not self._restored():
            self.lost = f"{self._root[0]} and {self._root[1]} are no certificate and key that belong together"
            return
        self._keep_copy()
        middle = self._local / "intermediate.crt", self._local / "intermediate.key"
        if any(map(os.path.lexists, middle)) and not is_pair(*middle):
            self._remove("the CA's intermediate certificate was damaged", *middle)
        for folder in sorted(self._store.glob("certificates/local/*")):
            self._mend_name(folder, middle)

    def move_away(self) -> None:
        """The lost CA under another name, so that Caddy makes a new one."""
        aside = self._store / f"damaged-{time.time():.0f}"
        aside.mkdir(mode=0o700)
        (self._store / "pki").rename(aside / "pki")
        for folder in self._store.glob("certificates/local/*"):
            self._remove("", *folder.glob(f"{folder.name}.*"))
        self.mended.append(f"a new CA is made: the damaged one is in {aside}")

    def _open_up(self) -> None:
        """Folders and files of ours that their owner may not read: somebody has changed their modes."""
        closed = 0
        for folder, folders, names in os.walk(self._store.parent):
            if Path(folder) == self._store.parent:
                folders[:], names = [one for one in folders if one == self._store.name], []
            for name, mode in (*((one, 0o700) for one in folders), *((one, 0o600) for one in names)):
                path = Path(folder, name)
                found = path.lstat()
                if found.st_uid == os.geteuid() and not path.is_symlink() and found.st_mode & mode != mode:
                    path.chmod(mode)  # a folder is opened before it is entered
                    closed += 1
        if closed:
            self.mended.append(f"{closed} files of the CA could not be read by their owner: their mode is right again")

    def _restored(self) -> bool:
        """The pair again, by what clients were given: the certificate is the one that they trust."""
        for certificate, key in ((self._given[0], self._root[1]), self._given, (self._root[0], self._given[1])):
            if is_pair(certificate, key):
                for source, target in ((certificate, self._root[0]), (key, self._root[1])):
                    _copy(source, target)
                self.mended.append("the CA's certificate or key was damaged, and restored from its copy")
                return True
        return False

    def _keep_copy(self) -> None:
        """A copy of the key of the CA that clients have."""
        if is_pair(self._given[0], self._root[1]) and not is_pair(*self._given):
            _copy(self._root[1], self._given[1])

    def _mend_name(self, folder: Path, middle: tuple[Path, Path]) -> None:
        certificate, key, about = (folder / f"{folder.name}.{end}" for end in ("crt", "key", "json"))
        if not any(map(os.path.lexists, (certificate, key, about))):
            return
        if not is_pair(certificate, key) or not _is_json(about):
            self._remove(f"the certificate of {folder.name} was damaged", certificate, key, about)
        elif not is_trusted(certificate, key, self._root[0]):
            text = f"the certificate of {folder.name} was not signed by this CA or not valid at this time"
            self._remove(text, certificate, key, about, *middle)

    def _remove(self, text: str, *paths: Path) -> None:
        for path in paths:
            path.unlink(missing_ok=True)
        if text:
            self.mended.append(text)


def _is_json(path: Path) -> bool:
    try:
        return path.stat().st_size <= _MOST_BYTES and isinstance(json.loads(path.read_bytes()), dict)
    except (OSError, ValueError):
        return False


def _copy(source: Path, target: Path) -> None:
    """Whole and on the disk before it has its name."""
    if source == target:
        return
    new = target.with_name(f".{target.name}.new")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(source.read_bytes())
        file.flush()
        os.fsync(file.fileno())
    new.replace(target)
    at = os.open(target.parent, os.O_RDONLY)
    os.fsync(at)
    os.close(at)


class CaddyAdmin(http.client.HTTPConnection):
    """Caddy's administration socket in the folder of this process: a path of its own may be too long."""

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(_ADMIN_SECONDS)
        self.sock.connect(_ADMIN)


def reload() -> bool:
    """Make a running Caddy read its certificates again; False if none runs or it refuses."""
    try:
        link = CaddyAdmin("localhost")
        headers = {"Content-Type": "application/json", "Host": "", "Cache-Control": "must-revalidate"}
        link.request("POST", "/load", Path("caddy.json").read_bytes(), headers)
        return link.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False


def is_running() -> bool:
    with socket.socket(socket.AF_UNIX) as link:
        return link.connect_ex(_ADMIN) == 0


def main(verb: str, store: str, door: str) -> int:
    authority = AuthorityStore(Path(store).expanduser())
    try:
        os.chdir(Path(door).expanduser())
        authority.mend()
        if authority.lost and verb == "renew" and not is_running():
            authority.move_away()
            authority.lost = ""
    except OSError as error:
        authority.lost = authority.lost or f"files of the CA cannot be mended: {error}"
    if authority.mended:
        reload()
    sys.stdout.write(json.dumps({"mended": authority.mended, "lost": authority.lost}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
