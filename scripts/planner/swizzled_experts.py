"""Memory that gpt-oss's experts hold once SGLang 0.5.23 has swizzled them for a Hopper GPU, counted without a GPU.

    python scripts/planner/swizzled_experts.py --experts 16 --layers 36

Runs in a Python with torch and triton_kernels 3.8. The swizzling of one expert runs on the CPU, and torch's profiler
records each tensor that it makes and frees, as `_swizzle_mxfp4` of SGLang's mxfp4.py calls it. The sizes, times the
number of experts, are then played to a model of PyTorch's caching allocator (c10/cuda/CUDACachingAllocator.cpp): best
fit, segments of 2 MiB, 20 MiB or the size itself, and `empty_cache` after each layer, which frees whole segments only.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

MIB = 1 << 20
HIDDEN = INNER = 2880
VOCABULARY, QUERIES, KEYS = 201_088, 4096, 512
SCALAR = 8  # bytes of numbers that stay on the CPU


@dataclass
class CachedBlock:
    size: int
    segment: "CachedSegment"
    free: bool = True


@dataclass
class CachedSegment:
    size: int
    small: bool
    blocks: list[CachedBlock] = field(default_factory=list)


class CachingAllocator:
    """Segments as PyTorch asks the driver for them; sizes in bytes."""

    def __init__(self) -> None:
        self.segments: list[CachedSegment] = []

    def take_block(self, wanted: int) -> CachedBlock:
        size = max(512, -(-wanted // 512) * 512)
        small = size <= MIB
        fitting = [b for s in self.segments if s.small == small for b in s.blocks if b.free and b.size >= size]
        found = min(fitting, key=lambda block: block.size) if fitting else self._new_segment(size, small)
        left = found.size - size
        if left >= 512 if small else left > MIB:
            blocks = found.segment.blocks
            blocks.insert(blocks.index(found) + 1, CachedBlock(left, found.segment))
            found.size = size
        found.free = False
        return found

    def _new_segment(self, size: int, small: bool) -> CachedBlock:
        whole = 2 * MIB if small else 20 * MIB if size < 10 * MIB else -(-size // (2 * MIB)) * 2 * MIB
        made = CachedSegment(whole, small)
        made.blocks.append(CachedBlock(whole, made))
        self.segments.append(made)
        return made.blocks[0]

    def give_back(self, block: CachedBlock) -> None:
        block.free = True
        merged: list[CachedBlock] = []
        for one in block.segment.blocks:
            if merged and merged[-1].free and one.free:
                merged[-1].size += one.size
            else:
                merged.append(one)
        block.segment.blocks = merged

    def empty_cache(self) -> None:
        self.segments = [s for s in self.segments if len(s.blocks) > 1 or not s.blocks[0].free]

    def held(self) -> int:
        return sum(segment.size for segment in self.segments)


def play_sizes(
    allocator: CachingAllocator, sizes: Sequence[int], live: list[tuple[int, CachedBlock]], times: int
) -> None:
    """Positive sizes are taken, negative ones given back: the last of that size that lives."""
    for size in sizes:
        if size > 0:
            live.append((size, allocator.take_block(size * times)))
        else:
            at = next(n for n in reversed(range(len(live))) if live[n][0] == -size)
            allocator.give_back(live.pop(at)[1])


def recorded(run: Callable[[], Any]) -> tuple[Any, list[int]]:
    """The result of `run`, and the bytes of each tensor that it made (positive) and freed (negative), in order."""
    from torch.profiler import ProfilerActivity, profile

    with profile(profile_memory=True, activities=[ProfilerActivity.CPU]) as profiled:
        found = run()
    events = profiled.profiler.kineto_results.events()
    return found, [e.nbytes() for e in events if e.name() == "[memory]" and abs(e.nbytes()) > SCALAR]


def one_expert() -> Any:
    """The parameters of one expert of a layer, as `create_weights` makes them."""
    import torch

    scale = {"fill_value": 127, "dtype": torch.uint8}
    return SimpleNamespace(
        gate_up=torch.zeros(1, 2 * INNER, HIDDEN // 2, dtype=torch.uint8),
        gate_up_scale=torch.full((1, 2 * INNER, HIDDEN // 32), **scale),
        gate_up_bias=torch.zeros(1, 2 * INNER, dtype=torch.bfloat16),
        down=torch.zeros(1, HIDDEN, INNER // 2, dtype=torch.uint8),
        down_scale=torch.full((1, HIDDEN, INNER // 32), **scale),
        down_bias=torch.zeros(1, HIDDEN, dtype=torch.bfloat16),
    )


def swizzle(made: Any) -> None:
    """`process_weights_after_loading` with triton_kernels: biases in FP32, both weights swizzled, then the old gone."""
    import torch

    made.gate_up_bias, made.down_bias = made.gate_up_bias.to(torch.float32), made.down_bias.to(torch.float32)
    first = _swizzled(made.gate_up, made.gate_up_scale)
    second = _swizzled(made.down, made.down_scale)
    made.swizzled = first, second
    del made.gate_up, made.down


def _swizzled(weight: Any, scale: Any) -> Any:
    import torch
    from triton_kernels.tensor import FP4, convert_layout, wrap_torch_tensor
    from triton_kernels.tensor_details.layout import HopperMXScaleLayout, HopperMXValueLayout

    wanted = -(-weight.shape[-1] * 2 // 128) * 4
    if scale.shape[-1] < wanted:
        scale = torch.nn.functional.pad(scale, (0, wanted - scale.shape[-1]), value=127)
    weight, scale = weight.transpose(-2, -1), scale.transpose(-2, -1)
    value_layout, scale_layout = HopperMXValueLayout(-2, 3), HopperMXScaleLayout(-2, 8)
    weight = convert_layout(wrap_torch_tensor(weight, dtype=FP4), value_layout)
    return weight, convert_layout(wrap_torch_tensor(scale), scale_layout)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--experts", type=int, default=16)
    parser.add_argument("--layers", type=int, default=36)
    args = parser.parse_args()
    made, creating = recorded(one_expert)
    _, swizzling = recorded(lambda: swizzle(made))
    allocator = CachingAllocator()
    layers: list[list[tuple[int, CachedBlock]]] = []
    allocator.take_block(2 * VOCABULARY * HIDDEN)
    for _ in range(args.layers):
        for width in (HIDDEN * (QUERIES + 2 * KEYS), QUERIES * HIDDEN, HIDDEN * args.experts):
            allocator.take_block(2 * width)
        layers.append([])
        play_sizes(allocator, creating, layers[-1], args.experts)
    allocator.take_block(2 * VOCABULARY * HIDDEN)
    loaded = allocator.held()
    for live in layers:
        play_sizes(allocator, swizzling, live, args.experts)
        allocator.empty_cache()
    used = sum(block.size for segment in allocator.segments for block in segment.blocks if not block.free)
    print(f"loaded {loaded / 2**30:.2f} GiB, held {allocator.held() / 2**30:.2f}, of which in use {used / 2**30:.2f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
