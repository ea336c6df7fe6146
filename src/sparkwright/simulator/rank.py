"""One rank of the simulator: its options, what it works with, and how a fault or a refusal ends it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from argparse import Namespace

from sparkwright.domain.values import dataclass
from sparkwright.simulator.ledger import Ledger, Limits, ledger_from, limits_from
from sparkwright.simulator.log import Voices, recorded, voices
from sparkwright.simulator.model import SimulatedModel
from sparkwright.simulator.settings import Faults, SimulatorSettings

LOAD_GIB_S = 1.5  # weights read per second and rank
READ = 273e9 * 0.75  # bytes per second: memory bandwidth of a device, and the share of it that decoding reaches
ALLREDUCE_S = 100e-6  # between ranks; two per layer
FLOPS = 26e12  # what prefill reaches per device (fits DSV4-Flash TP 2: about 2,000 tokens/s)
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {asked:.2f} GiB. GPU 0 has a total capacity of "
    "{total:.2f} GiB of which {free:.2f} GiB is free. Including non-PyTorch memory, this process has {used:.2f} GiB "
    "memory in use. Of the allocated memory {torch:.2f} GiB is allocated by PyTorch, and 185.98 MiB is reserved by "
    "PyTorch but unallocated. If reserved but unallocated memory is large try setting "
    "PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory Management  "
    "(https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-alloc-conf)"
)
WORK, SPIN = "work", "spin"
REST_S = 0.3


@dataclass(frozen=True, slots=True)
class SimulatedSpeed:
    """Seconds of the simulated machine, before the time scales."""

    model: SimulatedModel
    limits: Limits
    ledger: Ledger
    settings: SimulatorSettings

    @property
    def load_s(self) -> float:
        return self.ledger.weights / LOAD_GIB_S + 0.2

    @property
    def compile_s(self) -> float:
        """Captures: 10 s for 4 layers, 31 s for 36."""
        return 0.0 if self.limits.eager else 8.0 + 0.64 * self.model.layers

    @property
    def graph_s(self) -> float:
        """Seconds of one captured batch size (captures: 3 s for 30 of a tiny model, 8 s for 102 of 8B)."""
        return 0.03 + 0.0015 * self.model.layers

    def prefill_s(self, tokens: int) -> float:
        if self.settings.prefill_tps:
            return tokens / self.settings.prefill_tps
        return 2.0 * self.model.parameters_active * tokens / self.limits.world / FLOPS

    def decode_s(self, sequences: int, context: int) -> float:
        """One token for each of `sequences`, whose contexts hold `context` tokens together.

        Weights read (a batch reads more experts), KV read, two all-reduces per layer.
        """
        if sequences == 0:
            return 0.0
        if self.settings.step_ms:
            return self.settings.step_ms / 1000 * (1 + 0.02 * (sequences - 1))
        hit = 1 - (1 - self.model.chosen) ** sequences if self.model.chosen < 1 else 1.0
        read = self.model.active + self.model.experts * (hit - self.model.chosen) if self.model.experts else 0.0
        weights = (read or self.model.active) / self.limits.world
        reduces = 2 * self.model.layers * ALLREDUCE_S if self.limits.world > 1 else 0.0
        # Sparse attention reads little of a long context (2.9 ms at 980K)
        kv_read = 700.0 if self.model.compressed else self.ledger.per_token
        return (weights + context * kv_read) / READ + reduces + 0.0005

    def step_s(self, prefill: int, sequences: int, context: int) -> float:
        """One engine step: a chunk of prompts and one token of every running sequence share it."""
        return max(self.prefill_s(prefill), 0.0) + self.decode_s(sequences, context)


class StartFailed(Exception):
    """The engine refuses to start, with recorded lines and an exit code of 1."""

    def __init__(self, name: str, values: dict[str, str]) -> None:
        super().__init__(values.get("ERROR", name))
        self.name = name
        self.values = values


@dataclass(frozen=True, slots=True)
class SimulatedRank:
    args: Namespace
    settings: SimulatorSettings
    model: SimulatedModel
    limits: Limits
    ledger: Ledger
    speed: SimulatedSpeed
    voices: Voices
    faults: Faults

    @property
    def number(self) -> int:
        return int(self.args.node_rank)

    @property
    def nodes(self) -> int:
        return int(self.args.nnodes)

    async def passing(self, seconds: float) -> None:
        await asyncio.sleep(seconds * self.settings.boot_scale)

    async def enter(self, phase: str) -> None:
        """Begins a phase: its faults strike here. Raises StartFailed for out of memory; a frozen phase never
        returns."""
        self.faults.refresh()
        fault = self.faults.at(phase)
        if fault is None:
            return
        if fault.name == "die":
            os._exit(fault.exit_code)
        if fault.name == "oom":
            total = self.settings.memory_gib
            error = OOM.format(asked=2.0, total=total, free=0.61, used=total - 0.61, torch=total - 2.4)
            raise StartFailed("core-failed", {"ERROR": error})
        await asyncio.Event().wait()

    def print_failure(self, failure: StartFailed) -> None:
        recorded(failure.name, self.voices, {"MODEL": str(self.args.model), **failure.values})


def rank_from(args: Namespace, model: SimulatedModel, settings: SimulatorSettings, faults: Faults) -> SimulatedRank:
    limits = limits_from(args, model)
    ledger = ledger_from(args, model, limits, settings)
    said = voices(os.getpid(), args.node_rank, limits.world, args.headless, faults.has("odd_lines"))
    return SimulatedRank(
        args, settings, model, limits, ledger, SimulatedSpeed(model, limits, ledger, settings), said, faults
    )


def signalled(rank: SimulatedRank) -> asyncio.Future[None]:
    """Done at the first SIGTERM or SIGINT, unless a fault ignores them."""
    loop = asyncio.get_running_loop()
    stop: asyncio.Future[None] = loop.create_future()

    def asked() -> None:
        rank.faults.refresh()
        if not stop.done() and not rank.faults.has("ignore_sigterm"):
            stop.set_result(None)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked)
    return stop


class Hoard:
    """Memory that a fault makes a rank take and never give back."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.held: list[bytearray] = []
        self._seen = 0
        self._grown = 0.0

    def grow(self, answered: int) -> None:
        """Grows the leak by each request answered while the fault is on, and by the amount to be taken at once."""
        fresh, self._seen = answered - self._seen, answered
        if size := self.faults.value("leak"):
            self.held += [take_memory(size) for _ in range(fresh)]
        at_once = self.faults.value("grow") or 0.0
        if at_once > self._grown:
            self._grown = at_once
            self.held.append(take_memory(at_once))


def take_memory(megabytes: float) -> bytearray:
    """Really takes the memory: every page is written."""
    block = bytearray(int(megabytes * 1e6))
    block[::4096] = b"\x01" * len(block[::4096])
    return block


SPIN_S = 1.0
"""A collective that has not ended after so long is waited for by a busy loop on the device."""


class RankActivity:
    """`idle` until it is set."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.state = ""
        self._mark = -1
        self._next: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """A step begins; all ranks are waited for in it."""
        self._after(SPIN_S, SPIN)
        self.show(WORK)

    def end(self, seconds: float) -> None:
        """All ranks are there, and compute for so long."""
        self._after(seconds + REST_S, "")

    def hang(self, state: str) -> None:
        """Hangs for ever."""
        self._forget()
        self.show(state)

    def show(self, state: str) -> None:
        if state == self.state:
            return
        self.state = state
        if self._mark >= 0:
            os.close(self._mark)
        self._mark = _marked(f"\0sparkwright-twin/{state}/{os.getpid()}-{self.rank}") if state else -1

    def _after(self, seconds: float, state: str) -> None:
        self._forget()
        self._next = asyncio.get_running_loop().call_later(seconds, self.show, state)

    def _forget(self) -> None:
        if self._next is not None:
            self._next.cancel()


def _marked(name: str) -> int:
    """A descriptor, not an object: nothing needs to close it when the rank ends."""
    mark = socket.socket(socket.AF_UNIX)
    with contextlib.suppress(OSError):  # systems without abstract names have no nvidia-smi to play either
        mark.bind(name)
    return mark.detach()
