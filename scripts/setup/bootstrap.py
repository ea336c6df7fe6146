"""Make `.venv` from uv.lock on a machine that has python3 >= 3.11 and nothing else: no pip, no venv package, no root.

The chain: an installed uv, else uv fetched by pip, else by a pip wheel that came with Python or with Debian, else by
the one that `apt-get download` gets without root. Standard library only; a second run finds its stamp and does nothing.
"""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"
KEEP = VENV / ".bootstrap"  # goes when .venv goes; not in site-packages, where `uv sync` would remove it
PINNED = ROOT / "scripts" / "setup" / "uv.txt"
_RUNTIME = ["--no-dev", "--group", "demo"]  # the command, and the Caddy that `make demo` shows
OLDEST_PYTHON = (3, 11)
OLDEST_UV = (0, 9)  # reads our uv.lock; tried


class SetupError(Exception):
    """A part that could not be set up: found against expected, and the hint."""


def main(arguments: Sequence[str]) -> int:
    """`bootstrap.py [--no-dev]`: with `--no-dev` only what the sparkwright command itself needs."""
    dev = "--no-dev" not in arguments
    try:
        require_python()
        with one_at_a_time():
            if not is_fresh(dev):
                build(dev)
    except SetupError as error:
        print(f"setup: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("setup: stopped; nothing is marked as done, the next run goes on from here", file=sys.stderr)
        return 130
    return 0


def require_python() -> None:
    found = sys.version_info[:2]
    if found < OLDEST_PYTHON:
        raise SetupError(
            f"{sys.executable} is Python {found[0]}.{found[1]}, need {OLDEST_PYTHON[0]}.{OLDEST_PYTHON[1]} or newer; "
            "name a newer one: make setup PYTHON=python3.12"
        )


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Two runs in one checkout wait for each other; the lock dies with the process."""
    with Path(__file__).open("rb") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def is_fresh(dev: bool) -> bool:
    """A full environment also serves who asks for the small one."""
    wanted = [stamp_of(True)] if dev else [stamp_of(True), stamp_of(False)]
    return (VENV / "bin" / "python").exists() and any(
        stamp.exists() and stamp.read_text() == fingerprint() for stamp in wanted
    )


def stamp_of(dev: bool) -> Path:
    return KEEP / ("dev.stamp" if dev else "runtime.stamp")


def fingerprint() -> str:
    """The digest of everything that decides the content of .venv; its place is part of it."""
    from hashlib import sha256

    digest = sha256(str(ROOT).encode())
    for name in ("uv.lock", "pyproject.toml", "scripts/setup/bootstrap.py", "scripts/setup/uv.txt"):
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


def build(dev: bool) -> None:
    print(f"setup: preparing {VENV.relative_to(ROOT)} ({'all tools' if dev else 'what the command needs'})", flush=True)
    stamp_of(dev).unlink(missing_ok=True)
    make_venv()
    sync_packages(find_uv() or fetch_uv(), dev)
    KEEP.mkdir(exist_ok=True)
    stamp_of(dev).write_text(fingerprint())


def make_venv() -> None:
    """`--without-pip` works where Debian's python3-venv is missing: only ensurepip is split off there."""
    if is_usable_venv():
        return
    run([sys.executable, "-m", "venv", "--clear", "--without-pip", str(VENV)], "create .venv")


def is_usable_venv() -> bool:
    """Made for this place (a moved checkout leaves scripts that name the old one), with a Python that still starts."""
    activate = VENV / "bin" / "activate"
    named_here = activate.exists() and str(VENV) in activate.read_text()
    return named_here and command_works([str(VENV / "bin" / "python"), "-c", ""])


def find_uv() -> str | None:
    """An installed uv that is new enough, else the one an earlier run fetched."""
    from shutil import which

    own = str(KEEP / "uv" / "bin" / "uv")
    candidates = [own] if pinned_version() == uv_version(own) else []
    if installed := which("uv"):
        candidates.append(installed)
    return next((path for path in candidates if uv_version(path) >= OLDEST_UV), None)


def pinned_version() -> tuple[int, ...]:
    return numbers(PINNED.read_text(), r"uv==([\d.]+)")


def uv_version(path: str) -> tuple[int, ...]:
    """The version of uv; () if it does not run: PATH has a pyenv shim also for a Python that lacks the tool."""
    try:
        answer = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return numbers(answer.stdout, r"uv ([\d.]+)") if answer.returncode == 0 else ()


def numbers(text: str, pattern: str) -> tuple[int, ...]:
    found = re.search(pattern, text)
    return tuple(int(part) for part in found[1].strip(".").split(".")) if found else ()


def fetch_uv() -> str:
    """Fetched aside and moved when whole. pip checks the pinned hashes and knows the user's index and proxies."""
    from shutil import rmtree
    from tempfile import TemporaryDirectory

    KEEP.mkdir(exist_ok=True)
    with TemporaryDirectory(dir=KEEP, prefix="fetch-") as scratch:
        quiet = ["--quiet", "--disable-pip-version-check", "--root-user-action=ignore"]
        exact = ["--only-binary", ":all:", "--require-hashes", "-r", str(PINNED)]
        run(
            [*find_pip(Path(scratch)), "install", *quiet, *exact, "--target", f"{scratch}/uv"],
            "fetch uv with pip",
            "check the network, or name your mirror: PIP_INDEX_URL=https://... make setup",
            env={"PIP_INDEX_URL": index} if (index := own_index()) else {},
        )
        rmtree(KEEP / "uv", ignore_errors=True)
        Path(scratch, "uv").rename(KEEP / "uv")
    return str(KEEP / "uv" / "bin" / "uv")


def find_pip(scratch: Path) -> list[str]:
    """A pip wheel runs as it is, so none is ever installed."""
    if command_works([sys.executable, "-m", "pip", "--version"]):
        return [sys.executable, "-m", "pip"]
    wheel = next(pip_wheels(), None) or download_pip(scratch)
    return [sys.executable, f"{wheel}/pip"]


def pip_wheels() -> Iterator[Path]:
    from sysconfig import get_path

    yield from Path(get_path("stdlib"), "ensurepip", "_bundled").glob("pip-*.whl")
    yield from Path("/usr/share/python-wheels").glob("pip-*.whl")


def download_pip(scratch: Path) -> Path:
    """Debian and Ubuntu: the package of pip's wheel, fetched and unpacked without root and without being installed."""
    from shutil import which

    hint = "check the network, or install pip or uv by other means (as root on Debian: apt-get install python3-pip)"
    if not (which("apt-get") and which("dpkg-deb")):
        raise SetupError(f"{sys.executable} has no pip, and there is neither uv nor apt-get to get it with; {hint}")
    private = [f"-oDir::State::Lists={scratch}/lists", f"-oDir::Cache={scratch}/cache", "-oAPT::Sandbox::User="]
    if not command_works(["apt-get", "-qq", "download", "python3-pip-whl"], scratch):
        for folder in ("lists", "cache/archives"):
            (scratch / folder / "partial").mkdir(parents=True)
        run(["apt-get", "-qq", *private, "update"], "read Debian's package lists", hint, cwd=scratch)
        run(["apt-get", "-qq", *private, "download", "python3-pip-whl"], "download python3-pip-whl", hint, cwd=scratch)
    for package in scratch.glob("python3-pip-whl_*.deb"):
        run(["dpkg-deb", "-x", str(package), str(scratch)], f"unpack {package.name}", hint)
    wheels = list(scratch.glob("usr/share/python-wheels/pip-*.whl"))
    if not wheels:
        raise SetupError(f"python3-pip-whl holds no pip wheel; {hint}")
    return wheels[0]


def sync_packages(uv: str, dev: bool) -> None:
    """Exactly what uv.lock pins. A mirror makes `uv sync --locked` refuse the lock, so then its hashes are the pin."""
    env = {"UV_PYTHON_DOWNLOADS": "never", "UV_PROJECT_ENVIRONMENT": str(VENV), "VIRTUAL_ENV": str(VENV)}
    hint = "check the network (and SSL_CERT_FILE where a proxy signs its own certificates), then run it again"
    if index := own_index():
        sync_from_mirror(uv, dev, {**env, "UV_DEFAULT_INDEX": index, "UV_INDEX_URL": ""}, hint)
        return
    only = [] if dev else [*_RUNTIME, "--inexact"]
    quiet = [] if sys.stderr.isatty() else ["--quiet"]
    run([uv, "sync", "--locked", *quiet, *only], "install the locked packages", hint, env=env)


def sync_from_mirror(uv: str, dev: bool, env: dict[str, str], hint: str) -> None:
    only = [] if dev else _RUNTIME
    locked = KEEP / "locked.txt"
    KEEP.mkdir(exist_ok=True)
    export = [uv, "export", "--frozen", "--quiet", "--no-emit-project", *only, "--output-file", str(locked)]
    run(export, "read uv.lock", hint, env=env)
    install = [uv, "pip", "install", "--quiet", "--require-hashes", "-r", str(locked)]
    run(install, f"install the locked packages from {env['UV_DEFAULT_INDEX']}", hint, env=env)
    run([uv, "pip", "install", "--quiet", "--no-deps", "-e", str(ROOT)], "install sparkwright itself", hint, env=env)


def install_group(name: str) -> None:
    """Add what uv.lock pins for one more dependency group; the next `make setup` may remove it again."""
    uv, locked = find_uv() or fetch_uv(), KEEP / f"{name}.txt"
    env = {"UV_PYTHON_DOWNLOADS": "never", "VIRTUAL_ENV": str(VENV)}
    if index := own_index():
        env |= {"UV_DEFAULT_INDEX": index, "UV_INDEX_URL": ""}
    export = [
        uv,
        "export",
        "--frozen",
        "--quiet",
        "--no-emit-project",
        "--only-group",
        name,
        "--output-file",
        str(locked),
    ]
    run(export, "read uv.lock", env=env)
    run([uv, "pip", "install", "--quiet", "--require-hashes", "-r", str(locked)], f"install the group {name}", env=env)


def own_index() -> str | None:
    names = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL")
    return next((os.environ[name] for name in names if os.environ.get(name)), None)


def command_works(command: Sequence[str], cwd: Path = ROOT) -> bool:
    try:
        return subprocess.run(command, capture_output=True, cwd=cwd).returncode == 0
    except OSError:
        return False


def run(
    command: Sequence[str], what: str, hint: str = "see above", cwd: Path = ROOT, env: dict[str, str] | None = None
) -> None:
    """The tool's own output goes to the terminal; what could not be done and the hint come after them."""
    try:
        status = subprocess.run(command, cwd=cwd, env={**os.environ, **(env or {})}).returncode
    except OSError as error:
        raise SetupError(f"could not {what}: {error}; {hint}") from error
    if status in (130, -2):
        raise KeyboardInterrupt
    if status:
        raise SetupError(f"could not {what}: {Path(command[0]).name} ended with {status}; {hint}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
