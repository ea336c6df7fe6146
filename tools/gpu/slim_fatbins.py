"""Blanks the GPU code of other GPUs in shared libraries, so that they compress better: `slim_fatbins.py SM FILE...`.

`--without half_t,float_e4m3_t` blanks kernels of those types, too: what is left serves models in bfloat16 only.
A library holds a fat binary for each kernel file, with an entry for each GPU. The driver takes the machine code of its
own generation, else PTX. The bytes that a GPU of SM (90: Hopper) never uses become zero; sizes and offsets stay.
"""

import argparse
import mmap
import re
import struct
import subprocess
from collections import Counter
from pathlib import Path

_MAGIC = struct.pack("<I", 0xBA55ED50)
_HEAD = struct.Struct("<IHHQ")
_ELF = 2
_ZSTD = b"\x28\xb5\x2f\xfd"
_KERNEL = re.compile(rb"_Z\w*device_kernel\w{1,900}")


def blank_kernels(path: Path, wanted: int, without: tuple[bytes, ...] = ()) -> Counter[str]:
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
                if kept and without:
                    kept = not any(name in first_kernel(data[begin : begin + length]) for name in without)
                counted[f"{'kept' if kept else 'blank'} {'sm' if kind == _ELF else 'ptx'}_{arch}"] += length
                if not kept:
                    data[begin : begin + length] = bytes(length)
            at = data.find(_MAGIC, end)
    return counted


def first_kernel(code: bytes) -> bytes:
    """Name of the first CUTLASS kernel of an entry; empty without one."""
    if code.startswith(_ZSTD):
        code = subprocess.run(["zstd", "-dc"], input=code, capture_output=True).stdout
    found = _KERNEL.search(code)
    return found.group(0) if found else b""


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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sm", type=int, help="90: Hopper")
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--without", default="", help="types in kernels' names, by commas")
    args = parser.parse_args()
    without = tuple(name.encode() for name in args.without.split(",") if name)
    for path in args.files:
        counted = blank_kernels(path, args.sm, without)
        if counted:
            told = ", ".join(f"{what} {size >> 20}" for what, size in sorted(counted.items()))
            print(f"{path}: MiB {told}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
