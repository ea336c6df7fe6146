"""Sizes, durations and other figures, parsed and printed in one way everywhere."""

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


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"


def three_digits(value: float) -> str:
    """Three digits that count: `1,188`, `45.7`, `0.612`."""
    size = abs(value)
    if size >= 100:
        return f"{value:,.0f}"
    if size >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if size >= 0.9995 or not size else f"{value:.3g}"


def exact_number(value: float) -> str:
    """`1,188`, `45.72`: as it was published, without zeros behind the point."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,}"


def grouped(value: float, digits: int = 0) -> str:
    """`1,234`; below ten with `digits` decimals."""
    return f"{value:,.{digits if abs(value) < 10 else 0}f}"


def percent(part: float, fine: bool = False) -> str:
    """`41 %`; with `fine` one decimal below ten."""
    return f"{100 * part:.{1 if fine and part and part < 0.1 else 0}f} %"


def counted(count: int, what: str) -> str:
    """`1 node`, `2 nodes`."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def parse_size(text: str) -> int:
    """Bytes of `64g`, `18.5 GiB`, `20e9`; `k`/`m`/`g`/`t` alone are binary, as in Docker. Raises ValueError."""
    match = re.fullmatch(r"\s*([0-9][0-9._]*(?:[eE]\+?[0-9]+)?)\s*([A-Za-z]*)\s*", text)
    if not match or match[2].lower() not in _UNITS:
        raise ValueError(f"{text!r} is no size: write a number with k, m, g, GiB or GB, as in 64g")
    return int(float(match[1]) * _UNITS[match[2].lower()])
