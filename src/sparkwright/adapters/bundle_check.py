"""Verification of this process's own files on a head, by the manifest of its bundle."""

import asyncio
import hashlib
from asyncio.subprocess import DEVNULL
from pathlib import Path

import sparkwright

MANIFEST, ARCHIVE = "MANIFEST", "BUNDLE.tar.gz"
"""Files of a bundle's folder: sha256 of each file, and all files once more."""
FOLDER = Path(sparkwright.__file__).parents[1]
_RESTORED_WITHIN = 60.0


def damaged_files(folder: Path = FOLDER) -> tuple[str, ...]:
    """Names of the bundle's files that are missing or differ from its manifest; the manifest alone if it is damaged.

    () in a folder without a manifest: there sparkwright is installed, not unpacked.
    """
    try:
        manifest = (folder / MANIFEST).read_bytes()
    except OSError:
        return ()
    if hashlib.sha256(manifest).hexdigest()[:16] != folder.name:
        return (MANIFEST,)
    lines = (line.partition("  ") for line in manifest.decode().splitlines())
    return tuple(name for digest, _, name in lines if _sha256(folder / name) != digest)


async def restore_files(folder: Path = FOLDER) -> bool:
    """Unpack the bundle's own archive over its files; True if all are whole afterwards."""
    words = ("tar", "-xzf", str(folder / ARCHIVE), "-C", str(folder))
    process = await asyncio.create_subprocess_exec(*words, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL)
    try:
        async with asyncio.timeout(_RESTORED_WITHIN):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
    return not await asyncio.to_thread(damaged_files, folder)


def _sha256(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""
