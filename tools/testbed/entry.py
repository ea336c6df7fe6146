"""The way into a node's container: what `docker exec` does, at a tenth of its CPU time.

A test asks its nodes some fifty times; each `docker exec` takes a client, a call of dockerd, containerd and runc.
"""

import contextlib
import json
import re
from pathlib import Path

from testbed.daemon import Daemon

CGROUPS = Path("/sys/fs/cgroup")
# The process goes where those of the container are (so it is frozen and killed with them), then into its namespaces.
_ENTER = """p=$1; shift; while [ "$1" != -- ]; do echo 0 2>/dev/null >"$1/cgroup.procs"; shift; done; shift
exec nsenter -a -t "$p" setpriv "$@\""""


class WayIn:
    """Finds the container's first process again after each start of it."""

    def __init__(self, container: str, daemon: Daemon) -> None:
        self._container = container
        self._daemon = daemon
        self._first = 0
        self._began = ""
        self._groups: list[Path] = []
        self._bounds: list[str] = []
        self.environment: dict[str, str] = {}

    def words(self, user: str) -> list[str]:
        """The command line up to the program's; none where the container does not run or is frozen."""
        if not self._found() or self._is_frozen():
            return []
        identity = [] if user == "root" else ["--reuid", user, "--regid", user, "--init-groups"]
        return ["sh", "-c", _ENTER, "sh", str(self._first), *map(str, self._groups), "--", *self._bounds, *identity]

    def first_process(self) -> int:
        """The number by which this machine knows the container's process 1; 0 while it does not run."""
        return self._first if self._found() else 0

    def _found(self) -> bool:
        if self._first and start_of(self._first) == self._began:
            return True
        form = "[{{.State.Pid}}, {{json .Config.Env}}, {{json .Config.Hostname}}]"
        self._first, given, name = json.loads(self._daemon.docker("inspect", "--format", form, self._container))
        self._began = start_of(self._first)
        if not self._began:
            return False
        usual = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        self.environment = {"PATH": usual, "HOSTNAME": name, **dict(one.split("=", 1) for one in given)}
        self._groups = groups_of(self._first)
        beyond = capabilities("self") & ~capabilities(str(self._first))
        names = [f"-cap_{bit}" for bit in range(beyond.bit_length()) if beyond >> bit & 1]
        self._bounds = ["--bounding-set", ",".join(names)] if names else ["--inh-caps", "-all"]
        return True

    def _is_frozen(self) -> bool:
        told = [read(group / name) for group in self._groups for name in ("freezer.state", "cgroup.freeze")]
        return not {"FROZEN", "FREEZING", "1"}.isdisjoint(told)


def start_of(pid: int) -> str:
    """Clock ticks between this machine's boot and the process's start; empty if there is none."""
    fields = read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split() if pid else []
    return fields[19] if len(fields) > 19 else ""


def capabilities(process: str) -> int:
    """The set that a process and what it starts can have at most; empty if the process has ended."""
    bound = re.search(r"^CapBnd:\s*([0-9a-f]+)", read(Path(f"/proc/{process}/status")), re.MULTILINE)
    return int(bound[1], 16) if bound else 0


def groups_of(pid: int) -> list[Path]:
    """The folders of the container's cgroups: of version 1 its own, of version 2 that of its first process."""
    found = []
    for line in read(Path(f"/proc/{pid}/cgroup")).splitlines():
        number, controllers, path = line.split(":", 2)
        if number != "0":
            found.append(CGROUPS / controllers.removeprefix("name=") / path.removesuffix("/init.scope").lstrip("/"))
        else:
            root = CGROUPS / "unified"
            found.append((root if root.is_dir() else CGROUPS) / path.lstrip("/"))
    return [folder for folder in found if folder.is_dir()]


def read(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text().strip()
    return ""
