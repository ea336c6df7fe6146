"""Our own source and the pure-Python packages that the program on the head needs, as one archive.

Nothing is installed on a node, and what is compiled here may not fit its processor: compiled parts stay behind, and
tests prove that the program does without.
"""

import gzip
import hashlib
import io
import re
import tarfile
from collections.abc import Iterator
from functools import cached_property
from importlib import metadata
from pathlib import Path

import sparkwright
from sparkwright.adapters.bundle_check import MANIFEST

PACKAGES = ("click", "httpcore", "anyio", "h11", "prometheus-client", "pyyaml", "segno", "starlette", "uvicorn")
_OURS = Path(sparkwright.__file__).parent
# What only the laptop's side runs, or what is compiled from C beside pure Python.
_LEFT_OUT = ("cli", "simulator", "recipes/shipped", "recipes/importers")
_COMPILED = (".so", ".pyd", ".dylib", ".pyc", ".pyi", ".c", ".pyx")
_MAIN = b"from sparkwright.supervisor.__main__ import main\n\nraise SystemExit(main())\n"
_NAME = re.compile(r"[A-Za-z0-9._-]+")


class Bundle:
    """Implements ports.Program."""

    @cached_property
    def digest(self) -> str:
        """16 hex digits of the manifest's sha256: the same wherever the same versions are installed."""
        return hashlib.sha256(self._manifest).hexdigest()[:16]

    @cached_property
    def _manifest(self) -> bytes:
        """List of files in the form that `sha256sum --check` reads."""
        lines = (f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in self._files.items())
        return "".join(lines).encode()

    def archive(self) -> bytes:
        """A tar.gz of a folder that `python3 -I -S FOLDER` runs: `sparkwright` and the packages side by side."""
        packed = io.BytesIO()
        zipped = gzip.GzipFile(fileobj=packed, mode="wb", mtime=0, compresslevel=4)
        with zipped, tarfile.open(fileobj=zipped, mode="w") as tar:
            for name, content in (*self._files.items(), (MANIFEST, self._manifest)):
                entry = tarfile.TarInfo(name)
                entry.size, entry.mode = len(content), 0o644
                tar.addfile(entry, io.BytesIO(content))
        return packed.getvalue()

    @cached_property
    def _files(self) -> dict[str, bytes]:
        found = {name: path for package in _wanted() for name, path in _of(package)} | dict(_ours())
        return {"__main__.py": _MAIN} | {name: path.read_bytes() for name, path in sorted(found.items())}


def _ours() -> Iterator[tuple[str, Path]]:
    for path in _OURS.rglob("*"):
        name = path.relative_to(_OURS).as_posix()
        if path.is_file() and path.suffix not in _COMPILED and not name.startswith(tuple(f"{n}/" for n in _LEFT_OUT)):
            yield f"sparkwright/{name}", path


def _of(package: str) -> Iterator[tuple[str, Path]]:
    """The files of an installed distribution that are Python or data."""
    for file in metadata.files(package) or ():
        name = file.as_posix()
        outside = name.startswith("..") or ".dist-info/" in name or file.suffix in _COMPILED
        if not outside and (path := Path(str(file.locate()))).is_file():
            yield name, path


def _wanted() -> list[str]:
    """PACKAGES and what they need, as far as it is installed: the rest is of other systems."""
    found: list[str] = []
    left = list(PACKAGES)
    while left:
        name = left.pop()
        try:
            needs = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue
        if name.replace("_", "-") not in found:
            found.append(name.replace("_", "-"))
            left += [match[0] for need in needs if "extra ==" not in need and (match := _NAME.match(need))]
    return found
