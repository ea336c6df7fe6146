"""Verification of this process's own files on a head, by the manifest of its bundle."""

import asyncio
import hashlib
from asyncio.subprocess import DEVNULL
from pathlib import Path

import sparkwright
from sparkwright.remote.service import RESTORE

MANIFEST = "MANIFEST"
"""File of a bundle's folder: sha256 of each file."""
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


async def restore_files(home: Path, folder: Path = FOLDER) -> bool:
    """Run what restores the bundle's files before each start of a program; True if all are whole afterwards.

    home: of the program; its script is there, or in the folder of the standby that the home is a copy in.
    """
    script = next((one / RESTORE for one in (home, *home.parents) if (one / RESTORE).is_file()), None)
    if script is None:
        return False
    words = ("sh", str(script), str(folder))
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
