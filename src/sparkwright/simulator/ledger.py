"""One rank's memory, in the words and rules of vLLM 0.21.0: what it asks for, what is left for the KV cache."""

from __future__ import annotations

from argparse import Namespace

from sparkwright.domain.values import dataclass
from sparkwright.simulator.model import GIB, SimulatedModel
from sparkwright.simulator.settings import SimulatorSettings

KV_BYTES = {"auto": 2.0, "bfloat16": 2.0, "float16": 2.0, "nvfp4": 0.5625}
MLA_FP8_ROW = 656
"""fp8_ds_mla: 512 fp8, 128 bytes of rope, 16 of scales."""
FIXED_PER_BATCHED_TOKEN = 414_450
"""DeepSeek V4 charges every request for in-flight tokens: a recorded start has 26.72 GiB for 4,047,815 tokens."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits that vLLM derives from its flags; tokens and sequences."""

    world: int
    context: int
    sequences: int
    batched: int
    block: int
    utilization: float
    eager: bool
    prefix_caching: bool


@dataclass(frozen=True, slots=True)
class Ledger:
    """GiB per rank; tokens of the pool."""

    total: float
    requested: float
    weights: float
    overhead: float
    graphs: float
    cache: float
    per_token: float
    """Bytes that one token takes in a pool filled with requests of the longest kind."""
    tokens: int
    blocks: int


def limits_from(args: Namespace, model: SimulatedModel) -> Limits:
    asked = args.max_model_len
    context = model.limit if asked in (None, -1) else int(asked)
    return Limits(
        world=args.tensor_parallel_size * args.pipeline_parallel_size,
        context=context,
        # vLLM's defaults for an API server on a device with 70 GiB or more.
        sequences=args.max_num_seqs or 1024,
        batched=args.max_num_batched_tokens or 8192,
        block=args.block_size or (256 if model.compressed else 16),
        utilization=args.gpu_memory_utilization,
        eager=bool(args.enforce_eager),
        prefix_caching=args.enable_prefix_caching is not False,
    )


def ledger_from(args: Namespace, model: SimulatedModel, limits: Limits, settings: SimulatorSettings) -> Ledger:
    weights = model.weights / limits.world / GIB
    overhead = settings.overhead_gib if settings.overhead_gib is not None else _overhead(model, limits)
    graphs = 0.0 if limits.eager else 0.05 + 0.006 * len(capture_sizes(limits))
    requested = limits.utilization * settings.memory_gib
    pinned = args.kv_cache_memory_bytes
    cache = pinned / GIB if pinned else requested - weights - overhead - graphs
    per_token = bytes_per_token(model, limits, str(args.kv_cache_dtype))
    blocks = max(0, int(cache * GIB / (per_token * limits.block)))
    return Ledger(
        total=settings.memory_gib,
        requested=requested,
        weights=weights,
        overhead=overhead,
        graphs=graphs,
        cache=cache,
        per_token=per_token,
        tokens=blocks * limits.block,
        blocks=blocks,
    )


def _overhead(model: SimulatedModel, limits: Limits) -> float:
    """CUDA context, logits of a full batch and activations of a full prefill chunk; captures to 10 %."""
    logits = limits.sequences * model.vocab * 10
    chunk = limits.batched * 2 * (4 * model.hidden * model.streams + 2 * model.intermediate)
    routed = limits.batched * 2 * model.fan_out * 2 * (model.hidden + model.intermediate / limits.world)
    return 0.4 + (0.5 if limits.world > 1 else 0.0) + (logits + chunk + routed) / GIB


def bytes_per_token(model: SimulatedModel, limits: Limits, dtype: str) -> float:
    """KV bytes a token on one rank. Heads are split down to one per rank; a latent row (MLA) is not split at all."""
    if model.compressed:
        growing = sum(4.5625 if r == 128 else 146 + 33 for r in model.compressed if r)
        return growing + FIXED_PER_BATCHED_TOKEN * limits.batched / limits.context
    if model.latent and dtype == "fp8_ds_mla":
        return float(model.layers * MLA_FP8_ROW)
    heads = max(1, -(-model.kv_heads // limits.world)) if not model.latent else 1
    return model.layers * heads * model.kv_width * KV_BYTES.get(dtype, 1.0)


def capture_sizes(limits: Limits) -> list[int]:
    """Batch sizes that vLLM captures: 1, 2, 4, then by 8 to 256, then by 16 to 512; never above twice the sequences."""
    top = min(512, 2 * limits.sequences)
    sizes = [1, 2, 4, *range(8, 257, 8), *range(272, 513, 16)]
    return [s for s in sizes if s <= top]


def refusal(ledger: Ledger, limits: Limits) -> tuple[int, str] | None:
    """vLLM's own message when the pool cannot hold one longest request, with the line of its source; else `None`."""
    see = "See https://docs.vllm.ai/en/latest/configuration/conserving_memory/ for more details."
    if ledger.cache <= 0:
        return 696, (
            "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when "
            f"initializing the engine. {see}"
        )
    needed = limits.context * ledger.per_token / GIB
    if needed <= ledger.cache:
        return None
    fits = int(ledger.cache * GIB / ledger.per_token) // limits.block * limits.block
    return 714, (
        f"ValueError: To serve at least one request with the models's max seq len ({limits.context}), "
        f"({gib(needed)} GiB KV cache is needed, which is larger than the available KV cache memory "
        f"({gib(ledger.cache)} GiB). Based on the available memory, the estimated maximum model length is {fits}. "
        "Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine. " + see
    )


def busy_device(ledger: Ledger, limits: Limits, free: float) -> str | None:
    """vLLM's words when other processes hold too much of the device at start; else `None`."""
    if free >= ledger.requested:
        return None
    return (
        f"ValueError: Free memory on device cuda:0 ({gib(free)}/{gib(ledger.total)} GiB) on startup is less than "
        f"desired GPU memory utilization ({limits.utilization}, {gib(ledger.requested)} GiB). Decrease GPU memory "
        "utilization or reduce GPU memory used by other processes."
    )


def gib(value: float) -> str:
    """vLLM prints at most two decimals and no trailing zeros beyond the first (captures: 52.4, 27.41)."""
    return str(round(value, 2))
