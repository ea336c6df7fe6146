"""The work of a rank on its device before it serves: weights, compilation, KV pool, graphs (vLLM 0.21.0's lines)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from sparkwright.domain.values import dataclass
from sparkwright.simulator.ledger import capture_sizes, gib, refusal
from sparkwright.simulator.log import LogVoice
from sparkwright.simulator.rank import SimulatedRank, StartFailed

EIGHTHS = " ▏▎▍▌▋▊▉"
WIDTH = 10
Barrier = Callable[[str], Awaitable[object]]
WARMUPS = 1679


@dataclass(frozen=True, slots=True)
class Bar:
    """`total` steps in `seconds` of the simulated machine; the clock shown runs at that speed too."""

    title: str
    total: int
    seconds: float
    scale: float
    updates: int = 8

    async def draw(self, voice: LogVoice) -> None:
        """One line, redrawn."""
        voice.raw(f"{voice.prefix}\r{self.at(0)}")
        for done in self._stops():
            await asyncio.sleep(self.seconds * self.scale / len(self._stops()))
            voice.raw(f"\r{self.at(done)}")
        voice.raw("\n")

    async def shards(self, voice: LogVoice) -> None:
        """One line per shard (vLLM's `_BAR_FORMAT`)."""
        voice.raw(f"{voice.prefix}\r{self._shard(0)}\n")
        for done in range(1, self.total + 1):
            await asyncio.sleep(self.seconds * self.scale / self.total)
            voice.raw(f"{voice.prefix}\r{self._shard(done)}\n")
        voice.raw(f"{voice.prefix}\n")

    def _stops(self) -> list[int]:
        count = min(self.updates, self.total)
        return [round(self.total * i / count) for i in range(1, count + 1)]

    def at(self, done: int) -> str:
        filled = WIDTH * 8 * done // self.total
        bar = "█" * (filled // 8) + (EIGHTHS[filled % 8] if filled % 8 else "")
        return (
            f"{self.title}: {100 * done / self.total:3.0f}%|{bar:<{WIDTH}}| {done}/{self.total} [{self._clock(done)}]"
        )

    def _shard(self, done: int) -> str:
        return f"{self.title}: {100 * done / self.total:3.0f}% Completed | {done}/{self.total} [{self._clock(done)}]"

    def _clock(self, done: int) -> str:
        if done == 0:
            return "00:00<?, ?it/s"
        spent = self.seconds * done / self.total
        rate = done / spent if spent else 9999.0
        pace = f"{rate:5.2f}it/s" if rate >= 1 else f"{1 / rate:5.2f}s/it"
        return f"{_span(spent)}<{_span(self.seconds - spent)}, {pace}"


def _span(seconds: float) -> str:
    whole = int(max(seconds, 0))
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    return f"{hours}:{minutes:02d}:{left:02d}" if hours else f"{minutes:02d}:{left:02d}"


WARMUP_S = 235.0
"""DeepGEMM warm-up of DeepSeek V4: slow, not stuck."""


async def load(rank: SimulatedRank) -> None:
    say, ledger = rank.voices.ranked, rank.ledger
    if rank.number == 0:
        say.line("gpu_model_runner.py:4857", model=rank.args.model)
    backend = rank.args.attention_backend or "FLASH_ATTN"
    say.line("cuda.py:312", backend=backend)
    await rank.enter("load")
    seconds = rank.speed.load_s * (rank.faults.value("slow_load") or 1.0)
    if rank.args.load_format == "dummy":
        seconds = 0.18 + ledger.weights * 0.07
        await rank.passing(seconds)
    else:
        await _shards(rank, seconds)
    say.line("gpu_model_runner.py:4959", weights=gib(ledger.weights), seconds=seconds)


async def _shards(rank: SimulatedRank, seconds: float) -> None:
    """Reads the weights; only rank 0 shows bars and totals."""
    say = rank.voices.ranked
    if rank.number != 0:
        await rank.passing(seconds)
        return
    size, free = rank.ledger.weights * rank.limits.world, rank.settings.memory_gib - 12.0
    text = f"Filesystem type for checkpoints: EXT4. Checkpoint size: {size:.2f} GiB. Available RAM: {free:.2f} GiB."
    say.info("weight_utils.py:938", text)
    bar = Bar("Loading safetensors checkpoint shards", rank.model.shards, seconds, rank.settings.boot_scale)
    await bar.shards(say)
    say.line("default_loader.py:397", seconds=seconds)


async def compiled(rank: SimulatedRank) -> None:
    """torch.compile; nothing of it in eager mode."""
    await rank.enter("compile")
    if rank.limits.eager:
        await rank.passing(2.0)
        return
    say, total, batched = rank.voices.ranked, rank.speed.compile_s, rank.limits.batched
    place = f"rank_{rank.number}_0"
    await rank.passing(total * 0.17)
    say.line("backends.py:1089", place=place)
    say.line("backends.py:1148", seconds=total * 0.17)
    await rank.passing(total * 0.4)
    say.line("backends.py:378", batched=batched)
    await rank.passing(total * 0.43)
    say.line("backends.py:393", batched=batched, seconds=total * 0.78)
    say.line("decorators.py:708", place=place)
    say.line("monitor.py:53", total=total)
    say.line("monitor.py:81")
    await rank.passing(6.0)
    sizes = capture_sizes(rank.limits)
    decode = [s for s in sizes if s <= rank.limits.sequences]
    say.line("gpu_model_runner.py:6063", sizes=len(sizes), largest=sizes[-1], full=len(decode), last=decode[-1])
    say.line("gpu_model_runner.py:6142", graphs=rank.ledger.graphs)


async def size_cache(rank: SimulatedRank, barrier: Barrier) -> None:
    """The KV pool. Raises StartFailed, on the head, when it cannot hold one longest request."""
    await rank.enter("kv")
    say, core, ledger, limits = rank.voices.ranked, rank.voices.core, rank.ledger, rank.limits
    if rank.args.kv_cache_memory_bytes:
        say.line("gpu_worker.py:490", free_gib=rank.settings.free_gib, cache=ledger.cache)
    else:
        say.line("gpu_worker.py:462", cache=gib(ledger.cache))
    if not limits.eager:
        share, near = limits.utilization, ledger.graphs / ledger.total
        say.line("gpu_worker.py:477", share=share, less=share - near, more=share + near)
    await barrier("kv")
    if rank.number == 0:
        refused = refusal(ledger, limits)
        if refused:
            raise StartFailed("core-failed-kv", {"LINE": str(refused[0]), "ERROR": refused[1]})
        core.line("kv_cache_utils.py:1710", tokens=ledger.tokens)
        times = ledger.tokens / limits.context
        core.line("kv_cache_utils.py:1711", context=limits.context, times=times)


async def captured(rank: SimulatedRank) -> None:
    """Warm-up and CUDA graphs, with their bars on rank 0."""
    await rank.enter("graphs")
    say, first = rank.voices.ranked, rank.number == 0
    if rank.model.compressed:
        await _warmed(rank)
    say.line("kernel_warmup.py:44")
    if not rank.limits.eager:
        sizes = capture_sizes(rank.limits)
        decode = [s for s in sizes if s <= rank.limits.sequences]
        seconds = rank.speed.graph_s * (len(sizes) + len(decode))
        for title, count in (("mixed prefill-decode, PIECEWISE", len(sizes)), ("decode, FULL", len(decode))):
            took = rank.speed.graph_s * count
            bar = Bar(f"Capturing CUDA graphs ({title})", count, took, rank.settings.boot_scale)
            await (bar.draw(say) if first else rank.passing(took))
        used, guess = rank.ledger.graphs * 0.74, rank.ledger.graphs
        say.line("gpu_model_runner.py:6243", seconds=max(1, round(seconds)), used=used)
        say.line("gpu_worker.py:621", used=used, guess=guess, more=guess - used, percent=100 * (guess - used) / used)
    say.line("jit_monitor.py:54")


async def _warmed(rank: SimulatedRank) -> None:
    """Four quarters of a minute each, and after each the engine core's line that looks like a hang and is none."""
    if rank.number != 0:
        await rank.passing(WARMUP_S)
        return
    bar = Bar("DeepGEMM warmup", WARMUPS, WARMUP_S, rank.settings.boot_scale, updates=32)
    voice = rank.voices.ranked
    voice.raw(f"{voice.prefix}\r{bar.at(0)}")
    for tick in range(1, 33):
        await rank.passing(WARMUP_S / 32)
        voice.raw(f"\r{bar.at(WARMUPS * tick // 32)}")
        if tick % 8 == 0 and tick < 32:
            rank.voices.core.line("shm_broadcast.py:681")
    voice.raw("\n")
