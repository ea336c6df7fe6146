"""The lines of an engine's own needs, what vLLM counts inside its fraction, and the peak while loading."""

from dataclasses import replace

import pytest

from sparkwright.domain.ledger import (
    ACTIVATIONS,
    COMMUNICATION,
    CONTEXT,
    GRAPHS,
    LOADER,
    OVERHEAD,
    PROCESSES,
    WEIGHTS,
    LedgerLine,
    Origin,
)
from sparkwright.domain.recipe import Recipe, Speculation
from sparkwright.domain.units import GIB
from sparkwright.engines.catalog import traits
from sparkwright.planner.overhead import before, load_peak, overhead
from unit.for_each import for_each
from unit.planner.memory_samples import model_shape, recipe

DENSE = model_shape("qwen3-8b")


def overhead_lines(made: Recipe, unified: bool = True) -> dict[str, LedgerLine]:
    return {line.name: line for line in overhead(made, made.model.shape, unified)}


@for_each(
    "made, unified, names",
    [
        (recipe(DENSE), True, [PROCESSES, CONTEXT, ACTIVATIONS, GRAPHS]),
        (recipe(DENSE), False, [CONTEXT, ACTIVATIONS, GRAPHS]),
        (recipe(DENSE, tp=2), True, [PROCESSES, COMMUNICATION, CONTEXT, ACTIVATIONS, GRAPHS]),
        (recipe(DENSE, flags={"enforce-eager": True}), False, [CONTEXT, ACTIVATIONS]),
        (
            recipe(DENSE, flags={"load-format": "instanttensor"}),
            True,
            [PROCESSES, CONTEXT, LOADER, ACTIVATIONS, GRAPHS],
        ),
        (recipe(DENSE, "sglang 0.5.20", tp=2), True, [PROCESSES, COMMUNICATION, CONTEXT, ACTIVATIONS, GRAPHS]),
        (recipe(DENSE, "sglang 0.5.20", flags={"disable-cuda-graph": True}), False, [CONTEXT, ACTIVATIONS]),
        (recipe(DENSE, "llama-cpp 1"), True, [OVERHEAD]),
    ],
)
def test_which_lines_there_are(made: Recipe, unified: bool, names: list[str]) -> None:
    """Guards that each need has a line of its own with a range that holds it and a reason."""
    found = overhead_lines(made, unified)
    assert [*found] == names
    assert all(line.low is not None and line.high is not None for line in found.values())
    assert all((x.low or 0) <= x.bytes <= (x.high or 0) and x.why for x in found.values())


@pytest.mark.parametrize(
    ("engine", "env", "inside"),
    [
        ("vllm 0.20.2", {}, False),
        ("vllm 0.21.0", {}, True),
        ("vllm 0.21.0", {"VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS": 0}, False),
        ("vllm 0.20.2", {"VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS": "1"}, True),
    ],
)
def test_graphs_are_inside_the_fraction_since(engine: str, env: dict[str, str], inside: bool) -> None:
    """Guards vLLM's change of 0.21.0, which made the same fraction a smaller KV pool, and its variable."""
    made = recipe(DENSE, engine, env=env)
    assert (GRAPHS not in traits(made).outside(made)) is inside


def test_graphs_as_printed() -> None:
    """Guards the estimate against our capture of Qwen3-8B on one GPU: 0.37 GiB for 51 sizes of two kinds."""
    assert overhead_lines(recipe(DENSE), False)[GRAPHS].bytes / GIB == pytest.approx(0.37, abs=0.04)
    drafting = recipe(DENSE, speculation=Speculation("mtp", 1))
    assert overhead_lines(drafting, False)[GRAPHS].bytes > 1.8 * overhead_lines(recipe(DENSE), False)[GRAPHS].bytes
    pieces = recipe(DENSE, flags={"compilation-config": {"cudagraph_mode": "PIECEWISE"}})
    assert overhead_lines(pieces, False)[GRAPHS].bytes < overhead_lines(recipe(DENSE), False)[GRAPHS].bytes


def test_ray_takes_more() -> None:
    """Guards that Ray's own processes count, on each node, and that nothing of them is on a discrete GPU."""
    assert (
        overhead_lines(recipe(DENSE, "vllm-ray 0.21.0"))[PROCESSES].bytes
        > overhead_lines(recipe(DENSE))[PROCESSES].bytes
    )
    assert before(True) == (2 * GIB, 0, 4 * GIB)
    assert before(False)[0] < before(False, several=True)[0] < GIB, "CUDA's context alone"


def test_unknown_dimensions_give_a_wide_guess() -> None:
    """Guards that a model of which nothing is known still has activations, marked as assumed."""
    found = overhead_lines(recipe(None))[ACTIVATIONS]
    assert found.origin is Origin.ASSUMED
    assert found.low is not None and found.high is not None and found.high > 4 * found.low
    known = overhead_lines(recipe(DENSE))[ACTIVATIONS]
    assert known.origin is Origin.COMPUTED and "1,024 sequences, vocabulary 151,936" in known.why


def test_loading_takes_a_layer_more_where_weights_are_repacked() -> None:
    """Guards the peak while loading: weights, the loader, and one layer's experts again for Marlin."""
    moe = model_shape("minimax-m2.7-nvfp4")
    weights = LedgerLine(WEIGHTS, 62 * GIB, Origin.COMPUTED, low=61 * GIB, high=64 * GIB)
    repacked = load_peak(recipe(moe, tp=2), moe, weights)
    assert repacked is not None and repacked.bytes / GIB == pytest.approx(62 + 1 + 1, abs=0.1)
    plain = load_peak(recipe(DENSE), DENSE, weights)
    assert plain is not None and plain.bytes == 63 * GIB
    buffered = load_peak(recipe(DENSE, flags={"load-format": "fastsafetensors"}), DENSE, weights)
    assert buffered is not None and buffered.bytes == 70 * GIB
    assert buffered.low is not None and buffered.high is not None and buffered.low < buffered.bytes < buffered.high


def test_nothing_is_loaded() -> None:
    """Guards that made-up weights and unknown ones have no peak."""
    weights = LedgerLine(WEIGHTS, GIB, Origin.COMPUTED)
    assert load_peak(recipe(DENSE, flags={"load_format": "dummy"}), DENSE, weights) is None
    assert load_peak(recipe(None), None, replace(weights, bytes=0)) is None
