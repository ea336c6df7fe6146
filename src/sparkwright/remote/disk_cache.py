"""The folder of an engine's KV cache on a node: kept within its size, and looked at."""

from sparkwright.domain.command import Command
from sparkwright.remote.host import script, texts

_sh = texts(__name__)


def prune_disk_cache(folder: str, size: int) -> Command:
    """Removes the oldest files of a cache that is larger than `size` bytes. No rank may use it meanwhile."""
    return script(_sh("prune"), folder, str(size), timeout=90, changes=f"keep {folder} within its size")


def disk_cache_usage(folder: str) -> Command:
    """Prints `used BYTES FREE`, `gone` or `read-only`."""
    return script(_sh("usage"), folder, timeout=40)
