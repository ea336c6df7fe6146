"""The engine's image for the nested dockerds, put together by hand: the same digest on every node, and only the layer
with sparkwright's source travels when just that has changed. (`docker load` opens no layer that it already holds.)
"""

import functools
import hashlib
import importlib.util
import io
import json
import marshal
import os
import platform
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from testbed.programs import program_files
from testbed.rootfs import HOME, PYTHON
from testbed.settings import REPOSITORY

ENGINE_IMAGE = "sparkwright/twin:dev"
BASE_IMAGE = "sparkwright/testbed-base:dev"  # holds the layer when a test removes the engine's image
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
EPOCH = "2026-01-01T00:00:00Z"
PATH = f"/{HOME}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class LayeredImage:
    name: str
    config: bytes
    layers: tuple[str, ...]  # sha256 of the uncompressed tars

    @property
    def id(self) -> str:
        return "sha256:" + hashlib.sha256(self.config).hexdigest()


def make_image(name: str, *layers: str) -> LayeredImage:
    digests = [f"sha256:{layer}" for layer in layers]
    config = {
        "architecture": ARCHITECTURES.get(platform.machine(), platform.machine()),
        "os": "linux",
        "created": EPOCH,
        "config": {"Env": [f"PATH={PATH}"], "WorkingDir": "/", "Cmd": ["python3"]},
        "rootfs": {"type": "layers", "diff_ids": digests},
        "history": [{"created": EPOCH, "comment": "sparkwright testbed"} for _ in digests],
    }
    return LayeredImage(name, json.dumps(config, sort_keys=True).encode(), layers)


@functools.cache
def file_digest(path: Path) -> str:
    """Kept next to the file, which never changes once it is there."""
    note = path.with_suffix(".sha256")
    if not note.exists():
        mine = path.with_suffix(f".{os.getpid()}")
        with path.open("rb") as file:
            mine.write_text(hashlib.file_digest(file, "sha256").hexdigest())
        mine.rename(note)
    return note.read_text()


def source_layer() -> bytes:
    """sparkwright's source and what depends on it, as a tar with nothing in it that differs from run to run."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path, content in source_files():
            entry = tarfile.TarInfo(f"{HOME}/src/{path}")
            entry.size, entry.mode = len(content), 0o644
            tar.addfile(entry, io.BytesIO(content))
        for name, content, mode in program_files():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), mode
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def source_files() -> Iterator[tuple[Path, bytes]]:
    """The source with byte code that needs no time stamps, if this Python writes what the nodes' Python reads."""
    root = REPOSITORY / "src"
    for path in sorted(root.rglob("*")):
        if not path.is_file() or "__pycache__" in path.parts:
            continue
        content, relative = path.read_bytes(), path.relative_to(root)
        yield relative, content
        if path.suffix == ".py" and f"{sys.version_info.major}.{sys.version_info.minor}" == PYTHON:
            cached = byte_code(content, f"/{HOME}/src/{relative}")
            if cached:
                yield relative.parent / "__pycache__" / f"{path.stem}.cpython-{PYTHON.replace('.', '')}.pyc", cached


def byte_code(source: bytes, filename: str) -> bytes:
    """An unchecked hash-based pyc (PEP 552); nothing for a file that does not compile."""
    try:
        code = compile(source, filename, "exec", dont_inherit=True)
    except SyntaxError:
        return b""
    return importlib.util.MAGIC_NUMBER + (0b01).to_bytes(4, "little") + bytes(8) + marshal.dumps(code)


def write_archive(target: Path, images: list[LayeredImage], blobs: dict[str, Path | bytes]) -> None:
    """Writes the archive for `docker load`; `blobs` are the layers that the daemon does not hold yet."""
    manifest = [
        {
            "Config": f"{one.id[7:]}.json",
            "RepoTags": [one.name],
            "Layers": [f"{layer}/layer.tar" for layer in one.layers],
        }
        for one in images
    ]
    with tarfile.open(target, "w") as tar:
        add_bytes(tar, "manifest.json", json.dumps(manifest).encode())
        for one in images:
            add_bytes(tar, f"{one.id[7:]}.json", one.config)
        for digest, blob in blobs.items():
            if isinstance(blob, Path):
                tar.add(blob, f"{digest}/layer.tar")
            else:
                add_bytes(tar, f"{digest}/layer.tar", blob)


def add_bytes(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    tar.addfile(entry, io.BytesIO(content))
