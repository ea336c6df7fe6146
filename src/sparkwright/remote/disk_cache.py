"""The folder of an engine's KV cache on a node: kept within its size, and looked at."""

from sparkwright.domain.command import Command
from sparkwright.remote.host import filled, script, script_texts

_sh = script_texts(__name__)
IS_AWAY = 73
"""Exit code of `prepare_disk_cache` where the folder cannot be used."""


def prepare_disk_cache(folder: str, size: int, written_by_us: bool = True) -> Command:
    """Makes the folder, and removes the oldest files of a cache that is larger than `size` bytes.

    Exit IS_AWAY with the reason if it cannot be made or, unless another user writes it, be written. No rank may use it
    meanwhile.
    """
    words = (folder, str(size), "w" if written_by_us else "")
    return script(
        filled(_sh("prepare", "prune"), AWAY=str(IS_AWAY)),
        *words,
        timeout=110,
        changes=f"keep {folder} within its size",
    )


def saved_slots(folder: str) -> Command:
    """Prints `slots` and the names of files that hold a slot of llama.cpp; nothing where the folder cannot be read."""
    return script(_sh("slots"), folder, timeout=40)


def rename_slot(folder: str, old: str, new: str) -> Command:
    """Exit 0 once the file has its new name, on the disk, too."""
    return script(_sh("rename"), folder, old, new, timeout=120, changes=f"rename {folder}/{old} to {new}")


def disk_cache_usage(folder: str) -> Command:
    """Prints `used BYTES FREE`, `gone` or `read-only`."""
    return script(_sh("usage"), folder, timeout=40)
