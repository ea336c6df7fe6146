"""An engine's own values if the recipe states nothing."""

from dataclasses import replace

import pytest

from sparkwright.domain.recipe import Recipe, Speculation
from sparkwright.engines.options import number
from sparkwright.planner import limits
from unit.for_each import for_each
from unit.planner.memory_samples import recipe

PLAIN = recipe(None)


@pytest.mark.parametrize(
    ("engine", "unified", "wanted"),
    [
        ("vllm 0.21.0", True, (8192, 1024)),
        ("vllm 0.33.0", True, (2048, 256)),
        ("vllm 0.33.0", False, (8192, 1024)),
        ("vllm nightly", True, (2048, 256)),
        ("vllm-ray 0.30.1rc2+g1", True, (8192, 1024)),
    ],
)
def test_vllms_defaults(engine: str, unified: bool, wanted: tuple[int, int]) -> None:
    """Guards that a GB10 counts as a small GPU from the release on that does so, and not before."""
    made = recipe(None, engine)
    assert (limits.batched_tokens(made, unified), limits.sequences(made, unified)) == wanted


def test_sequences_are_capped_by_tokens() -> None:
    """Guards vLLM's own cap, which its default follows and a recipe's figure does not."""
    assert limits.sequences(recipe(None, serving={"batched_tokens": 512})) == 512
    assert limits.sequences(recipe(None, serving={"batched_tokens": 512, "sequences": 600})) == 600


@for_each(
    "flags, eager",
    [
        ({}, False),
        ({"enforce_eager": True}, True),
        ({"--enforce-eager": "true"}, True),
        ({"enforce-eager": False}, False),
        ({"disable-cuda-graph": True}, True),
        ({"compilation-config": {"cudagraph_mode": "none"}}, True),
        ({"compilation-config": '{"cudagraph_mode": "NONE"}'}, True),
        ({"compilation-config": "{not json"}, False),
    ],
)
def test_eager(flags: dict[str, object], eager: bool) -> None:
    """Guards that all ways to turn CUDA graphs off are seen, however the option is spelt."""
    assert limits.is_eager(replace(PLAIN, flags=flags)) is eager


@for_each(
    "made, wanted",
    [
        (PLAIN, (51, 512)),
        (recipe(None, serving={"sequences": 64}), (19, 128)),
        (recipe(None, serving={"sequences": 1}), (2, 2)),
        (recipe(None, flags={"max-cudagraph-capture-size": 8}), (4, 8)),
        (recipe(None, flags={"compilation-config": {"cudagraph_capture_sizes": [1, 2, 40]}}), (3, 40)),
        (recipe(None, serving={"sequences": 6}, speculation=Speculation("mtp", 2)), (7, 36)),
    ],
)
def test_captured_sizes(made: Recipe, wanted: tuple[int, int]) -> None:
    """Guards the count that vLLM 0.21.0 printed for its default (51 up to 512), and what changes it."""
    assert limits.captures(made) == wanted


@for_each("value, wanted", [(4, 4), ("4", 4), (True, 0), (-1, 0), (2.0, 0), (None, 0), ("x", 0)])
def test_number(value: object, wanted: int) -> None:
    """Guards that odd values of options count as not given."""
    assert number(value) == wanted
