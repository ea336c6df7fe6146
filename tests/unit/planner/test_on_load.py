"""Weights in 16 bits that the engine converts while it loads them (`--quantization fp8`)."""

import pytest

from sparkwright.domain.ledger import Origin
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.units import GIB
from sparkwright.domain.values import replace
from sparkwright.planner.on_load import as_loaded, held_share, unknown_method
from sparkwright.planner.overhead import load_peak
from sparkwright.planner.weights import rank_weights
from unit.planner import memory_samples
from unit.planner.memory_samples import model_shape

QWEN3_8B = model_shape("qwen3-8b")
FILES = 16_381_516_808  # bytes of Qwen/Qwen3-8B; Qwen/Qwen3-8B-FP8 has 8.79 GiB


def recipe(quantization: str = "", engine: str = "vllm 0.26.0") -> Recipe:
    made = memory_samples.recipe(QWEN3_8B, engine, flags={"quantization": quantization} if quantization else {})
    return replace(made, model=replace(made.model, size=FILES))


@pytest.mark.parametrize("engine", ["vllm 0.26.0", "sglang 0.5.20"])
def test_what_is_converted_takes_what_a_checkpoint_in_that_format_takes(engine: str) -> None:
    """Guards owners who quantize while they load: the plan had counted the files as they lie on disk."""
    line, plain = (rank_weights(recipe(asked, engine), QWEN3_8B, None) for asked in ("fp8", ""))
    assert line.low and line.high and line.low < 8.79 * GIB < line.high
    assert line.bytes == pytest.approx(8.79 * GIB, rel=0.05) and line.origin is Origin.ASSUMED
    assert plain.bytes == pytest.approx(FILES, rel=0.03)


def test_a_method_that_is_not_known_leaves_the_weights_open() -> None:
    """Guards a claim of exact weights: from four bits to the files as they are."""
    line = rank_weights(recipe("bitsandbytes"), QWEN3_8B, None)
    assert line.low and line.low < 0.3 * FILES < FILES < (line.high or 0)
    assert line.origin is Origin.ASSUMED and "bitsandbytes" in line.why
    assert not unknown_method(recipe("bitsandbytes"), replace(QWEN3_8B, format="int4", quantization="bitsandbytes"))


def test_the_load_may_hold_the_files_as_they_are() -> None:
    """Guards small nodes: releases differ in whether all of it is there in 16 bits before it is converted."""
    asked = recipe("fp8")
    peak = load_peak(asked, QWEN3_8B, rank_weights(asked, QWEN3_8B, None))
    assert peak and peak.high and peak.high > FILES > peak.bytes


@pytest.mark.parametrize(
    ("quantization", "written"),
    [
        ("", QWEN3_8B),
        ("bitsandbytes", QWEN3_8B),
        ("fp8", replace(QWEN3_8B, format="fp8", quantization="fp8")),
        ("fp8", replace(QWEN3_8B, format="nvfp4", quantization="modelopt")),
    ],
)
def test_what_is_written_so_already_or_not_known_stays(quantization: str, written: ModelShape) -> None:
    """Guards checkpoints whose own format the option only names."""
    assert as_loaded(recipe(quantization), written) is written
    assert held_share(recipe(quantization), written) == 1.0
