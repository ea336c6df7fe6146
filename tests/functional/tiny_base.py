"""A base image out of this machine's own programs: sh, git, Python and pip with their libraries, and nothing more."""

import io
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterable
from pathlib import Path

TOOLS = ("sh", "cat", "ls", "ln", "rm", "mkdir", "grep", "sed", "basename", "dirname", "uname", "sleep", "env", "expr")
PROGRAMS = (*TOOLS, "tr", "head", "wc", "find", "chmod", "id", "true", "false", "git", "git-upload-pack")
PYTHON = Path("/usr/bin/python3")
MODULES = ("pip",)
GIT_CORE = Path("/usr/lib/git-core")


def obstacle() -> str:
    """The reason why no base can be made here; '' if one can."""
    lacking = [name for name in (*PROGRAMS, "ldd") if not shutil.which(name)]
    absent = [str(path) for path in (PYTHON, GIT_CORE) if not path.exists()]
    return f"a base image needs {', '.join(lacking + absent)}" if lacking or absent else ""


def libraries(programs: Iterable[Path]) -> set[Path]:
    found: set[Path] = set()
    for program in programs:
        listing = subprocess.run(["ldd", str(program)], capture_output=True, text=True).stdout
        found |= {Path(path) for path in re.findall(r"(/\S+) \(0x", listing)}
    return found


def base_image(repository: Path) -> bytes:
    """A tar for `docker import`, with the repository at /repo."""
    programs = [Path(shutil.which(name) or name) for name in PROGRAMS]
    extensions = list(Path("/usr/lib/python3.11/lib-dynload").glob("*.so"))
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path in programs:
            tar.add(path.resolve(), f"bin/{path.name}")
        tar.add(PYTHON.resolve(), "usr/bin/python3")
        for path in libraries([*programs, PYTHON, *extensions]):
            tar.add(path.resolve(), str(path).lstrip("/"))
        tar.add("/usr/lib/python3.11", "usr/lib/python3.11", filter=_no_tests)
        tar.add(GIT_CORE, "usr/lib/git-core", filter=_scripts)
        for site, name in _modules():
            tar.add(site / name, f"usr/lib/python3/dist-packages/{name}", filter=_no_tests)
        tar.add(repository, "repo")
        for folder in ("tmp", "root", "etc", "usr/src"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777
            tar.addfile(entry)
    return buffer.getvalue()


def _modules() -> list[tuple[Path, str]]:
    """pip and what wheels are built with, from the Python that the tests' venv is made of."""
    roots = [Path(sys.base_prefix) / f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"]
    roots += [Path("/usr/lib/python3/dist-packages")]
    found = {}
    for root in roots:
        for name in MODULES:
            for path in (*root.glob(name), *root.glob(f"{name}-*.dist-info")):
                found.setdefault(re.sub(r"-.*", ".dist-info", path.name), (root, path.name))
    return list(found.values())


def _no_tests(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if re.search(r"/(__pycache__|test|tests|idlelib|lib2to3|config-3.*)(/|$)", entry.name) else entry


def _scripts(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return entry if entry.isdir() or entry.name.endswith(("git-submodule", "git-sh-setup", "git-sh-i18n")) else None
