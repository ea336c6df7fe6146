"""The lines of remote.sample as samples of a node. What is not understood is Unknown or passed over; never raises."""

import re
from dataclasses import dataclass, field

from sparkwright.domain.command import Completed
from sparkwright.domain.sample import GpuSample, PortTraffic, Sample
from sparkwright.domain.unknown import NOT_ASKED, Unknown
from sparkwright.facts import memory
from sparkwright.facts.fact import decimal, not_understood, whole
from sparkwright.remote import sample

_BEGIN, _END = "@@ sample", "@@ end"
_PORT = re.compile(r"([^/ ]+)/ports/([0-9]+)/counters/port_(xmit|rcv)_data:([0-9]+)", re.ASCII)
_STALL = re.compile(r"avg10=([0-9.]+)", re.ASCII)
_MOST_LINES = 1000


@dataclass
class Samples:
    """Feed it the lines of one stream, in order: each block's last line gives its sample."""

    _block: list[str] | None = None
    _kernel: list[str] = field(default_factory=list)
    _blind: str = ""
    _gpu: GpuSample | Unknown = NOT_ASKED
    _fresh: bool = False
    _gpu_at: float = 0.0
    _pids: tuple[int, ...] | Unknown = NOT_ASKED

    def feed(self, line: str) -> Sample | None:
        word, _, rest = line.partition(" ")
        if line == _BEGIN:
            self._block = []
        elif line == _END and self._block is not None:
            lines, self._block = self._block, None
            return self._sample(lines)
        elif word in ("gpu", "gpu!", "pids", "kernel", "kernel!"):
            self._aside(word, rest)
        elif self._block is not None and len(self._block) < _MOST_LINES:
            self._block.append(line)
        return None

    def _aside(self, word: str, rest: str) -> None:
        """A line of one of the background readers; it may stand in the middle of a block."""
        if word == "kernel":
            self._kernel = [*self._kernel[-_MOST_LINES:], rest]
        elif word == "kernel!":
            self._blind = rest
        elif word == "pids":
            self._pids = tuple(pid for text in rest.split() if (pid := whole(text)) is not None)
        else:
            self._gpu = Unknown(rest, "there is no GPU to ask") if word == "gpu!" else _gpu(rest)
            self._fresh = True

    def _sample(self, lines: list[str]) -> Sample | None:
        said = {name: rest for name, _, rest in (line.partition(" ") for line in lines)}
        at = decimal(said.get("time", ""))
        if at is None:
            return None
        kernel, self._kernel = tuple(self._kernel), []
        if self._fresh:
            self._gpu_at, self._fresh = at, False
        return Sample(
            at=at,
            boot=said.get("boot", ""),
            memory=memory.parse(Completed(0, "\n".join(lines))),
            swap_pages=_sum(said, "pswpin", "pswpout"),
            oom_kills=_sum(said, "oom_kill"),
            stall_some=_stall(said, "some"),
            stall_full=_stall(said, "full"),
            gpu=self._with_pids(),
            gpu_at=self._gpu_at,
            ports=_ports(lines),
            compilers=whole(said.get("compilers", "")) or 0,
            disk_free=_free(said),
            kernel=kernel,
            kernel_blind=self._blind,
        )

    def _with_pids(self) -> GpuSample | Unknown:
        gpu = self._gpu
        if isinstance(gpu, Unknown):
            return gpu
        return GpuSample(gpu.utilization, gpu.memory_busy, gpu.power, gpu.clock, gpu.temperature, self._pids)


def parse(done: Completed) -> Sample | Unknown:
    """Of `once`."""
    samples = Samples()
    found = [one for line in done.stdout.splitlines() if (one := samples.feed(line))]
    return found[-1] if found else not_understood(done, "reading the node")


def _gpu(text: str) -> GpuSample | Unknown:
    """`38 %, 12 %, 41.27 W, 2411 MHz, 61`; Unknown for what nvidia-smi says instead of a row."""
    cells = [cell.strip() for cell in text.split(",")]
    if len(cells) != len(sample.GPU_FIELDS):
        return Unknown(text[:200], "nvidia-smi gave no row")
    busy, memory_busy, power, clock, heat = (_number(*one) for one in zip(sample.GPU_FIELDS, cells, strict=True))
    return GpuSample(busy, memory_busy, power, clock, heat)


def _number(name: str, cell: str) -> float | Unknown:
    value = decimal(cell.partition(" ")[0])
    return Unknown(cell, f"nvidia-smi does not tell {name}") if value is None else value


def _sum(said: dict[str, str], *names: str) -> int | Unknown:
    found = [whole(said.get(name, "")) for name in names]
    known = [value for value in found if value is not None]
    return sum(known) if len(known) == len(names) else Unknown("", f"/proc/vmstat lacks {' or '.join(names)}")


def _free(said: dict[str, str]) -> int | Unknown:
    """`BLOCKS SIZE`."""
    found = [whole(word) for word in said.get("disk", "").split()]
    match found:
        case [int(blocks), int(size)]:
            return blocks * size
    return Unknown(said.get("disk", "")[:80], "the file system does not tell its free space")


def _stall(said: dict[str, str], name: str) -> float | Unknown:
    match = _STALL.match(said.get(name, ""))
    value = decimal(match[1]) if match else None
    return Unknown(said.get(name, ""), "this kernel does not tell memory pressure") if value is None else value


def _ports(lines: list[str]) -> tuple[PortTraffic, ...]:
    found: dict[str, dict[str, int]] = {}
    for match in filter(None, map(_PORT.fullmatch, lines)):
        found.setdefault(f"{match[1]}/{match[2]}", {})[match[3]] = int(match[4])
    both = {port: count for port, count in found.items() if len(count) == 2}
    return tuple(PortTraffic(port, count["xmit"], count["rcv"]) for port, count in sorted(both.items()))
