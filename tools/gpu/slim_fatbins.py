"""Blanks the GPU code of other GPUs in shared libraries, so that they compress better: `slim_fatbins.py SM FILE...`.

A library holds a fat binary for each kernel file, with an entry for each GPU. The driver takes the machine code of its
own generation, else PTX. The bytes that a GPU of SM (90: Hopper) never uses become zero; sizes and offsets stay.
"""

import mmap
import struct
import sys
from collections import Counter
from pathlib import Path

_MAGIC = struct.pack("<I", 0xBA55ED50)
_HEAD = struct.Struct("<IHHQ")
_ELF = 2


def blank_kernels(path: Path, wanted: int) -> Counter[str]:
    """Bytes kept and blanked, by kind and architecture."""
    counted: Counter[str] = Counter()
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as data:
        at = data.find(_MAGIC)
        while at >= 0:
            _, version, header, size = _HEAD.unpack_from(data, at)
            end = at + header + size
            if version != 1 or header != 16 or end > len(data):
                at = data.find(_MAGIC, at + 4)
                continue
            entries = read_entries(data, at + header, end)
            exact = any(kind == _ELF and arch == wanted for kind, arch, _, _ in entries)
            for kind, arch, begin, length in entries:
                kept = arch == wanted if exact or kind == _ELF else arch <= wanted
                counted[f"{'kept' if kept else 'blank'} {'sm' if kind == _ELF else 'ptx'}_{arch}"] += length
                if not kept:
                    data[begin : begin + length] = bytes(length)
            at = data.find(_MAGIC, end)
    return counted


def read_entries(data: mmap.mmap, at: int, end: int) -> list[tuple[int, int, int, int]]:
    """Kind, architecture, first byte and length of each entry's code."""
    found = []
    while at + 64 <= end:
        kind, _, header, size = _HEAD_OF_ENTRY.unpack_from(data, at)
        if kind == 0 or header < 64 or at + header + size > end:
            break
        (arch,) = struct.unpack_from("<I", data, at + 28)
        found.append((kind, arch, at + header, size))
        at += header + size
    return found


_HEAD_OF_ENTRY = struct.Struct("<HHIQ")


def main() -> int:
    wanted = int(sys.argv[1])
    for name in sys.argv[2:]:
        counted = blank_kernels(Path(name), wanted)
        if counted:
            told = ", ".join(f"{what} {size >> 20}" for what, size in sorted(counted.items()))
            print(f"{name}: MiB {told}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
