"""The bundle put into a node's container before its first boot: overlay, fixtures, keys, names. One tar per node."""

import hashlib
import io
import tarfile

from testbed.fixtures import shim_files, sysroot_files
from testbed.keys import HostKeys
from testbed.settings import OVERLAY, USERS, NodeSpec

# Parts of the real machine that a node's fixture tree shows as they are.
PROC_LINKS = ("uptime", "loadavg", "stat", "vmstat", "self", "mounts", "version", "cmdline", "swaps", "net", "cpuinfo")
LINKS = {
    "sys/class/net": "/sys/class/net",
    "proc/sys": "/proc/sys",
    "proc/1": "/proc/1",
    "etc/machine-id": "/etc/machine-id",
    "etc/os-release": "/etc/os-release",
    **{f"proc/{name}": f"/proc/{name}" for name in PROC_LINKS},
}


class ContainerBundle:
    """Collects files for one node; `tar()` is what `docker cp` takes."""

    def __init__(self, spec: NodeSpec, keys: HostKeys) -> None:
        self._spec = spec
        self._keys = keys
        self._tar: tarfile.TarFile

    def tar(self) -> bytes:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as self._tar:
            self._overlay()
            self._identity()
            self._shims()
            self._sysroot()
            for user, uid in USERS.items():
                self._home(user, uid)
        return buffer.getvalue()

    def _file(self, path: str, content: str | bytes, mode: int = 0o644, uid: int = 0) -> None:
        data = content.encode() if isinstance(content, str) else content
        entry = self._entry(path, mode, uid)
        entry.size = len(data)
        self._tar.addfile(entry, io.BytesIO(data))

    def _folder(self, path: str, mode: int, uid: int) -> None:
        entry = self._entry(path, mode, uid)
        entry.type = tarfile.DIRTYPE
        self._tar.addfile(entry)

    def _link(self, path: str, target: str) -> None:
        entry = self._entry(path, 0o777, 0)
        entry.type, entry.linkname = tarfile.SYMTYPE, target
        self._tar.addfile(entry)

    @staticmethod
    def _entry(path: str, mode: int, uid: int) -> tarfile.TarInfo:
        entry = tarfile.TarInfo(path)
        entry.mode, entry.uid, entry.gid = mode, uid, uid
        return entry

    def _overlay(self) -> None:
        for path in sorted(OVERLAY.rglob("*")):
            if path.is_file():
                executable = path.stat().st_mode & 0o100
                name = str(path.relative_to(OVERLAY))
                mode = 0o755 if executable else 0o440 if "sudoers" in name else 0o644
                self._file(name, path.read_bytes(), mode)
        self._link(
            "etc/systemd/system/multi-user.target.wants/node-net.service", "/etc/systemd/system/node-net.service"
        )

    def _identity(self) -> None:
        spec, host_key = self._spec, self._keys.host_key(self._spec).read_bytes()
        self._file("etc/machine-id", hashlib.md5(spec.container.encode()).hexdigest() + "\n", 0o444)
        self._file("etc/testbed/net", "".join(f"{address} {name}\n" for address, name in spec.devices))
        self._file("etc/testbed/host_key", host_key, 0o600)
        self._file("etc/ssh/ssh_host_ed25519_key", host_key, 0o600)
        self._file("etc/ssh/ssh_host_ed25519_key.pub", self._keys.public(self._keys.host_key(spec)))

    def _shims(self) -> None:
        files = shim_files(self._spec)
        tools = sorted({path.split("/")[0] for path in files})
        for tool in tools:
            self._link(f"usr/local/bin/{tool}", "/opt/shims/shim")
        for tool in (*tools, "runc"):
            for name in ("switch", "initial"):
                self._file(f"opt/shims/{tool}/{name}", "real\n" if tool == "uname" else "default\n")
        for path, text in files.items():
            self._file(f"opt/shims/{path}", text)

    def _sysroot(self) -> None:
        for variant, files in sysroot_files(self._spec).items():
            for path, text in files.items():
                self._file(f"opt/fixtures.d/{variant}/{path}", text)
        for path, target in LINKS.items():
            self._link(f"opt/fixtures.d/default/{path}", target)

    def _home(self, user: str, uid: int) -> None:
        home = f"etc/testbed/home/{user}"
        self._folder(home, 0o755, uid)
        self._folder(f"{home}/.ssh", 0o700, uid)
        keys = self._keys
        authorized = keys.public(keys.identity) + (keys.public(keys.between_nodes) if user == "spark" else "")
        self._file(f"{home}/.ssh/authorized_keys", authorized, 0o600, uid)
        if user == "spark":
            self._file(f"{home}/.ssh/id_ed25519", keys.between_nodes.read_bytes(), 0o600, uid)
            self._file(f"{home}/.ssh/known_hosts", keys.known_hosts_text(), 0o644, uid)
