"""The last minutes of a node as they stand on its own disk: read after a boot that nobody ordered."""

import re

from sparkwright.domain.command import Command, Completed
from sparkwright.domain.last_seconds import RingRecord
from sparkwright.facts.fact import decimal, whole_number
from sparkwright.remote.host import script, script_texts

_sh = script_texts(__name__)
RING = _sh("ring")
EVERY = 2.0
_LONGEST, _MOST = 400, 4000
_PRESSURE = re.compile(r"/proc/pressure/memory:(some|full) avg10=([0-9.]{1,8})", re.ASCII)
_MEMORY = re.compile(r"/proc/meminfo:(MemTotal|MemFree|MemAvailable): +([0-9]{1,15}) kB", re.ASCII)
_ZONE = re.compile(r"/sys/class/thermal/thermal_zone[0-9]+/temp:([0-9]{1,7})", re.ASCII)
_PCIE = re.compile(r"/sys/bus/pci/devices/([0-9a-f:.]{7,16})/aer_dev_[a-z]+:TOTAL_ERR_([A-Z]+) ([0-9]{1,12})", re.ASCII)


def last_minutes(state: str, deployment: str, boot: str) -> Command:
    """boot: the marker of the boot whose end is asked for."""
    return script(_sh("last"), state, deployment, boot, timeout=10.0)


def copied(state: str, deployment: str, head: str) -> Command:
    """The copy of the head's last seconds that a peer keeps."""
    return script(_sh("copy"), state, deployment, head, timeout=10.0)


def keep_copy(state: str, deployment: str, head: str, records: bytes) -> Command:
    """Writes that copy on the peer, beside its own ring; nothing if `down` has taken that away."""
    return script(_sh("keep"), state, deployment, head, timeout=10.0, stdin=records)


def parse_ring(done: Completed) -> tuple[RingRecord, ...]:
    """The moments in order, as far as they can be read: the last record of a power cut may be half a line."""
    made: list[RingRecord] = []
    offset = 0.0
    for line in done.stdout.splitlines()[-_MOST:]:
        word, _, rest = line[:_LONGEST].partition(" ")
        if word == "clock":
            wall, up = (decimal(one) for one in (*rest.split(), "", "")[:2])
            offset = wall - up if wall is not None and up is not None else offset
        elif word == "at" and (up := decimal(rest)) is not None:
            made.append(RingRecord(up))
        elif made:
            _add(made[-1], word, line, rest)
        elif word == "kernel":
            made.append(RingRecord(0.0, kernel=[rest]))
    for one in made:  # by the uptime and the last word of the clock, which may have been set meanwhile
        one.at += offset
    return tuple(made)


def _add(moment: RingRecord, word: str, line: str, rest: str) -> None:
    if word == "gpu":
        cells = [decimal(cell.strip().partition(" ")[0]) for cell in rest.split(",")]
        if len(cells) == 5:
            moment.busy, _, moment.watts, moment.clock, moment.gpu_heat = cells
    elif word == "kernel":
        moment.kernel.append(rest)
    elif match := _MEMORY.fullmatch(line):
        moment.memory[match[1]] = int(match[2]) * 1024
    elif match := _PRESSURE.match(line):
        moment.stall[match[1]] = decimal(match[2]) or 0.0
    elif match := _ZONE.fullmatch(line):
        moment.heat = max(moment.heat or 0.0, (whole_number(match[1]) or 0) / 1000)
    elif match := _PCIE.fullmatch(line):
        moment.pcie[f"{match[1]} {match[2]}"] = int(match[3])
