"""The output of ib_write_bw and nvidia-smi during a measurement."""

import re

from sparkwright.domain.command import TIMED_OUT, Command, Completed
from sparkwright.domain.fabric_facts import Clocks, ClockSample, Skipped
from sparkwright.domain.facts import Unknown
from sparkwright.facts.fact import decimal, sections
from sparkwright.remote.host import script, script_texts

_sh = script_texts(__name__)

CLOCK_SECONDS = 10
# Half a GB and no kernel that has to be compiled: a product of two square matrices, again and again.
_MULTIPLY = """
import sys, time, torch
a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
torch.mm(a, a); torch.cuda.synchronize(); print("started", flush=True)
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    for _ in range(20):
        torch.mm(a, a)
    torch.cuda.synchronize()
"""
SECONDS = 3
NO_ROW = "a header and no result: the GID index is wrong, or nothing comes through"
_UNIT = "BW average[Gb/sec]"
_ROW = re.compile(r"\s*[0-9]+\s+[0-9]+\s+[0-9.]+\s+([0-9]{1,4}\.[0-9]{1,3})\s+[0-9.]+(\s+[0-9.]+)?\s*", re.ASCII)
_TROUBLE = re.compile(r"(fail|unable|couldn't|could not|cannot|error|did not|timed out|unrecognized)", re.IGNORECASE)
_UNITS = (" MHz", " W", " %")


def sample_clocks(image: str, name: str, busy: bool) -> Command:
    """Sections `load` (what makes it) and `samples` (a row a second), or `skipped` with why.

    image: one to take torch from where the node has none, '' for none; name: of its container. busy: make no load.
    """
    how = "busy" if busy else ""
    changes = "" if busy else "clock test: the GPU under load for ten seconds"
    return script(
        _sh("clocks"), _MULTIPLY, str(CLOCK_SECONDS), image, name, how, timeout=CLOCK_SECONDS + 90.0, changes=changes
    )


def end_clocks(name: str) -> Command:
    """Nothing of the load stays: its container is removed, if it is still there."""
    return script('docker rm -f "$1" >/dev/null 2>&1; exit 0', name, timeout=20.0)


def server(device: str, gid: int, port: int, address: str) -> Command:
    """Ends with the test, or when no client comes in time. Listens on `address` alone."""
    return script(_sh("server"), device, str(gid), str(port), str(SECONDS), address, timeout=SECONDS + 12.0)


def client(device: str, gid: int, port: int, way: tuple[str, str]) -> Command:
    """way: own address and the server's. Tries for 3 s until the server is there; its table is on stdout."""
    own, there = way
    return script(_sh("client"), device, str(gid), str(port), str(SECONDS), own, there, timeout=SECONDS + 10.0)


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
    why = parts.get("skipped", "") or done.stderr.strip().partition("\n")[0] or "nvidia-smi printed no clocks"
    return Skipped("clocks under load", node, why[:200])


def _sample(line: str) -> ClockSample | None:
    """`2418 MHz, 42.61 W, 96 %`; a row with an unknown cell is dropped."""
    cells = [cell.strip() for cell in line.split(",")]
    if len(cells) != len(_UNITS):
        return None
    values = [decimal(cell.removesuffix(unit)) for cell, unit in zip(cells, _UNITS, strict=True)]
    clock, power, used = values
    return None if clock is None or power is None or used is None else ClockSample(clock, power, used)
