"""The way from this machine to nodes that it has never logged in to: a key of its own, host keys, a configuration.

All of it lies in ~/.config/sparkwright/ssh, whose `config` the other commands use from then on; it takes in the user's.
Runs where sparkwright runs, which may be a Mac: nothing but OpenSSH's own programs.
"""

import base64
import binascii
import hashlib
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from sparkwright.adapters.artifacts import private_folder, write
from sparkwright.adapters.ssh import translate
from sparkwright.domain.command import Command
from sparkwright.domain.errors import Unreachable, UsageError
from sparkwright.domain.values import dataclass

_SECONDS = 20
_HOST = """\
Host {pattern}
  IdentityFile "{key}"
  IdentityFile ~/.ssh/id_ed25519
  IdentityFile ~/.ssh/id_ecdsa
  IdentityFile ~/.ssh/id_rsa
  UserKnownHostsFile "{known}" {others}
  StrictHostKeyChecking yes
"""


@dataclass(frozen=True, slots=True)
class LoginWay:
    """A destination as ssh's own configuration resolves it. known: known_hosts files. name: the host as they have
    it."""

    host: str
    port: str
    name: str
    known: tuple[str, ...]


class FirstLogin:
    """base: the user's ssh configuration, as for `ssh -F`; None for the usual ones. folder: for our key."""

    def __init__(self, home: Path, base: Path | None, folder: Path | None = None) -> None:
        self.folder = folder or home / ".config/sparkwright/ssh"
        self.config = self.folder / "config"
        self._key, self._known = self.folder / "id_ed25519", self.folder / "known_hosts"
        self._base, self._usual = base, home / ".ssh/config"

    @property
    def current(self) -> Path | None:
        """The file for `ssh -F`: ours, which includes the user's, once it exists; None for ssh's default."""
        taken = self.config.exists() and (self._base is None or str(self._base.absolute()) in self.config.read_text())
        return self.config if taken else self._base

    def works(self, destination: str) -> bool:
        """True if a key of ours or of the user's opens it, and its host key is known."""
        return self._ssh("-o", "BatchMode=yes", "-T", "--", destination, "exit 0").returncode == 0

    def way(self, destination: str) -> LoginWay:
        done = self._ssh("-G", "--", destination)
        found = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
        if done.returncode or "hostname" not in found:
            raise UsageError(f"ssh does not take {destination!r}: {done.stderr.strip()[:200]}")
        host, port = found["hostname"], found.get("port", "22")
        bare = found.get("hostkeyalias") or (host if port == "22" else f"[{host}]:{port}")
        known = tuple(word for word in found.get("userknownhostsfile", "").split() if word != str(self._known))
        return LoginWay(host, port, bare, known)

    def knows(self, way: LoginWay) -> bool:
        files = [self._known, *(Path(name).expanduser() for name in way.known)]
        return any(_call("ssh-keygen", "-F", way.name, "-f", str(one)).returncode == 0 for one in files if one.exists())

    def host_keys(self, destination: str, way: LoginWay) -> tuple[str, ...]:
        """`TYPE BASE64`, as the machine at that address shows them now. Raises Unreachable."""
        done = _call("ssh-keyscan", "-T", "5", "-p", way.port, "--", way.host)
        lines = (line.split() for line in done.stdout.splitlines() if not line.startswith("#"))
        keys = tuple(sorted(" ".join(words[1:3]) for words in lines if len(words) == 3 and fingerprint(words[2])))
        if not keys:
            hint = f"is it on, on this network, and does sshd run there? `ssh {destination}`"
            raise Unreachable(destination, f"no answer of sshd at {way.host} port {way.port}", hint)
        return keys

    def trust(self, way: LoginWay, keys: Sequence[str]) -> None:
        private_folder(self.folder)
        old = self._known.read_bytes() if self._known.exists() else b""
        write(self._known, old + "".join(f"{way.name} {key}\n" for key in keys).encode())

    def prepare(self, destination: str, way: LoginWay) -> None:
        """Our key is there, and `ssh -F config` offers it to that destination."""
        private_folder(self.folder / "hosts")
        if not self._key.exists():
            made = _call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "sparkwright", "-f", str(self._key))
            if made.returncode:
                raise UsageError(f"no ssh key could be made: {made.stderr.strip()[:200]}", "install openssh-client")
        pattern = destination.removeprefix("ssh://").rpartition("@")[2].partition(":")[0]
        others = " ".join(f'"{name}"' for name in way.known)
        block = _HOST.format(pattern=pattern, key=self._key, known=self._known, others=others)
        write(self._file(destination), block.encode())
        write(self.config, self._config().encode())

    def forget(self, destination: str) -> None:
        """Removes what `prepare` has written for it; key and configuration go with the last destination."""
        self._file(destination).unlink(missing_ok=True)
        if not any((self.folder / "hosts").glob("*.conf")):
            for path in (self.config, self._known, self._key, self._key.with_suffix(".pub")):
                path.unlink(missing_ok=True)
            for folder in (self.folder / "hosts", self.folder):
                with suppress(OSError):
                    folder.rmdir()

    def public_key(self) -> str:
        """`TYPE BASE64`; '' without one."""
        path = self._key.with_suffix(".pub")
        return " ".join(path.read_text().split()[:2]) if path.exists() else ""

    def install(self, node: str, destination: str, command: Command) -> None:
        """Runs the command there with whatever ssh asks for on the terminal. Raises Unreachable."""
        code = base64.b64encode(command.argv[2].encode()).decode()
        words = " ".join(f'"$(echo {base64.b64encode(w.encode()).decode()} | base64 -d)"' for w in command.argv[4:])
        line = f"""exec sh -c 'set -- {words}; eval "$(echo {code} | base64 -d)"'"""
        argv = self._argv("-o", "NumberOfPasswordPrompts=3", "-o", "ConnectTimeout=10", "-T", "--", destination, line)
        done = subprocess.run(argv, check=False, stdout=subprocess.DEVNULL)
        if done.returncode:
            hint = f"`ssh {destination}` must work with a password or key; `sudo passwd USER` there sets a password"
            raise Unreachable(node, f"our key could not be installed (ssh exited {done.returncode})", hint)

    def refusal(self, node: str, destination: str) -> Unreachable:
        """The error that says why a login without questions fails."""
        done = self._ssh("-o", "BatchMode=yes", "-T", "--", destination, "exit 0")
        error = translate(node, destination, done.stderr, f"ssh -F {self.current} {destination}")
        if not self.resolves(destination):
            return Unreachable(node, f"no such host name ({destination})", "name its address: sparkwright init NAME=IP")
        return error

    def resolves(self, destination: str) -> bool:
        """True if the host has an address here; a jump host may know more than this machine."""
        done = self._ssh("-G", "--", destination)
        found = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
        if found.get("proxyjump", "none") != "none" or found.get("proxycommand", "none") != "none":
            return True
        try:
            return bool(socket.getaddrinfo(found.get("hostname", destination), None))
        except (OSError, UnicodeError):
            return False

    def _config(self) -> str:
        """The hosts of `init` first: ssh takes the first value that it finds."""
        base = [f'"{self._base.absolute()}"'] if self._base else [f'"{self._usual}"', "/etc/ssh/ssh_config"]
        taken = "\n".join(f"Include {one}" for one in base)
        return f'# Written by sparkwright init.\nInclude "{self.folder}/hosts/*.conf"\nMatch all\n{taken}\n'

    def _file(self, destination: str) -> Path:
        return self.folder / "hosts" / f"{hashlib.sha256(destination.encode()).hexdigest()[:16]}.conf"

    def _ssh(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return _call(*self._argv("-o", "ConnectTimeout=10", *words))

    def _argv(self, *words: str) -> tuple[str, ...]:
        return ("ssh", *(("-F", str(self.current)) if self.current else ()), *words)


def fingerprint(key: str) -> str:
    """The fingerprint as `ssh-keygen -l` prints it; '' for anything but a key. key: BASE64."""
    try:
        blob = base64.b64decode(key, validate=True)
    except (binascii.Error, ValueError):
        return ""
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def fingerprints(keys: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(type, fingerprint) of `TYPE BASE64` keys."""
    yield from ((kind, fingerprint(data)) for kind, _, data in (key.partition(" ") for key in keys))


def _call(*argv: str) -> "subprocess.CompletedProcess[str]":
    """Runs a program without input and without a terminal, so that nothing can ask. Raises UsageError if it is
    missing."""
    try:
        return subprocess.run(
            argv,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_SECONDS,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(argv, 255, "", f"Connection timed out after {_SECONDS} s")
    except FileNotFoundError:
        raise UsageError(f"no {argv[0]} on this machine", "install openssh-client") from None
