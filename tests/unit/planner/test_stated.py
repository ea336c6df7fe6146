"""The statements of a recipe's author about the model, and those that cannot all be right."""

from dataclasses import replace

from sparkwright.domain.ledger import Origin
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Model, Stated
from sparkwright.domain.units import GIB
from sparkwright.planner.stated import bits_of, claims, count_by_name, disagreements
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


@for_each(
    "name, count",
    (
        ("org/Thing-550B-BF16", 550e9),
        ("Qwen3-30B-A3B", 30e9),
        ("Mixtral-8x22B", 132e9),
        ("glm-4.6", 0),
        ("m-7B-1T", 7e9),
    ),
)
def test_parameters_by_a_name(name: str, count: float) -> None:
    assert count_by_name(name) == count


@for_each(
    "name, said, size, known, least",
    (
        ("acme/Thing", None, 30 * 10**9, True, None),
        ("acme/Thing-550B-BF16", None, 30 * 10**9, False, 990 * 10**9),
        ("acme/Thing-550B", Stated(parameters=13 * 10**9, dtype="bf16"), 0, False, int(0.9 * 550e9 * 1.5 / 8)),
        ("acme/Thing", Stated(parameters=900 * 10**9, dtype="qtip"), 0, False, int(0.9 * 900e9 * 1.5 / 8)),
        ("acme/Thing-EXL3-4.0bpw", Stated(parameters=32 * 10**9), 0, True, None),
        ("acme/Thing-14B-BF16", None, 30 * 10**9, True, None),
    ),
)
def test_a_name_or_a_count_makes_an_impossible_size_unknown(
    name: str, said: Stated | None, size: int, known: bool, least: int | None
) -> None:
    """Guards `fits` for 0.44 bits per parameter: what a person wrote loses against the least that is possible."""
    made = replace(recipe(model_shape("qwen3-8b")), model=Model(id=name, stated=said, size=size))
    line = rank_weights(made, None, None)
    assert line.known is known and (known or line.low == least)


def test_statements_that_contradict_the_size_widen_it() -> None:
    """Guards `fits` by one of two figures of which nobody knows which is wrong."""
    made = replace(
        recipe(model_shape("qwen3-8b")), model=Model(id="x", stated=Stated(weights=500 * 10**9), size=30 * 10**9)
    )
    line = rank_weights(made, None, None)
    assert line.bytes == 30 * 10**9 and (line.high or 0) >= 500 * 10**9


@for_each(
    "method, draft, gib",
    (
        ("draft_model", "acme/Llama-70B-BF16", 130.4),
        ("draft_model", "Qwen/Qwen3-8B", 14.9),
        ("eagle3", "x-EAGLE3-70B", 0.1),
    ),
)
def test_a_drafter_that_is_a_whole_model_has_the_size_of_its_name(method: str, draft: str, gib: float) -> None:
    """A head made for one model bears that model's size in its name, and is small."""
    dims = model_shape("qwen3-8b")
    made = recipe(dims)
    spec = replace(made.speculation, method=method, tokens=3, options={"model": draft})
    more = rank_weights(replace(made, speculation=spec), dims, None).bytes - rank_weights(made, dims, None).bytes
    assert abs(more / GIB - gib) < 1
