"""Builds the two root file systems: what an engine runs in, and, on top of it, a node.

Packages come from the Debian mirror and PyPI, once; the result is stored under a key made of this definition.
"""

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from packaging.markers import Marker

from testbed.settings import REPOSITORY, USERS, ContainerSettings
from testbed.shell import Lock, Say, TestbedError, logged, run, together

SUITE = "bookworm"
PYTHON = "3.11"  # Debian 12's: wheels are chosen for it, whatever Python runs the tests
MIRROR = os.environ.get("SPARKWRIGHT_TESTBED_MIRROR", "http://deb.debian.org/debian")
TOOLS = ("mmdebstrap", "dockerd", "docker", "ssh", "ssh-keygen", "ip", "tar", "setsid", "setpriv", "unshare")
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"  # Ubuntu does not trust Debian's archive by itself

ENGINE_PACKAGES = ("ca-certificates", "libgomp1", "libstdc++6", "openmpi-bin", "procps", "python3")
NODE_PACKAGES = (
    *("systemd", "systemd-sysv", "dbus", "openssh-server", "openssh-client", "sudo"),
    *("docker.io", "docker-compose", "iptables", "iproute2", "iputils-ping", "kmod", "curl", "rsync"),
    *("dbus-user-session", "libpam-systemd", "polkitd"),  # a user's own units, and units that outlive logins
    *("network-manager", "netplan.io"),  # for `init`, whose tests start them
)
# They would take the nodes' addresses away from every other test.
MASKED = ("NetworkManager.service", "NetworkManager-wait-online.service", "systemd-networkd.service")
EXTRAS = ("huggingface-hub", "xllamacpp")  # programs of the nodes, not of the engine image
RAY = ("ray",)  # the real one, for engines that are distributed by it; without what only its other libraries need
RAY_WASTE = ("ray/jars", "ray/rllib", "ray/dashboard/client", "ray/cpp")

# The trees are thrown away when a build fails, so nothing needs to reach the disk at once; nobody reads manuals there.
UNPACK = ("force-unsafe-io", *(f"path-exclude=/usr/share/{name}/*" for name in ("doc", "man", "locale", "info")))
DAY = 86400.0  # seconds
# A build that is killed takes what it has started along, and what it has mounted is in no other namespace.
CONTAINED = ("setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")

HOME = "opt/sparkwright"
ENGINE_PARTS = ("src", "programs/lib", "deps", "ray")  # folders of HOME that the engine's Python sees
SITE = "usr/local/lib/python3.11/dist-packages"


def missing_tools() -> list[str]:
    return [tool for tool in TOOLS if shutil.which(tool) is None]


def requirements() -> tuple[list[str], list[str]]:
    """The requirements of the package, and the pins of uv.lock for the nodes' Python as constraints."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    lock = tomllib.loads((REPOSITORY / "uv.lock").read_text())
    known = [entry for entry in lock["package"] if "registry" in entry["source"]]
    pins = [f"{entry['name']}=={entry['version']}" for entry in known if is_for_nodes(entry)]
    return list(project["dependencies"]), sorted(pins)


def is_for_nodes(entry: Mapping[str, Any]) -> bool:
    """A package whose newest version has left an old Python behind is there once for each side of that."""
    python = {"python_full_version": f"{PYTHON}.0", "python_version": PYTHON}
    markers = entry.get("resolution-markers", ())
    return not markers or any(Marker(marker).evaluate(python) for marker in markers)


def wanted_pins() -> list[str]:
    """Only the pins of what is installed by name: another tool's update is no reason to build again."""
    names = {requirement.split(">")[0].split("=")[0] for requirement in (*requirements()[0], *EXTRAS, *RAY)}
    return [pin for pin in requirements()[1] if pin.split("==")[0] in names]


def definition_key() -> str:
    parts = [Path(__file__).read_text(), json.dumps(wanted_pins()), platform.machine(), MIRROR]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


class Builder:
    """Makes IMAGES/KEY/{engine,node}.tar, or finds them there."""

    def __init__(self, settings: ContainerSettings, say: Say) -> None:
        self.key = definition_key()
        self._say = say
        self._images = settings.images
        self._lock = Lock(settings.images.with_name("images.lock"))
        self._done = self._images / self.key
        self._work = self._images / f"{self.key}.work"
        self._log = settings.root / "build.log"

    @property
    def engine_tar(self) -> Path:
        return self._done / "engine.tar"

    @property
    def node_tar(self) -> Path:
        return self._done / "node.tar"

    def build(self) -> None:
        self._lock.take(self._say)
        try:
            if not self._done.exists():
                self._remove_old()
                self._build()
            os.utime(self._done)
        finally:
            self._lock.release()

    def _remove_old(self) -> None:
        """Remove what an interrupted build left, and images of other versions that no checkout has used for a day."""
        for path in self._images.glob("*"):
            if path.suffix == ".work" or time.time() - path.stat().st_mtime > DAY:
                shutil.rmtree(path, ignore_errors=True)

    def _build(self) -> None:
        self._say(f"building the node image {self.key} (about two minutes, once); log: {self._log}")
        self._work.mkdir(parents=True)
        self._log.unlink(missing_ok=True)
        tree, wheels = self._work / "tree", self._work / "wheels"
        together(lambda step: step(), (lambda: self._bootstrap(tree), lambda: self._wheels(wheels)))
        self._python(tree, wheels)
        self._pack(tree, "engine.tar")
        self._node_packages(tree)
        self._extras(tree, wheels)
        self._pack(tree, "node.tar")
        shutil.rmtree(tree)
        shutil.rmtree(wheels)
        self._work.rename(self._done)

    def _bootstrap(self, tree: Path) -> None:
        self._say(f"mmdebstrap {SUITE} from {MIRROR}")
        include = f"--include={','.join(ENGINE_PACKAGES)}"
        unpack = [f"--dpkgopt={option}" for option in UNPACK]
        keys = [f"--keyring={KEYRING}"] if Path(KEYRING).exists() else []
        words = ["mmdebstrap", "--mode=root", "--variant=minbase", "--format=directory", include, *unpack, *keys]
        logged([*CONTAINED, *words, SUITE, str(tree), MIRROR], self._log, env={"TMPDIR": str(self._work)})

    def _wheels(self, wheels: Path) -> None:
        """Download and unpack Python packages while Debian's are installed."""
        self._say("sparkwright's dependencies, Ray, the hub's client and llama.cpp")
        for name, packages in (("deps", requirements()[0]), ("ray", RAY), ("extra", EXTRAS)):
            self._install(wheels / name, packages)
        for waste in RAY_WASTE:
            shutil.rmtree(wheels / "ray" / waste, ignore_errors=True)

    def _python(self, tree: Path, wheels: Path) -> None:
        """Puts wheels in a folder of their own, not among Debian's packages: the source is put there when it is
        known."""
        (tree / HOME).mkdir(parents=True)
        for name in ("deps", "ray"):
            (wheels / name).rename(tree / HOME / name)
        (tree / SITE).mkdir(parents=True, exist_ok=True)
        (tree / SITE / "sparkwright.pth").write_text("".join(f"/{HOME}/{part}\n" for part in ENGINE_PARTS))
        write_program(tree / "usr/local/bin/sparkwright-twin", simulator_program("/usr/bin/python3"))
        write_program(tree / "usr/local/bin/ray", ray_program("/usr/bin/python3"))
        self._compile(tree, "deps", "ray")

    def _compile(self, tree: Path, *folders: str) -> None:
        """Write byte code, on all CPUs."""
        self._chroot(tree, "python3", "-m", "compileall", "-q", "-j", "0", *(f"/{HOME}/{name}" for name in folders))

    def _node_packages(self, tree: Path) -> None:
        self._say("packages of a node: systemd, sshd, docker")
        self._borrow_apt_settings(tree)
        write_program(tree / "usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n")  # nothing starts in a chroot
        self._chroot(tree, "apt-get", "-q", "update")
        unpack = [word for option in UNPACK for word in ("-o", f"Dpkg::Options::=--{option}")]
        self._chroot(tree, "apt-get", "-qy", "install", "--no-install-recommends", *unpack, *NODE_PACKAGES)
        for user, uid in USERS.items():
            self._chroot(tree, "useradd", "-m", "-u", str(uid), "-s", "/bin/bash", user)
        self._chroot(tree, "usermod", "-aG", "docker", "spark")
        self._chroot(tree, "systemctl", "mask", *MASKED)
        self._forget_identity(tree)

    def _extras(self, tree: Path, wheels: Path) -> None:
        """A venv, as its owner would have it, for engines that run as processes."""
        (wheels / "extra").rename(tree / HOME / "extra")
        (tree / SITE / "sparkwright.pth").unlink()  # a node's own python3 knows nothing of sparkwright
        for name in ("sparkwright-twin", "ray"):
            (tree / "usr/local/bin" / name).unlink()
        venv = tree / HOME
        site = venv / f"lib/python{PYTHON}/site-packages"
        site.mkdir(parents=True)
        (site / "testbed.pth").write_text("".join(f"/{HOME}/{part}\n" for part in (*ENGINE_PARTS, "extra")))
        (venv / "pyvenv.cfg").write_text("home = /usr/bin\ninclude-system-site-packages = false\n")
        (venv / "bin").mkdir()
        for name in ("python", "python3"):
            (venv / "bin" / name).symlink_to("/usr/bin/python3")
        write_program(venv / "bin/sparkwright-twin", simulator_program(f"/{HOME}/bin/python"))
        write_program(venv / "bin/ray", ray_program(f"/{HOME}/bin/python"))
        write_program(venv / "bin/hf", f"#!/{HOME}/bin/python\nfrom huggingface_hub.cli.hf import main\n\nmain()\n")
        (tree / "usr/local/bin/hf").symlink_to(f"/{HOME}/bin/hf")
        self._compile(tree, "extra")

    def _install(self, target: Path, packages: Sequence[str]) -> None:
        constraints = self._work / "constraints.txt"
        constraints.write_text("\n".join(requirements()[1]))
        machine = platform.machine()
        common = ["--target", str(target), "--python-version", PYTHON, "--only-binary", ":all:"]
        common += ["--constraint", str(constraints), *packages]
        if uv := find_uv():
            # a mirror that is named for pip is meant for uv too, as in scripts/setup/bootstrap.py
            mirror = {"UV_DEFAULT_INDEX": index} if (index := os.environ.get("PIP_INDEX_URL")) else {}
            command = [uv, "pip", "install", "--python-platform", f"{machine}-manylinux_2_28", *common]
            logged(command, self._log, env=mirror if "UV_DEFAULT_INDEX" not in os.environ else {})
            return
        tags = [f"--platform={tag}_{machine}" for tag in ("manylinux_2_28", "manylinux_2_17", "manylinux2014")]
        logged([sys.executable, "-m", "pip", "install", "--no-compile", *tags, *common], self._log)

    def _borrow_apt_settings(self, tree: Path) -> None:
        """The machine's proxies and name servers are the only way out, where there are any."""
        for name in ("resolv.conf", "ssl/certs/ca-certificates.crt"):
            if (source := Path("/etc") / name).exists():
                shutil.copyfile(source, tree / "etc" / name)
        if (settings := Path("/etc/apt/apt.conf.d")).is_dir():
            shutil.copytree(settings, tree / "etc/apt/apt.conf.d", dirs_exist_ok=True)

    def _forget_identity(self, tree: Path) -> None:
        """Machine id and host keys are each node's own; two nodes that share them are a known GB10 defect."""
        for path in (tree / "etc/ssh").glob("ssh_host_*"):
            path.unlink()
        (tree / "etc/machine-id").unlink(missing_ok=True)
        (tree / "var/lib/dbus/machine-id").unlink(missing_ok=True)
        (tree / "usr/sbin/policy-rc.d").unlink()

    def _chroot(self, tree: Path, *argv: str) -> None:
        script = 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"'
        environment = ["env", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"]
        command = [*CONTAINED, "sh", "-c", script, str(tree), *argv]
        logged([*environment, *command], self._log)

    def _pack(self, tree: Path, name: str) -> None:
        for waste in ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/man", "usr/share/locale"):
            shutil.rmtree(tree / waste, ignore_errors=True)
        run(["tar", "--numeric-owner", "--exclude=./dev/*", "-C", str(tree), "-cf", str(self._work / name), "."])


def find_uv() -> str | None:
    """The one that `make setup` has fetched, else an installed one that runs (a pyenv shim may not)."""
    candidates = [str(REPOSITORY / ".venv/.bootstrap/uv/bin/uv"), shutil.which("uv")]
    for path in filter(None, candidates):
        if (
            Path(path).exists()
            and subprocess.run([path, "--version"], capture_output=True, check=False).returncode == 0
        ):
            return path
    return None


def write_program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def simulator_program(python: str) -> str:
    return f'#!/bin/sh\nexec {python} -m sparkwright.simulator "$@"\n'


def ray_program(python: str) -> str:
    return f"#!{python}\nfrom ray.scripts.scripts import main\n\nmain()\n"


def require_tools() -> None:
    if missing := missing_tools():
        raise TestbedError(
            f"the testbed needs {', '.join(missing)}: apt-get install mmdebstrap docker.io openssh-client"
        )
