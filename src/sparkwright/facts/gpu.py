"""GPUs and their processes from nvidia-smi's query tables.

A cell that is no number (`[N/A]`, `N/A`, `Not Supported`, empty, in any language or padding) is Unknown with that
text. A line that is no row of the table (`NVIDIA-SMI has failed ...`, `No devices were found`) is never a GPU,
whatever the exit code: both have been seen with exit 0.
"""

import re
from collections.abc import Iterator

from sparkwright.domain.command import Command, Completed
from sparkwright.domain.facts import Driver, Gpu, GpuProcess, Unknown
from sparkwright.domain.units import MIB
from sparkwright.facts.fact import Fact, decimal, first_line, found_or, not_understood, sections, whole_number
from sparkwright.remote.host import script, script_texts

_sh = script_texts(__name__)

_HEALTH = ("temperature.gpu", "power.draw", "clocks.sm", "utilization.gpu")
GPU_FIELDS = ("name", "driver_version", "compute_cap", "memory.total", *_HEALTH)
# Since driver 510; an older nvidia-smi answers nothing at all when it is asked for a field that it does not know.
_RESERVED = "memory.reserved"
PROCESS_FIELDS = ("pid", "process_name", "used_gpu_memory")
# A driver that waits for a dead GSP answers after some 6 s for each call.
_TIMEOUT = 20.0
_UNAVAILABLE = re.compile(r"\[.*\]|N/A|Not Supported|", re.IGNORECASE)
_ALIASES = {"clocks.current.sm": "clocks.sm", "used_memory": "used_gpu_memory"}
Row = dict[str, str]
_VERSION = re.compile(r"[0-9]+(?:\.[0-9]+)+", re.ASCII)
_PERSISTENCE = {"Enabled": True, "Disabled": False}
# `Idle`, `SW Power Cap` and the like belong to every GPU at rest; these mean that something is wrong.
_SLOWDOWN = re.compile(r"(HW (?:Thermal |Power Brake )?Slowdown|SW Thermal Slowdown)\s*", re.ASCII)


def parse_gpus(done: Completed) -> tuple[Gpu, ...] | Unknown:
    """One per row that names a GPU and its driver; Unknown when there is none, also when nvidia-smi exits 0."""
    rows = _rows(done.stdout, (*GPU_FIELDS, _RESERVED))
    rows = rows or _rows(done.stdout, GPU_FIELDS)
    found = tuple(_gpu(row) for row in rows if _named(row.get("name", "")) and _named(row.get("driver_version", "")))
    return found if found and len(found) == len(rows) else not_understood(done, "nvidia-smi")


def parse_processes(done: Completed) -> tuple[GpuProcess, ...] | Unknown:
    """Processes with GPU memory, () when there is none. Given on GB10 although the GPU's totals are not."""
    lines = [line for line in done.stdout.splitlines() if line.strip() and not _is_header(line, PROCESS_FIELDS)]
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
    """Field names of `name, memory.total [MiB], ...`: the table names its columns."""
    names = (cell.partition("[")[0].strip() for cell in line.split(","))
    return tuple(_ALIASES.get(name, name) for name in names)


def _is_header(line: str, fields: tuple[str, ...]) -> bool:
    return _header(line)[0] in fields


def _gpu(row: Row) -> Gpu:
    return Gpu(
        name=row["name"],
        driver=row["driver_version"],
        compute_capability=_text(row, "compute_cap"),
        memory_total=_bytes(row, "memory.total"),
        temperature_c=_number(row, "temperature.gpu"),
        power_w=_number(row, "power.draw"),
        sm_clock_mhz=_number(row, "clocks.sm"),
        utilization=_number(row, "utilization.gpu"),
        memory_reserved=_bytes(row, _RESERVED),
    )


def _process(line: str) -> GpuProcess | None:
    """pid first, memory last: a program's path between them may hold commas."""
    first, _, rest = line.partition(",")
    name, comma, last = rest.rpartition(",")
    pid = whole_number(first.strip())
    if pid is None or not comma:
        return None
    return GpuProcess(pid, name.strip(), _bytes({"used": last.strip()}, "used"))


def _named(cell: str) -> bool:
    return not _UNAVAILABLE.fullmatch(cell)


def _text(row: Row, field: str) -> str | Unknown:
    cell = row.get(field, "")
    return cell if _named(cell) else Unknown(cell, f"nvidia-smi does not report {field}")


def _number(row: Row, field: str) -> float | Unknown:
    """The number of a cell such as `12.61 W`, `2418 MHz`, `2 %`, `43`."""
    cell = row.get(field, "")
    return found_or(decimal(cell.partition(" ")[0]), cell, f"nvidia-smi does not report {field}")


def _bytes(row: Row, field: str) -> int | Unknown:
    """The bytes of a cell such as `143771 MiB`."""
    found = _number(row, field)
    return int(found * MIB) if isinstance(found, float) else found


def _query(table: str, *fields: str) -> Command:
    """CSV with a header, one row for each GPU or process. fields: all that are wanted, then those that any driver has,
    which are asked for alone where it does not know one of the others."""
    return script(_sh("query"), *(f"--query-{table}={one}" for one in fields), timeout=_TIMEOUT)


def parse(done: Completed) -> Driver | Unknown:
    """Unknown only when nothing has a version: with a dead GPU the loaded module is still known from /proc."""
    parts = sections(done.stdout)
    listed = parts.get("nvidia-smi", "")
    # From /proc/driver/nvidia/version: the first dotted number of the `NVRM version` line.
    lines = parts.get("module", "").splitlines()
    found = _VERSION.search(next((line for line in lines if line.startswith("NVRM version:")), ""))
    version = _field(listed, "Driver Version") or (found[0] if found else None)
    firmware = _field(listed, "GSP Firmware Version")
    if version is None and firmware is None:
        return not_understood(done, "nvidia-smi")
    said = first_line(Completed(done.exit_code, listed, done.stderr))
    return Driver(
        version or Unknown(said, "nothing on the node has the version of the driver"),
        firmware or Unknown(said, "nothing on the node has the version of the GSP firmware"),
        _persistence(listed),
        tuple(name for name, value in _listed(listed) if value == "Active" and _SLOWDOWN.fullmatch(name)),
    )


def _field(text: str, name: str) -> str | None:
    """The version on the `name : value` line; None for `N/A` and for no such line."""
    return next((value for key, value in _listed(text) if key == name and _VERSION.fullmatch(value)), None)


def _listed(text: str) -> Iterator[tuple[str, str]]:
    """The long listing's `name : value` lines."""
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            yield name.strip(), value.strip()


def _persistence(text: str) -> bool | Unknown:
    modes = (_PERSISTENCE.get(value) for name, value in _listed(text) if name == "Persistence Mode")
    found = next((mode for mode in modes if mode is not None), None)
    return found_or(found, "", "nvidia-smi does not report the persistence mode")


# Sections `module` (the loaded kernel module) and `nvidia-smi` (the long listing).
DRIVER: Fact[Driver] = Fact(script(_sh("show", "driver"), timeout=_TIMEOUT), parse)
GPUS: Fact[tuple[Gpu, ...]] = Fact(_query("gpu", ",".join((*GPU_FIELDS, _RESERVED)), ",".join(GPU_FIELDS)), parse_gpus)
GPU_PROCESSES: Fact[tuple[GpuProcess, ...]] = Fact(_query("compute-apps", ",".join(PROCESS_FIELDS)), parse_processes)
