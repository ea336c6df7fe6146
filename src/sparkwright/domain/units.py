"""Sizes and durations, parsed and printed in one way everywhere."""

import re

KIB = 1024
MIB = 1024**2
GIB = 1024**3
DRAIN_SECONDS = 30.0  # so long a stop that a person asked for waits for requests that are under way
_UNITS = {"": 1, "b": 1, "k": KIB, "kib": KIB, "kb": 1000, "m": MIB, "mib": MIB, "mb": 1000**2}
_UNITS |= {"g": GIB, "gib": GIB, "gb": 1000**3, "t": 1024**4, "tib": 1024**4, "tb": 1000**4}


def gib(count: float) -> str:
    """Bytes as GiB with one decimal: `97.4 GiB`; below 0.1 GiB as MiB."""
    return f"{count / GIB:.1f} GiB" if abs(count) >= GIB / 10 else f"{count / MIB:.1f} MiB"


def duration(seconds: float) -> str:
    """`0.4 s`, `42 s`, `2 min 05 s`, `1 h 03 min`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{int(seconds // 60)} min {int(seconds % 60):02d} s"
    return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60):02d} min"


def parse_size(text: str) -> int:
    """Bytes of `64g`, `18.5 GiB`, `20e9`; `k`/`m`/`g`/`t` alone are binary, as in Docker. Raises ValueError."""
    match = re.fullmatch(r"\s*([0-9][0-9._]*(?:[eE]\+?[0-9]+)?)\s*([A-Za-z]*)\s*", text)
    if not match or match[2].lower() not in _UNITS:
        raise ValueError(f"{text!r} is no size: write a number with k, m, g, GiB or GB, as in 64g")
    return int(float(match[1]) * _UNITS[match[2].lower()])
