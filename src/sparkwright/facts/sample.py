"""A stream of samples of a node, and its ranks' stopped processes. What is not understood is Unknown; never raises."""

import re
from dataclasses import dataclass, field, replace

from sparkwright.domain.command import Command, Completed
from sparkwright.domain.live import unwritable_text
from sparkwright.domain.recipe import Runtime
from sparkwright.domain.sample import GpuSample, HaltedProcess, LoadSample, PortTraffic, Sample
from sparkwright.domain.unknown import NOT_ASKED, Unknown
from sparkwright.facts.fact import Fact, decimal, found_or, not_understood, parsed_json, whole_number
from sparkwright.facts.kernel import WORTH
from sparkwright.facts.memory import parse as parse_memory
from sparkwright.facts.ring import EVERY, RING
from sparkwright.remote import process
from sparkwright.remote.host import script, script_texts

GPU_FIELDS = ("utilization.gpu", "utilization.memory", "power.draw", "clocks.sm", "temperature.gpu")
PIDS_EVERY = 60.0
CARD_RESET = 0x20  # WDIOF_CARDRESET of linux/watchdog.h: the watchdog has reset the machine
_ADDRESSES = 200
"""Of a node's own and its networks', as the kernel's table has them; a router's are not all read."""
_sh = script_texts(__name__, FIELDS=",".join(GPU_FIELDS), WORTH="|".join(WORTH), ADDRESSES=str(_ADDRESSES))
_BEGIN, _END = "@@ sample", "@@ end"
_PORT = re.compile(r"([^/ ]+)/ports/([0-9]+)/counters/port_(xmit|rcv)_data:([0-9]+)", re.ASCII)
# Of cables: neither wireless nor what containers come and go with.
_LINK = re.compile(r"/sys/class/net/((?:en|eth|ib)[A-Za-z0-9_.-]{1,13})/operstate:(up|down)", re.ASCII)
_STALL = re.compile(r"avg10=([0-9.]+)", re.ASCII)
_ADDRESS = re.compile(r"/proc/net/fib_trie: +\|-- ([0-9.]{7,15})", re.ASCII)
_MOST_LINES = 1000
LOAD_STOPS = ("memory", "stall")
_LOAD = ("at", "free", "available", "large", "stall", "swapped", "late", "freed")
_LONGEST, _MOST = 1000, 1e18


def follow(every: float, gpu_every: float = 5.0, since: float = 0.0, folder: str = "", ring: str = "") -> Command:
    """Blocks every so many seconds, without end. gpu_every: whole seconds, at least 1.

    since: kernel lines from that time on (seconds since the epoch), where the journal can be read; 0: only new ones.
    folder: whose file system's free space is read, too. ring: the name under which the last minutes are kept in it.
    """
    text = _sh("show", "block", "where", "ask") + RING + _sh("gpu", "kernel", "follow")
    rhythm = (f"{every:g}", f"{max(1, round(gpu_every))}", f"{since:.0f}", f"{PIDS_EVERY:g}")
    words = (*rhythm, folder, ring, f"{EVERY:g}")
    return script(text, *words)


def memory() -> Command:
    """One block without the GPU: a driver that does not answer must not hold up who only asks for memory and boot."""
    return script(_sh("show", "block") + "\nblock\n", timeout=10.0)


@dataclass
class Samples:
    """Feed it the lines of one stream, in order: each block's last line gives its sample."""

    _block: list[str] | None = None
    _kernel: list[str] = field(default_factory=list)
    _blind: str = ""
    gpu: GpuSample | Unknown = NOT_ASKED
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
            # A line of one of the background readers; it may come in the middle of a block.
            if word == "kernel":
                self._kernel = [*self._kernel[-_MOST_LINES:], rest]
            elif word == "kernel!":
                self._blind = rest
            elif word == "pids":
                self._pids = tuple(pid for text in rest.split() if (pid := whole_number(text)) is not None)
            else:
                self.gpu = Unknown(rest, "there is no GPU to ask") if word == "gpu!" else _gpu(rest)
                self._fresh = True
        elif self._block is not None and len(self._block) < _MOST_LINES:
            self._block.append(line)
        return None

    def _sample(self, lines: list[str]) -> Sample | None:
        said = {name: rest for name, _, rest in (line.partition(" ") for line in lines)}
        at = decimal(said.get("time", ""))
        if at is None:
            return None
        kernel, self._kernel = tuple(self._kernel), []
        if self._fresh:
            self._gpu_at, self._fresh = at, False
        found: dict[str, dict[str, int]] = {}
        for match in filter(None, map(_PORT.fullmatch, lines)):
            found.setdefault(f"{match[1]}/{match[2]}", {})[match[3]] = int(match[4])
        both = {port: count for port, count in found.items() if len(count) == 2}
        return Sample(
            at=at,
            boot=said.get("boot", ""),
            memory=parse_memory(Completed(0, "\n".join(lines))),
            swap_pages=_sum(said, "pswpin", "pswpout"),
            oom_kills=_sum(said, "oom_kill"),
            stall_some=_stall(said, "some"),
            stall_full=_stall(said, "full"),
            gpu=self.gpu if isinstance(self.gpu, Unknown) else replace(self.gpu, pids=self._pids),
            gpu_at=self._gpu_at,
            ports=tuple(PortTraffic(port, count["xmit"], count["rcv"]) for port, count in sorted(both.items())),
            links={m[1]: m[2] == "up" for line in lines if (m := _LINK.fullmatch(line))},
            addresses=_addresses(lines),
            was_reset=bool((whole_number(said.get("watchdog", "")) or 0) & CARD_RESET),
            compilers=whole_number(said.get("compilers", "")) or 0,
            disk_free=_free(said),
            unwritable=_unwritable(said.get("unwritable", "")),
            kernel=kernel,
            kernel_blind=self._blind,
        )


def _addresses(lines: list[str]) -> frozenset[str]:
    found = [m[1] for line in lines if (m := _ADDRESS.fullmatch(line))]
    return frozenset(found) if len(found) < _ADDRESSES else frozenset()


def parse(done: Completed) -> Sample | Unknown:
    """Parses `once`."""
    samples = Samples()
    found = [one for line in done.stdout.splitlines() if (one := samples.feed(line))]
    return found[-1] if found else not_understood(done, "reading the node")


def parse_load(line: str) -> LoadSample | None:
    """A line of remote.programs.guard."""
    found = parsed_json(line) if len(line) < _LONGEST else None
    if not isinstance(found, dict):
        return None
    if found.get("stop") in LOAD_STOPS:
        return LoadSample(stop=found["stop"])
    if isinstance(hung := found.get("hung"), int | float) and 0 < hung < _MOST:
        return LoadSample(hung=float(hung))
    figures = {name: found[name] for name in _LOAD if isinstance(found.get(name), int | float)}
    good = {"at", "free", "available"} <= figures.keys() and all(abs(one) < _MOST for one in figures.values())
    return LoadSample(**figures) if good else None


def _gpu(text: str) -> GpuSample | Unknown:
    """`38 %, 12 %, 41.27 W, 2411 MHz, 61`; Unknown for what nvidia-smi prints instead of a row."""
    cells = [cell.strip() for cell in text.split(",")]
    if len(cells) != len(GPU_FIELDS):
        return Unknown(text[:200], "nvidia-smi gave no row")
    busy, memory_busy, power, clock, heat = (
        found_or(decimal(cell.partition(" ")[0]), cell, f"nvidia-smi does not report {name}")
        for name, cell in zip(GPU_FIELDS, cells, strict=True)
    )
    return GpuSample(busy, memory_busy, power, clock, heat)


def _sum(said: dict[str, str], *names: str) -> int | Unknown:
    found = [whole_number(said.get(name, "")) for name in names]
    known = [value for value in found if value is not None]
    return sum(known) if len(known) == len(names) else Unknown("", f"/proc/vmstat lacks {' or '.join(names)}")


def _unwritable(told: str) -> str:
    """`OWNER MODE USER` of the state folder and our user, if that one cannot write there."""
    owner, mode, user = (*told.split(), "", "", "")[:3]
    if not user:
        return ""
    others = user not in (owner, "root")
    return unwritable_text("owned" if others else "read-only" if mode[2:3] == "w" else "mode", owner)


def _free(said: dict[str, str]) -> int | Unknown:
    """`BLOCKS SIZE`."""
    match [whole_number(word) for word in said.get("disk", "").split()]:
        case [int(blocks), int(size)]:
            return blocks * size
    return Unknown(said.get("disk", "")[:80], "the file system does not report its free space")


def _stall(said: dict[str, str], name: str) -> float | Unknown:
    match = _STALL.match(said.get(name, ""))
    value = decimal(match[1]) if match else None
    return found_or(value, said.get(name, ""), "this kernel does not report memory pressure")


def in_container(name: str) -> Command:
    """Lines `stopped PID NAME`, or `paused PID`; none where all of it runs. Exit 1: there is no such container."""
    return script(_sh("stopped", "container"), name, timeout=20)


def in_folder(directory: str) -> Command:
    """The same of the processes that carry the rank's folder, and of their children."""
    return script(process.FUNCTIONS + _sh("stopped", "of_folder"), directory, timeout=20)


def halts_fact(runtime: Runtime, handle: str) -> Fact[tuple[HaltedProcess, ...]]:
    """handle: the container's name, or the folder of the processes."""
    asked = in_container if runtime is Runtime.DOCKER else in_folder
    return Fact(asked(handle), parse_stopped)


def parse_stopped(done: Completed) -> tuple[HaltedProcess, ...] | Unknown:
    """The lowest PID first."""
    if not done.ok:
        return not_understood(done, "inspecting a rank's processes")
    return tuple(sorted(filter(None, map(_halt, done.stdout.splitlines())), key=lambda one: one.pid))


def _halt(line: str) -> HaltedProcess | None:
    word, _, rest = line.partition(" ")
    number, _, name = rest.partition(" ")
    pid = whole_number(number)
    if pid is None or word not in ("stopped", "paused"):
        return None
    return HaltedProcess(pid, "".join(c if c.isprintable() else "?" for c in name), paused=word == "paused")
