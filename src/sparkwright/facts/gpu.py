"""GPUs and their processes from nvidia-smi's query tables.

A cell that is no number (`[N/A]`, `N/A`, `Not Supported`, empty, in any language or padding) is Unknown with that
text. A line that is no row of the table (`NVIDIA-SMI has failed ...`, `No devices were found`) is never a GPU,
whatever the exit code: both have been seen with exit 0.
"""

import re

from sparkwright.domain.command import Completed
from sparkwright.domain.facts import Gpu, GpuProcess, Unknown
from sparkwright.domain.units import MIB
from sparkwright.facts.fact import Fact, decimal, not_understood, whole
from sparkwright.remote import gpu

_UNAVAILABLE = re.compile(r"\[.*\]|N/A|Not Supported|", re.IGNORECASE)
_ALIASES = {"clocks.current.sm": "clocks.sm", "used_memory": "used_gpu_memory"}
Row = dict[str, str]


def parse_gpus(done: Completed) -> tuple[Gpu, ...] | Unknown:
    """One per row that names a GPU and its driver; Unknown when there is none, also when nvidia-smi exits 0."""
    rows = _rows(done.stdout, gpu.GPU_FIELDS)
    found = tuple(_gpu(row) for row in rows if _named(row.get("name", "")) and _named(row.get("driver_version", "")))
    return found if found and len(found) == len(rows) else not_understood(done, "nvidia-smi")


def parse_processes(done: Completed) -> tuple[GpuProcess, ...] | Unknown:
    """Processes with GPU memory, () when there is none. Given on GB10 although the GPU's totals are not."""
    lines = [line for line in done.stdout.splitlines() if line.strip() and not _is_header(line, gpu.PROCESS_FIELDS)]
    found = [_process(line) for line in lines]
    read = tuple(process for process in found if process)
    return read if done.ok and len(read) == len(lines) else not_understood(done, "nvidia-smi")


def _rows(text: str, fields: tuple[str, ...]) -> list[Row]:
    lines = [line for line in text.splitlines() if line.strip()]
    if lines and _is_header(lines[0], fields):
        fields, lines = _header(lines[0]), lines[1:]
    cells = [[cell.strip() for cell in line.split(",")] for line in lines]
    return [dict(zip(fields, row, strict=True)) for row in cells if len(row) == len(fields)]


def _header(line: str) -> tuple[str, ...]:
    """Field names of `name, memory.total [MiB], ...`: the table says itself what its columns are."""
    names = (cell.partition("[")[0].strip() for cell in line.split(","))
    return tuple(_ALIASES.get(name, name) for name in names)


def _is_header(line: str, fields: tuple[str, ...]) -> bool:
    return _header(line)[0] in fields


def _gpu(row: Row) -> Gpu:
    total = _number(row, "memory.total")
    return Gpu(
        name=row["name"],
        driver=row["driver_version"],
        compute_capability=_text(row, "compute_cap"),
        memory_total=int(total * MIB) if isinstance(total, float) else total,
        temperature_c=_number(row, "temperature.gpu"),
        power_w=_number(row, "power.draw"),
        sm_clock_mhz=_number(row, "clocks.sm"),
        utilization=_number(row, "utilization.gpu"),
    )


def _process(line: str) -> GpuProcess | None:
    """pid first, memory last: a program's path between them may hold commas."""
    first, _, rest = line.partition(",")
    name, comma, last = rest.rpartition(",")
    pid = whole(first.strip())
    if pid is None or not comma:
        return None
    used = _number({"used": last.strip()}, "used")
    return GpuProcess(pid, name.strip(), int(used * MIB) if isinstance(used, float) else used)


def _named(cell: str) -> bool:
    return not _UNAVAILABLE.fullmatch(cell)


def _text(row: Row, field: str) -> str | Unknown:
    cell = row.get(field, "")
    return cell if _named(cell) else Unknown(cell, f"nvidia-smi does not tell {field}")


def _number(row: Row, field: str) -> float | Unknown:
    """The number of a cell such as `12.61 W`, `2418 MHz`, `2 %`, `43`."""
    cell = row.get(field, "")
    value = decimal(cell.partition(" ")[0])
    return Unknown(cell, f"nvidia-smi does not tell {field}") if value is None else value


GPUS: Fact[tuple[Gpu, ...]] = Fact(gpu.gpus(), parse_gpus)
GPU_PROCESSES: Fact[tuple[GpuProcess, ...]] = Fact(gpu.processes(), parse_processes)
