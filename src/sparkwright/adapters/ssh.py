"""Nodes over the system's OpenSSH: the user's config, jump hosts, agent and known_hosts are OpenSSH's own business.

One connection per node is shared by all calls, also of the next call of sparkwright (ControlPersist).
"""

import asyncio
import hashlib
import os
import re
import secrets
import shlex
import socket
import stat
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path

from sparkwright.adapters import node_script, process
from sparkwright.adapters.machine import whoami
from sparkwright.adapters.node_host import NodeHost
from sparkwright.adapters.node_script import NodeScript
from sparkwright.domain.cluster import Node
from sparkwright.domain.errors import Unreachable, UsageError
from sparkwright.domain.values import dataclass

# sun_path holds 104 bytes on BSD and 108 on Linux with its NUL; ssh binds to a name 17 longer and then renames it.
_LONGEST_SOCKET = 104 - 1 - 17
# A port picked as free can be taken by somebody else before ssh binds it.
_SHARED_IS_GONE = "mux_client_"  # in what ssh prints when the shared connection ends while it is asked
_PORT_TRIES = 3
_CONFIG_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class SshSettings:
    """The way to call ssh. config: instead of ~/.ssh/config (`ssh -F`). control: folder of the shared connections'
    sockets (default: /run/user/UID/sparkwright or /tmp/sparkwright-UID). connect_timeout, persist: seconds. environ:
    for ssh; None: this process's own."""

    config: Path | None = None
    control: Path | None = None
    connect_timeout: int = 10
    persist: int = 60
    environ: Mapping[str, str] | None = None
    program: str = "ssh"


class SshTransport:
    """Scripts to one node. Host keys are checked as in the user's config and never accepted here."""

    def __init__(self, node: Node, settings: SshSettings) -> None:
        self._name = node.name
        self._destination, self._host = node.ssh, node.host
        self._settings = settings
        self._environ = None if settings.environ is None else {**settings.environ, "LC_ALL": "C"}
        self._connecting: asyncio.Future[None] | None = None
        self._unshared = False
        self._folder = settings.control or control_folder()
        self._control = self._folder / hashlib.sha256(f"{node.ssh}\n{settings.config}".encode()).hexdigest()[:16]

    async def open(self, script: NodeScript) -> Process:
        text, first = node_script.login_shell_line(script)
        if script.agent:
            return await self._start((*self._own(), "-A"), text, first)
        await self._connect()
        return await self._start((*self._shared(), "-a", "-oClearAllForwardings=yes"), text, first)

    def lost(self, stderr: str, begun: bool) -> Unreachable:
        if begun:
            return broken(self._name, stderr)
        config = f"ssh -F {self._settings.config}" if self._settings.config else "ssh"
        return translate(self._name, self._destination, stderr, f"{config} {self._destination}")

    async def renew(self, stderr: str) -> bool:
        had = self._control.exists() or _SHARED_IS_GONE in stderr  # ssh may have removed its socket already
        if self._control.exists():
            await self._master("exit")
            self._control.unlink(missing_ok=True)
        return had

    @asynccontextmanager
    async def tunnel(self, address: str, port: int) -> AsyncIterator[str]:
        await self._connect()
        target = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
        spec, holding = await self._forward(target)
        try:
            yield f"http://127.0.0.1:{spec.split(':')[1]}"
        finally:
            await self._master("cancel", "-L", spec)
            await process.end_process(holding)

    async def address(self) -> str:
        """Host of the destination after ssh's own configuration: an alias means nothing to other programs."""
        config = ("-F", str(self._settings.config)) if self._settings.config else ()
        argv = (self._settings.program, *config, "-G", "--", self._destination)
        shown = await process.printed(argv, _CONFIG_SECONDS, self._environ)
        lines = (line.partition(" ") for line in shown.splitlines())
        return next((value.strip() for name, _, value in lines if name == "hostname"), self._host)

    async def close(self, persist: bool) -> None:
        if not persist and self._control.exists():
            await self._master("exit")

    async def _connect(self) -> None:
        """Makes sure that the shared connection is there. ssh itself removes the socket of a dead one.

        Who comes meanwhile waits for the same attempt and shares its failure: a second one would take as long.
        """
        if self._unshared:
            return
        private_socket(self._folder, self._control)  # before the socket is looked at: ssh would talk to anybody's
        if _listens(self._control):
            return
        if self._connecting is None or self._connecting.done():
            self._connecting = asyncio.ensure_future(self._make())
            self._connecting.add_done_callback(lambda made: made.cancelled() or made.exception())
        await asyncio.shield(self._connecting)

    async def _make(self) -> None:
        argv = (*self._words("auto", str(self._control)), "-a", "-oClearAllForwardings=yes")
        limit = 4.0 * self._settings.connect_timeout
        words = (*argv, "--", self._destination, "exit 0")
        try:
            code, stderr = await process.run_program(words, limit, self._environ)
            if code != 0 and _SHARED_IS_GONE in stderr:  # the shared connection went away while it was asked
                self._control.unlink(missing_ok=True)
                code, stderr = await process.run_program(words, limit, self._environ)
        except (FileNotFoundError, PermissionError):
            raise UsageError(f"no {self._settings.program} on this machine", "install openssh-client") from None
        if code != 0:
            silent = f"Connection timed out after {limit:.0f} s" if code == 124 else ""
            raise self.lost(stderr or silent, begun=False)
        # The user's ssh may be unable to share (a file system without sockets): then each call connects anew.
        self._unshared = not _listens(self._control)

    async def _forward(self, target: str) -> tuple[str, Process]:
        """The forward of a free port, and the session that keeps it: the shared connection would else end when idle."""
        for _ in range(0 if self._unshared else _PORT_TRIES):
            spec = f"127.0.0.1:{_free_port()}:{target}"
            if await self._master("forward", "-L", spec) == 0:
                return spec, await self._hold((*self._shared(), "-oClearAllForwardings=yes"))
        spec = f"127.0.0.1:{_free_port()}:{target}"
        return spec, await self._hold((*self._own(), "-oExitOnForwardFailure=yes", "-L", spec))

    async def _hold(self, argv: Sequence[str]) -> Process:
        """A session that lasts until its stdin ends, and so no longer than this process."""
        ready = secrets.token_hex(8)
        holding = await self._start((*argv, "-a"), f"echo {ready}; cat > /dev/null")
        if not await _heard(holding, ready.encode(), 2.0 * self._settings.connect_timeout):
            stderr = await process.complaint(holding)
            await process.end_process(holding, 0.0)
            raise self.lost(stderr, begun=False)
        return holding

    async def _start(self, argv: Sequence[str], text: str, first: bytes = b"") -> Process:
        return await process.start((*argv, "--", self._destination, text), first, self._environ)

    async def _master(self, order: str, *words: str) -> int:
        """Sends the shared connection a command, exit code as ssh's. Without the user's config (-F none): its

        LocalForward lines would be asked for, too, and fail when another ssh of the user has them.
        """
        argv = (self._settings.program, "-F", "none", "-S", str(self._control), "-O", order, *words)
        return (await process.run_program((*argv, "--", self._destination), 5.0, self._environ))[0]

    def _shared(self) -> tuple[str, ...]:
        return self._words("no", "none" if self._unshared else str(self._control))

    def _own(self) -> tuple[str, ...]:
        return self._words("no", "none")

    def _words(self, master: str, control: str) -> tuple[str, ...]:
        """LogLevel: warnings are not the command's stderr. RemoteCommand: a config's would clash with ours."""
        settings = self._settings
        config = ("-F", str(settings.config)) if settings.config else ()
        options = ["BatchMode=yes", f"ConnectTimeout={settings.connect_timeout}", "ServerAliveInterval=5"]
        options += ["ServerAliveCountMax=3", "LogLevel=ERROR", "RemoteCommand=none", f"ControlMaster={master}"]
        options += [f"ControlPath={control}", f"ControlPersist={settings.persist}"]
        return (settings.program, *config, "-T", *(f"-o{option}" for option in options))


def ssh_host(node: Node, settings: SshSettings | None = None, who: str | None = None) -> NodeHost:
    """The Host of a node behind ssh; connects on first use."""
    return NodeHost(node, SshTransport(node, settings or SshSettings()), who or whoami())


def control_folder() -> Path:
    runtime = Path(f"/run/user/{os.getuid()}")
    return runtime / "sparkwright" if os.access(runtime, os.W_OK) else Path(f"/tmp/sparkwright-{os.getuid()}")


def private_socket(folder: Path, control: Path) -> None:
    """A process that opens the socket is on the node as the user: the folder must be the user's alone."""
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700, parents=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise UsageError(f"{folder} holds ssh connections but is not a folder of yours alone", f"remove {folder}")
    if len(os.fsencode(control)) > _LONGEST_SOCKET:
        raise UsageError(f"{control} is too long a name for a socket (at most {_LONGEST_SOCKET} bytes)")


def _listens(path: Path) -> bool:
    with closing(socket.socket(socket.AF_UNIX)) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
        return True


def _free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def _heard(running: Process, word: bytes, limit: float) -> bool:
    """True if the session printed the word: only then the forward is open."""
    heard = b""
    with suppress(TimeoutError):
        async with asyncio.timeout(limit):
            while word not in heard and (chunk := await process.read_chunk(running)):
                heard += chunk
    return word in heard


_CHANGED = re.compile(r"Host key for (?P<host>\S+) has changed")
_OFFENDING = re.compile(r"Offending \S+ key in (?P<file>.+):(?P<line>\d+)")

_TROUBLES: tuple[tuple[str, str, str], ...] = (
    ("could not resolve", "no such host name", "correct the node's `ssh:` in the cluster file, or add the name to DNS"),
    ("name or service not known", "no such host name", "correct the node's `ssh:` in the cluster file"),
    ("connection refused", "connection refused", "is sshd running there, on this port? `systemctl status ssh` on it"),
    ("timed out", "no answer in time", "is the machine on and on this network? try `ping`; a firewall drops silently"),
    ("no route to host", "no route to host", "is the machine on and on this network? try `ping`"),
    ("network is unreachable", "network unreachable", "this machine has no way to that network: check its own link"),
    ("permission denied", "it accepts none of your keys", "load the key (`ssh-add`) or install it: `{copy_id}`"),
    ("too many authentication failures", "it accepts none of your keys", "name the key by IdentityFile in ssh_config"),
    ("bad configuration option", "ssh's configuration is broken", "correct the file and line named above"),
    ("bad owner or permissions", "ssh refuses a file's permissions", "`chmod 600` the file named above"),
    ("can't open user config file", "the ssh config file cannot be read", "correct --ssh-config"),
)


def translate(node: str, destination: str, stderr: str, ssh: str) -> Unreachable:
    """The error for a connection that was not made. ssh: how the user would call it by hand."""
    if changed := _OFFENDING.search(stderr):
        named = _CHANGED.search(stderr)
        host = named["host"] if named else destination.rpartition("@")[2]
        return _changed(node, changed["file"], changed["line"], host)
    if "Host key verification failed" in stderr:
        hint = f"run `{ssh}` once, compare the fingerprint with the one on the node's console, and accept it"
        return Unreachable(node, f"its host key is not known here ({destination})", hint)
    detail = _last_line(stderr)
    for words, what, hint in _TROUBLES:
        if words in stderr.lower():
            advice = hint.format(copy_id=ssh.replace("ssh", "ssh-copy-id", 1))
            return Unreachable(node, f"{what} ({detail})", advice)
    return Unreachable(node, f"no ssh connection to {destination}: {detail}", f"try `{ssh}` by hand")


def broken(node: str, stderr: str) -> Unreachable:
    """The error for a connection that ended while a command ran."""
    hint = "the command may still be running there: look again when the node answers"
    return Unreachable(node, f"connection lost while a command ran ({_last_line(stderr)})", hint)


def _changed(node: str, file: str, line: str, host: str) -> Unreachable:
    message = f"the host key of {host} has CHANGED: it is not the one in {file} line {line}"
    remove = shlex.join(("ssh-keygen", "-f", file, "-R", host))
    hint = (
        "either the machine was reinstalled or the connection is intercepted. First verify the new fingerprint on the "
        f"node's console (`ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub`); only then remove the old one: `{remove}`"
    )
    return Unreachable(node, message, hint, f"verify the new key, then `{remove}` and the same `sparkwright up`")


def _last_line(stderr: str) -> str:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    return lines[-1] if lines else "no output of ssh"
