"""What a rank does with its device before it serves: weights, compilation, KV pool, graphs (vLLM 0.21.0's lines)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from sparkwright.simulator.ledger import capture_sizes, gib, refusal
from sparkwright.simulator.log import Voice
from sparkwright.simulator.rank import Rank, StartFailed

EIGHTHS = " ▏▎▍▌▋▊▉"
WIDTH = 10


@dataclass(frozen=True, slots=True)
class Bar:
    """`total` steps in `seconds` of the simulated machine; the clock shown runs at that speed too."""

    title: str
    total: int
    seconds: float
    scale: float
    updates: int = 8

    async def draw(self, voice: Voice) -> None:
        """One line, redrawn."""
        voice.raw(f"{voice.prefix}\r{self.at(0)}")
        for done in self._stops():
            await asyncio.sleep(self.seconds * self.scale / len(self._stops()))
            voice.raw(f"\r{self.at(done)}")
        voice.raw("\n")

    async def shards(self, voice: Voice) -> None:
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


Barrier = Callable[[str], Awaitable[object]]
SHM = (
    "No available shared memory broadcast block found in 60 seconds. This typically happens when some processes are "
    "hanging or doing some time-consuming work (e.g. compilation, weight/kv cache quantization)."
)
CACHE = "/root/.cache/vllm/torch_compile_cache"
WARMUPS = 1679
WARMUP_S = 235.0
"""DeepGEMM warm-up of DeepSeek V4: slow, not stuck."""


async def load(rank: Rank) -> None:
    say, ledger = rank.voices.ranked, rank.ledger
    if rank.number == 0:
        say.info("gpu_model_runner.py:4857", f"Starting to load model {rank.args.model}...")
    backend = rank.args.attention_backend or "FLASH_ATTN"
    say.info("cuda.py:312", f"Using AttentionBackendEnum.{backend} backend.")
    await rank.enter("load")
    seconds = rank.speed.load_s * (rank.faults.value("slow_load") or 1.0)
    if rank.args.load_format == "dummy":
        seconds = 0.18 + ledger.weights * 0.07
        await rank.passing(seconds)
    else:
        await _shards(rank, seconds)
    say.info(
        "gpu_model_runner.py:4959", f"Model loading took {gib(ledger.weights)} GiB memory and {seconds:.6f} seconds"
    )


async def _shards(rank: Rank, seconds: float) -> None:
    """Only rank 0 shows bars and totals."""
    say = rank.voices.ranked
    if rank.number != 0:
        await rank.passing(seconds)
        return
    size, free = rank.ledger.weights * rank.limits.world, rank.settings.memory_gib - 12.0
    text = f"Filesystem type for checkpoints: EXT4. Checkpoint size: {size:.2f} GiB. Available RAM: {free:.2f} GiB."
    say.info("weight_utils.py:938", text)
    bar = Bar("Loading safetensors checkpoint shards", rank.model.shards, seconds, rank.settings.boot_scale)
    await bar.shards(say)
    say.info("default_loader.py:397", f"Loading weights took {seconds:.2f} seconds")


async def compiled(rank: Rank) -> None:
    """torch.compile; nothing of it in eager mode."""
    await rank.enter("compile")
    if rank.limits.eager:
        await rank.passing(2.0)
        return
    say, total, batched = rank.voices.ranked, rank.speed.compile_s, rank.limits.batched
    place = f"rank_{rank.number}_0"
    await rank.passing(total * 0.17)
    say.info("backends.py:1089", f"Using cache directory: {CACHE}/6ab8bf17a4/{place}/backbone for vLLM's torch.compile")
    say.info("backends.py:1148", f"Dynamo bytecode transform time: {total * 0.17:.2f} s")
    await rank.passing(total * 0.4)
    say.info("backends.py:378", f"Cache the graph of compile range (1, {batched}) for later use")
    await rank.passing(total * 0.43)
    say.info("backends.py:393", f"Compiling a graph for compile range (1, {batched}) takes {total * 0.78:.2f} s")
    say.info("decorators.py:708", f"saved AOT compiled function to {CACHE}/torch_aot_compile/bb69d711/{place}/model")
    say.info("monitor.py:53", f"torch.compile took {total:.2f} s in total")
    say.info("monitor.py:81", "Initial profiling/warmup run took 0.20 s")
    await rank.passing(6.0)
    sizes = capture_sizes(rank.limits)
    decode = [s for s in sizes if s <= rank.limits.sequences]
    say.info(
        "gpu_model_runner.py:6063",
        f"Profiling CUDA graph memory: PIECEWISE={len(sizes)} (largest={sizes[-1]}), FULL={len(decode)} "
        f"(largest={decode[-1]})",
    )
    say.info("gpu_model_runner.py:6142", f"Estimated CUDA graph memory: {rank.ledger.graphs:.2f} GiB total")


async def sized(rank: Rank, barrier: Barrier) -> None:
    """The KV pool. Raises StartFailed, on the head, when it cannot hold one longest request."""
    await rank.enter("kv")
    say, core, ledger, limits = rank.voices.ranked, rank.voices.core, rank.ledger, rank.limits
    if rank.args.kv_cache_memory_bytes:
        say.info(
            "gpu_worker.py:490",
            f"Initial free memory {rank.settings.free_gib:.2f} GiB, reserved {ledger.cache:.2f} GiB memory for KV "
            "Cache as specified by kv_cache_memory_bytes config and skipped memory profiling. ",
        )
    else:
        say.info("gpu_worker.py:462", f"Available KV cache memory: {gib(ledger.cache)} GiB")
    if not limits.eager:
        share, near = limits.utilization, ledger.graphs / ledger.total
        say.info(
            "gpu_worker.py:477",
            f"CUDA graph memory profiling is enabled (default since v0.21.0). The current --gpu-memory-utilization="
            f"{share:.4f} is equivalent to --gpu-memory-utilization={share - near:.4f} without CUDA graph memory "
            f"profiling. To maintain the same effective KV cache size as before, increase --gpu-memory-utilization to "
            f"{share + near:.4f}. To disable, set VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0.",
        )
    await barrier("kv")
    if rank.number == 0:
        refused = refusal(ledger, limits)
        if refused:
            raise StartFailed("core-failed-kv", {"LINE": str(refused[0]), "ERROR": refused[1]})
        core.info("kv_cache_utils.py:1710", f"GPU KV cache size: {ledger.tokens:,} tokens")
        times = ledger.tokens / limits.context
        core.info(
            "kv_cache_utils.py:1711", f"Maximum concurrency for {limits.context:,} tokens per request: {times:.2f}x"
        )


async def captured(rank: Rank) -> None:
    """Warm-up and CUDA graphs, with their bars on rank 0."""
    await rank.enter("graphs")
    say, first = rank.voices.ranked, rank.number == 0
    if rank.model.compressed:
        await _warmed(rank)
    say.info("kernel_warmup.py:44", "Skipping FlashInfer autotune because it is disabled.")
    if not rank.limits.eager:
        sizes = capture_sizes(rank.limits)
        decode = [s for s in sizes if s <= rank.limits.sequences]
        seconds = rank.speed.graph_s * (len(sizes) + len(decode))
        for title, count in (("mixed prefill-decode, PIECEWISE", len(sizes)), ("decode, FULL", len(decode))):
            took = rank.speed.graph_s * count
            bar = Bar(f"Capturing CUDA graphs ({title})", count, took, rank.settings.boot_scale)
            await (bar.draw(say) if first else rank.passing(took))
        used, guess = rank.ledger.graphs * 0.74, rank.ledger.graphs
        say.info(
            "gpu_model_runner.py:6243",
            f"Graph capturing finished in {max(1, round(seconds))} secs, took {used:.2f} GiB",
        )
        say.info(
            "gpu_worker.py:621",
            f"CUDA graph pool memory: {used:.2f} GiB (actual), {guess:.2f} GiB (estimated), difference: "
            f"{guess - used:.2f} GiB ({100 * (guess - used) / used:.1f}%).",
        )
    say.info(
        "jit_monitor.py:54",
        "Kernel JIT monitor activated — Triton JIT compilations during inference will be logged as warnings.",
    )


async def _warmed(rank: Rank) -> None:
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
            rank.voices.core.info("shm_broadcast.py:681", SHM)
    voice.raw("\n")
