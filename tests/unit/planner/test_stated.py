"""The statements of a recipe's author about the model, and those that cannot all be right."""

from dataclasses import replace

from sparkwright.domain.ledger import Origin
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Model, Stated
from sparkwright.domain.units import GIB
from sparkwright.planner.stated import bits_of, claims, disagreements
from sparkwright.planner.weights import rank_weights
from unit.for_each import for_each
from unit.planner.memory_samples import model_shape, recipe


@for_each(
    "name, bits",
    (("bf16", 16), ("torch.bfloat16", 16), ("fp8_e4m3", 8), ("NVFP4", 4), ("awq-4bit", 4), ("exl3-3.25", 3.25),
     ("4.0bpw", 4), ("", 0), ("fp32", 32), ("UD-Q4_K_XL", 4.89), ("q8_0", 8.5), ("IQ4_XS", 4.46), ("IQ9_ZZ", 0),
     ("m-AQLM-2Bit-1x16", 2), ("QTIP-3bit", 3), ("turboderp/x-exl3 3.05bpw_h5", 3.05), ("q4_0-unquantized", 4),
     ("Bonsai-27B-Q1_0", 1.13), ("x-TQ2_0.gguf", 2.06)),
)  # fmt: skip
def test_bits(name: str, bits: float) -> None:
    assert bits_of(name) == bits


def test_the_best_statement_first() -> None:
    said = Stated(parameters=284 * 10**9, dtype="fp8", memory=180 * 10**9, weights=149 * 10**9, by="a.yaml")
    low, first = claims(said)[0].low, claims(said)[0]
    assert (first.likely, round(low / 1e9)) == (149e9, 142) and "a.yaml" in first.why
    assert [round(one.likely / 1e9) for one in claims(said)] == [149, 291, 144]


def test_weights_of_a_recipe_without_size_and_shape() -> None:
    """Guards that a statement counts, in a range and as an assumption."""
    stated = Stated(memory=1320 * 10**9)
    made = replace(recipe(model_shape("qwen3-8b")), model=Model(id="org/x", stated=stated))
    line = rank_weights(made, None, None)
    assert line.known and line.origin is Origin.ASSUMED and "source states" in line.why
    assert (line.low or 0) > 450 * GIB and (line.high or 0) > line.bytes > (line.low or 0)


def test_dimensions_win_over_statements() -> None:
    dims = model_shape("qwen3-8b")
    made = recipe(dims)
    stated = replace(made, model=replace(made.model, stated=Stated(memory=1320 * 10**9)))
    assert rank_weights(stated, dims, None) == rank_weights(made, dims, None)


@for_each(
    "stated, size, agree",
    (
        (Stated(parameters=8 * 10**9, dtype="bf16"), 0, True),
        (Stated(parameters=80 * 10**9, dtype="bf16"), 0, False),
        (Stated(memory=20 * 10**9), 16 * 10**9, True),
        (Stated(memory=1320 * 10**9), 16 * 10**9, False),
        (Stated(weights=16 * 10**9), 32 * 10**9, False),
        (None, 160 * 10**9, False),
        (None, 16 * 10**9, True),
        (None, 0, True),
    ),
)
def test_statements_that_cannot_all_be_right(stated: Stated | None, size: int, agree: bool) -> None:
    dims: ModelShape = model_shape("qwen3-8b")
    found = list(disagreements(stated, dims, size))
    assert bool(found) is not agree
