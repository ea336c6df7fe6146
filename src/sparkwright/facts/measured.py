"""What ib_write_bw and nvidia-smi print while something is measured."""

import re

from sparkwright.domain.command import Completed
from sparkwright.domain.facts import Unknown
from sparkwright.domain.measured import Clocks, ClockSample, Skipped
from sparkwright.facts.fact import TIMED_OUT, decimal, sections

NO_ROW = "a header and no result: the GID index is wrong, or nothing comes through"
_UNIT = "BW average[Gb/sec]"
_ROW = re.compile(r"\s*[0-9]+\s+[0-9]+\s+[0-9.]+\s+([0-9]{1,4}\.[0-9]{1,3})\s+[0-9.]+(\s+[0-9.]+)?\s*", re.ASCII)
_TROUBLE = re.compile(r"(fail|unable|couldn't|could not|cannot|error|did not|timed out|unrecognized)", re.IGNORECASE)
_UNITS = (" MHz", " W", " %")


def bandwidth(done: Completed) -> float | Unknown:
    """Average Gb/s of the last row. A wrong GID index gives the header, no row and exit code 0."""
    text = done.stdout
    rows = [found for line in text.splitlines() if (found := _ROW.fullmatch(line))]
    if rows and _UNIT in text:
        return float(rows[-1][1])
    lines = [line.strip() for line in f"{text}\n{done.stderr}".splitlines() if line.strip()]
    said = next((line for line in lines if _TROUBLE.search(line)), lines[-1] if lines else "")[:200]
    if done.exit_code == TIMED_OUT:
        return Unknown(said, "no answer in time: something lets ping through and RDMA not")
    if _UNIT in text and done.ok:
        return Unknown(said, NO_ROW)
    return Unknown(said, f"ib_write_bw exited {done.exit_code}")


def clocks(done: Completed, node: str) -> Clocks | Skipped:
    parts = sections(done.stdout)
    found = tuple(sample for line in parts.get("samples", "").splitlines() if (sample := _sample(line)))
    if found:
        return Clocks(node, parts.get("load", ""), found)
    why = parts.get("skipped", "") or done.stderr.strip().partition("\n")[0] or "nvidia-smi told no clocks"
    return Skipped("clocks under load", node, why[:200])


def _sample(line: str) -> ClockSample | None:
    """`2418 MHz, 42.61 W, 96 %`; a cell that tells nothing makes the row worth nothing."""
    cells = [cell.strip() for cell in line.split(",")]
    if len(cells) != len(_UNITS):
        return None
    values = [decimal(cell.removesuffix(unit)) for cell, unit in zip(cells, _UNITS, strict=True)]
    clock, power, used = values
    return None if clock is None or power is None or used is None else ClockSample(clock, power, used)
