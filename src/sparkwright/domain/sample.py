"""Samples of a node while it serves. A figure that could not be read holds Unknown."""

from collections.abc import Mapping

from sparkwright.domain.facts import Memory
from sparkwright.domain.unknown import NOT_ASKED, Unknown
from sparkwright.domain.values import dataclass, field


@dataclass(frozen=True, slots=True)
class GpuSample:
    """utilization: percent of the time in which a kernel ran; memory_busy: in which memory was read or written.

    Watts, MHz, degrees C; pids: processes that hold GPU memory.
    """

    utilization: float | Unknown = NOT_ASKED
    memory_busy: float | Unknown = NOT_ASKED
    power: float | Unknown = NOT_ASKED
    clock: float | Unknown = NOT_ASKED
    temperature: float | Unknown = NOT_ASKED
    pids: tuple[int, ...] | Unknown = NOT_ASKED


@dataclass(frozen=True, slots=True)
class PortTraffic:
    """Counters of an RDMA port (`rocep1s0f0/1`) in units of four bytes, as the InfiniBand architecture counts them."""

    port: str
    sent: int
    received: int


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample of a node. at: its own clock, seconds since the epoch; boot: changes with every start of the node.

    swap_pages: read from and written to swap since boot; oom_kills: since boot; stall_some, stall_full: percent of the
    last 10 s in which some or all tasks waited for memory. gpu_at: when the GPU was read, by the same clock as `at`.
    compilers: processes that compile kernels now. disk_free: bytes that a user may still write where our state is;
    unwritable: why our user cannot write there at all, '' if it can.
    was_reset: a hardware watchdog ended the boot before this one.
    links: whether the link of each network port is up. addresses: IPv4 ones of the node, with those of its networks;
    empty where they are not known.
    kernel: lines of the kernel log since the sample before; kernel_blind: why they cannot be read, '' where they can.
    """

    at: float
    boot: str
    memory: Memory | Unknown = NOT_ASKED
    swap_pages: int | Unknown = NOT_ASKED
    oom_kills: int | Unknown = NOT_ASKED
    stall_some: float | Unknown = NOT_ASKED
    stall_full: float | Unknown = NOT_ASKED
    gpu: GpuSample | Unknown = NOT_ASKED
    gpu_at: float = 0.0
    ports: tuple[PortTraffic, ...] = ()
    links: Mapping[str, bool] = field(default_factory=dict)
    addresses: frozenset[str] = frozenset()
    compilers: int = 0
    was_reset: bool = False
    disk_free: int | Unknown = NOT_ASKED
    unwritable: str = ""
    kernel: tuple[str, ...] = ()
    kernel_blind: str = ""


@dataclass(frozen=True, slots=True)
class HaltedProcess:
    """pid: on its node; name: as the kernel has it. paused: with its whole container (docker pause)."""

    pid: int
    name: str = ""
    paused: bool = False

    def __str__(self) -> str:
        if self.paused:
            return f"its container is paused (docker pause), its first process is {self.pid}"
        return f"process {self.pid} ({self.name}) is stopped (state T: SIGSTOP)"


@dataclass(frozen=True, slots=True)
class LoadSample:
    """A node while weights load. Bytes: free (MemFree), available (MemAvailable), large (free in blocks of 16 MiB or

    more; -1: not known), freed (by evicting page cache just now). at: its own clock. stall: percent of the last 10 s in
    which all tasks waited for memory, -1: not known. swapped: pages read since the sample before. late: seconds. stop:
    why the node stopped its rank, '' for none; hung: seconds after which a guard without a sign of life was ended; then
    nothing else is set.
    """

    at: float = 0.0
    free: int = 0
    available: int = 0
    large: int = -1
    stall: float = -1.0
    swapped: int = 0
    late: float = 0.0
    freed: int = 0
    stop: str = ""
    hung: float = 0.0
