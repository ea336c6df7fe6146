"""The parallelism advisor: what is possible, what it costs, and that it reports it when it does not know."""

import json
from dataclasses import replace
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkwright.domain.check import Context
from sparkwright.domain.checkpoint import Checkpoint
from sparkwright.domain.facts import Unknown
from sparkwright.domain.model import ModelShape
from sparkwright.domain.plan import Advice, split_text
from sparkwright.domain.recipe import EngineChoice, Model, Parallelism, Recipe, Serving, Speculation
from sparkwright.domain.units import GIB
from sparkwright.planner.parallelism import advise, known_shape, splits
from sparkwright.planner.parts import Spread, Weights, model_parts
from sparkwright.planner.split_cost import busiest, bytes_on_rank, collectives, split_cost, touched
from sparkwright.recipes.load import load_recipe
from unit.checks.samples import CLUSTER, run_check
from unit.facts.test_model_config import GLM52, GPT_OSS, GPTQ, KIMI, NEMOTRON, QWEN35, read
from unit.for_each import for_each

DATA = Path(__file__).parents[2] / "data" / "models"


def model_shape(name: str) -> ModelShape:
    return read(json.loads((DATA / f"{name}.config.json").read_text()))


def shipped(name: str) -> ModelShape:
    made = load_recipe((files("sparkwright.recipes") / "shipped" / f"{name}.yaml").read_text(), name).model.shape
    assert made
    return made


SUPER = shipped("nemotron-3-super-120b")
MINIMAX, DSV4, QWEN8, QWEN30 = map(
    model_shape, ("minimax-m2.7-nvfp4", "deepseek-v4-flash", "qwen3-8b", "qwen3-30b-a3b")
)
V41 = model_shape("deepseek-v4.1-flash")
# 640 wide experts in blocks of 128 (Qwen3.8-Flash-Next-FP8 on SGLang, two nodes: `320 is not divisible by ... 128`).
NARROW = replace(QWEN30, expert_intermediate=640, format="fp8", rows=128, group=128)


def recipe(model: ModelShape | None, *split: int, engine: str = "vllm", ep: bool = False, **more: Any) -> Recipe:
    p = Parallelism(*split, ep=ep)
    made = Model("org/m", shape=model)
    return Recipe("m", "m", made, EngineChoice(engine, "0.21.0"), p.world_size, parallelism=p, **more)


def advice(model: ModelShape | None, *split: int, **more: Any) -> Advice:
    return advise(recipe(model, *split, **more), {})


def refused(made: Advice) -> str:
    assert made.chosen
    return "; ".join(made.chosen.refused)


@for_each(
    "made, why",
    [
        (advice(DSV4, 3), "tp 3 does not divide 64 query heads"),
        (advice(MINIMAX, 3), "tp 3 neither divides 8 KV heads nor is a multiple of them"),
        (advice(read(QWEN35), 32), "tp 32 does not divide the 16 heads of the state layers"),
        (advice(replace(QWEN8, heads=33, kv_heads=3), 3), "tp 3 does not divide the vocabulary"),
        (advice(NARROW, 2), "640 / 2 = 320 is no multiple of the quantization block 128; with ep"),
        (advice(NARROW, 2, engine="sglang"), "320 is no multiple"),
        (advice(replace(QWEN8, format="int4", group=128, intermediate=12352), 2), "dense FFN: 12352 / 2 = 6176"),
        (advice(QWEN8, 2, ep=True), "the model has no experts"),
        (advice(replace(MINIMAX, experts=129), 2, ep=True, engine="sglang"), "129 experts cannot be shared"),
        (advice(QWEN8, 1, 64), "pp 64 is more than 36 layers"),
        (advice(QWEN8, 2, engine="llama-cpp"), "llama.cpp over RPC splits layers"),
        (advice(MINIMAX, 1, 1, 2, engine="sglang"), "SGLang spans nodes with data parallelism only inside tp"),
        (advice(MINIMAX, 1, 1, 2, engine="trtllm"), "enable_attention_dp"),
        (advice(DSV4, 1, 2, speculation=Speculation("mtp", 2)), "pp 2 with speculation mtp"),
        (advice(None, 1, 2, speculation=Speculation("deepseek_mtp", 2)), "expected pp 1"),
        (advice(MINIMAX, 1, 2, engine="sglang", speculation=Speculation("ngram", 5)), "pp 2 with speculation ngram"),
    ],
)
def test_what_cannot_work(made: Advice, why: str) -> None:
    """Guards that an impossible split is named, with its reason, before any rank starts."""
    assert why in refused(made)


@for_each(
    "made",
    [
        advice(MINIMAX, 2),
        advice(MINIMAX, 16),  # more than the KV heads: copies
        advice(NARROW, 2, ep=True, engine="sglang"),
        advice(replace(MINIMAX, experts=129), 2, ep=True),  # vLLM gives one rank an expert more
        advice(read(GPT_OSS), 8),  # 2880 / 8 = 360 cuts MXFP4 groups: vLLM pads
        advice(read(GLM52), 4),  # MLA has no KV heads to divide
        advice(read(KIMI), 2),
        advice(read(NEMOTRON), 2),
        advice(MINIMAX, 1, 2, speculation=Speculation("ngram", 5)),
        advice(QWEN8, 1, 2, engine="llama-cpp"),
        advice(None, 3),  # nobody knows the model: not refused for what is guessed
    ],
)
def test_what_works_is_not_refused(made: Advice) -> None:
    """Guards working splits: each of these is served somewhere or allowed by the engine's source."""
    assert refused(made) == ""


def test_the_nearest_split_is_offered() -> None:
    """Guards the remedy: what to write instead, or on how many nodes."""
    three, narrow = advice(DSV4, 3), advice(NARROW, 2, engine="sglang")
    assert three.nearest and split_text(three.nearest.parallelism) == "pp 3"
    assert narrow.nearest and split_text(narrow.nearest.parallelism) == "tp 2 + ep"
    only_tp = advise(recipe(replace(DSV4, layers=1), 3, engine="sglang"), {})
    assert only_tp.nearest is None and only_tp.other_nodes[:2] == (2, 4)


def test_weights_are_what_an_engine_reported() -> None:
    """Guards the parts: vLLM 0.21.0 printed 62.76 GiB a rank for this config at tp 2."""
    made = advice(MINIMAX, 2).chosen
    assert made and made.cost
    assert made.cost.weights == pytest.approx(62.76 * GIB, rel=0.01)
    assert made.cost.copies < 0.2 * GIB


def test_a_checkpoint_on_disk_counts_more() -> None:
    """Guards the scale: what files hold beyond the counted parts is shared alike; an empty folder reports nothing."""
    for size, weights in ((0, 62.6), (140_000_000_000, 65.2), (900, 62.6)):
        assert split_cost(recipe(MINIMAX, 2), MINIMAX, size, 1).weights / GIB == pytest.approx(weights, abs=0.1)


def test_ends_of_a_pipeline() -> None:
    """Guards the fullest stage: the first has all tables, the last the output and the drafts; neither has both."""
    made = (
        Weights("layers", 100.0, Spread.HEADS),
        Weights("embedding", 10.0, Spread.HEADS, ends=True, idle=True),
        Weights("tables", 7.0, Spread.HEADS, ends=True, idle=True),
        Weights("output", 10.0, Spread.HEADS, ends=True),
    )
    stages = [bytes_on_rank(made, QWEN8, Parallelism(1, pp)) for pp in (1, 2)]
    assert stages == [127, 67]


def test_tables_on_disk_are_no_weights_of_a_split() -> None:
    """Guards the advisor for V4.1: its Engram tables stay on NVMe in the shipped recipe, and in memory elsewhere."""
    made = load_recipe((files("sparkwright.recipes") / "shipped" / "deepseek-v4.1-flash.yaml").read_text(), "v41")
    assert made.model.shape
    kept = split_cost(made, made.model.shape, made.model.size - made.model.on_disk, 1)
    loaded = replace(made, model=replace(made.model, on_disk=0))
    assert kept.weights / GIB == pytest.approx(72, rel=0.02)
    assert split_cost(loaded, made.model.shape, made.model.size, 1).weights / GIB == pytest.approx(72 + 47, rel=0.02)
    assert kept.read == pytest.approx(split_cost(loaded, made.model.shape, 0, 1).read, rel=0.001)


@pytest.mark.parametrize(("name", "billions"), [("qwen3-8b", 8.19), ("qwen3-30b-a3b", 30.53), ("dsv2-lite", 15.71)])
def test_parameters_are_those_of_the_model_cards(name: str, billions: float) -> None:
    """Guards the counting of parts for dense, GQA and MLA models, all 2 bytes a number."""
    assert sum(part.bytes for part in model_parts(model_shape(name))) / 2e9 == pytest.approx(billions, rel=0.01)


@for_each(
    "model, split, kv, expected",
    [
        (MINIMAX, (2,), "", 126_976),  # measured on two nodes, bf16
        (MINIMAX, (16,), "", 31_744),  # 8 KV heads: one each, no less
        (model_shape("glm-5.2"), (4,), "fp8", 78 * 656 + 21 * 132),  # MLA and index rows are whole on every rank
        (model_shape("glm-5.2"), (1, 2), "fp8", 39 * 656 + 11 * 132),
        (read(QWEN35), (4,), "fp8_e4m3", 7_680),  # 15 of 60 layers, 2 KV heads
        (DSV4, (2,), "fp8", 21 * (584 + 132) / 4 + 20 * 584 / 128),  # 3,850: as vLLM's pools of it come to
        (V41, (4,), "fp8", 3 * 640 / 2 + 640),  # four layers of 40 keep entries; how they are paged is not known
        (model_shape("gemma-4-26b-a4b"), (1,), "", 5 * 2 * 2 * 512 * 2),  # windows do not grow
        (
            replace(model_shape("kimi-linear-48b"), state_conv=0, state_matrix=0),
            (1,),
            "",
            7 * 576 * 2,
        ),  # states are untold
        (MINIMAX, (1, 1, 2), "", 126_976),  # half the sequences are here
    ],
)
def test_kv_per_token(model: ModelShape, split: tuple[int, ...], kv: str, expected: float) -> None:
    """Guards who shares KV: heads do down to one, MLA does not."""
    made = advice(model, *split, serving=Serving(kv_dtype=kv)).chosen
    assert made and made.cost and made.cost.kv_token == pytest.approx(expected)


def test_an_ffn_of_two_matrices_and_experts_in_a_latent() -> None:
    """Guards Nemotron's counts: Nano's published NVFP4 checkpoint is 19 GB; three matrices would make it 27."""
    nano = ModelShape(
        52, 32, 2, hidden=2688, head_dim=128, vocab=131072, full_layers=6, state_layers=23, state_width=4096,
        single_blocks=True, ffn_layers=23, moe_layers=23, experts=128, experts_per_token=6, expert_intermediate=1856,
        shared_experts=2, ungated=True, format="nvfp4", group=16,
    )  # fmt: skip
    assert sum(part.bytes for part in model_parts(nano)) == pytest.approx(19e9, rel=0.01)
    narrow = {part.name: part.bytes for part in model_parts(replace(nano, expert_hidden=1344))}
    wide = {part.name: part.bytes for part in model_parts(nano)}
    assert narrow["experts"] == wide["experts"] / 2
    assert narrow["shared experts"] == wide["shared experts"]
    assert narrow["experts' latent"] == 23 * 2 * 2688 * 1344 * 2


@pytest.mark.parametrize(
    ("model", "split", "measured"),
    [
        (DSV4, Parallelism(2), 27.1),  # vLLM, no speculation
        (MINIMAX, Parallelism(2), 26.2),  # vLLM on Ray
        (read(GPTQ), Parallelism(2, ep=True), 17.0),  # vLLM on Ray
        (SUPER, Parallelism(1), 16.2),  # vLLM, luisefigueroa/pulsar-gb10-vllm-stack; 14.6 and 16.29 by others
        (SUPER, Parallelism(2), 22.97),  # vLLM, kubis.ai
    ],
)
def test_measured_speeds_lie_in_the_range(model: ModelShape, split: Parallelism, measured: float) -> None:
    """Guards the step model by published single-stream figures (docs/reference/parallelism-measured.md)."""
    model = replace(model, format=model.format or "bf16")
    best, worst = split_cost(replace(recipe(model), parallelism=split), model, 0, 1).step
    assert 1 / worst < measured < 1 / best


def test_whole_experts_wait_for_the_busiest_rank() -> None:
    """Guards the answer to report 001: with one token EP reads more on the slower rank, with many it evens out."""
    assert busiest(MINIMAX, 2, 1) == pytest.approx(4 + 1.11, abs=0.1)  # exact: 4 + E|X - 4| = 5.1
    assert touched(MINIMAX, 1) == pytest.approx(8)
    for batch in (1, 8, 64):
        slices, whole = (split_cost(recipe(MINIMAX, 2, ep=ep), MINIMAX, 0, batch) for ep in (False, True))
        assert slices.collectives == whole.collectives == 124
        assert slices.batch_step[0] < whole.batch_step[0] < 1.25 * slices.batch_step[0]
    assert busiest(MINIMAX, 2, 4096) == pytest.approx(128)


def test_exchanges_of_each_kind_of_split() -> None:
    """Guards the count of waits: two a layer with tp, one where a layer is one block, two hops a pipeline of two."""
    assert collectives(MINIMAX, Parallelism(2)) == 2 * 62
    assert collectives(read(NEMOTRON), Parallelism(2)) == 52
    assert collectives(MINIMAX, Parallelism(1, 2)) == 2
    assert collectives(MINIMAX, Parallelism(1, 1, 2, ep=True)) == 2 * 62
    assert collectives(QWEN8, Parallelism(1, 1, 2)) == 0
    assert collectives(QWEN8, Parallelism()) == 0


@given(st.integers(1, 12), st.sampled_from([None, MINIMAX, QWEN8]))
def test_every_split_once(nodes: int, model: ModelShape | None) -> None:
    """Guards that nothing is left out and nothing listed twice."""
    found = list(splits(nodes, model))
    assert all(p.world_size == nodes for p in found)
    assert len(found) == len(set(found))
    counts = range(1, nodes + 1)
    plain = {(t, p, d) for t in counts for p in counts for d in counts if t * p * d == nodes}
    assert {(p.tp, p.pp, p.dp) for p in found if not p.ep} == plain


def checkpoint(text: str | ModelShape | Unknown, complete: bool = True) -> Checkpoint:
    held = read(json.loads(text)) if isinstance(text, str) else text
    return Checkpoint("/m", "/m", "", 10, 1, () if complete else ("a",), shape=held)


def test_the_file_wins() -> None:
    """Guards the order of sources: a whole copy, any config.json, the recipe; and the reason when there is none."""
    odd = Unknown("", "config.json is no JSON")
    both = {"a": checkpoint(QWEN30, complete=False), "b": checkpoint(MINIMAX)}
    assert known_shape(recipe(DSV4, 2), both).source == "config.json on b"
    assert known_shape(recipe(DSV4, 2), {"a": both["a"]}).shape == QWEN30
    assert known_shape(recipe(DSV4, 2), {"a": checkpoint(odd)}).source == "model.shape of the recipe"
    assert known_shape(recipe(None, 2), {"a": checkpoint(odd)}).why == "config.json is no JSON"
    assert "no node has its config.json" in known_shape(recipe(None, 2), {}).why


def test_what_is_not_known_is_reported() -> None:
    """Guards that a half-known model gets no figures, and that the splits are still judged."""
    made = advice(replace(MINIMAX, hidden=0), 2)
    assert made.chosen and made.chosen.possible and made.chosen.cost is None
    assert made.why == "what a split costs is not known: nothing gives the model's hidden"


def test_the_recipes_own_comes_first() -> None:
    """Guards the table's order: own, then the fastest for one sequence, impossible ones last."""
    made = advice(MINIMAX, 1, 2)
    assert [split_text(s.parallelism) for s in made.splits] == ["pp 2", "tp 2", "tp 2 + ep", "dp 2", "dp 2 + ep"]
    assert [s.possible for s in advice(DSV4, 3).splits] == [False, True, True, False, False]


SHIPPED = sorted((files("sparkwright.recipes") / "shipped").iterdir(), key=str)


@pytest.mark.full
@for_each("path", SHIPPED, ids=lambda path: path.name.removesuffix(".yaml"))
def test_shipped_recipes_can_be_split_as_they_state(path: Traversable) -> None:
    """Guards what we ship: no profile of any recipe is refused for its split, by what it reports of its model."""
    base = load_recipe(path.read_text(), path.name)
    for profile in base.profiles or ("",):
        assert refused(advise(load_recipe(path.read_text(), path.name, profile), {}, priced=False)) == ""


def test_the_shipped_v4_flash_has_the_shape_of_its_config() -> None:
    """Guards the recipe that most users start with: what it reports is what DeepSeek's config.json reports."""
    path = files("sparkwright.recipes") / "shipped" / "deepseek-v4-flash.yaml"
    made = load_recipe(path.read_text(), path.name)
    assert made.model.shape
    assert run_check("MODEL003", Context(CLUSTER, recipe=made, checkpoints={"a": checkpoint(DSV4)})) == []
    step = split_cost(made, made.model.shape, made.model.size, 1).step
    assert 1 / step[1] < 27.1 < 1 / step[0]


def test_judging_needs_no_prices() -> None:
    """A search for remedies asks dozens of times which splits work, and never what they cost."""
    asked = recipe(DSV4, 4)
    priced, judged = advise(asked, {}), advise(asked, {}, priced=False)
    assert {(s.parallelism, s.refused) for s in judged.splits} == {(s.parallelism, s.refused) for s in priced.splits}
    assert judged.chosen and priced.chosen and judged.chosen.parallelism == priced.chosen.parallelism
    assert any(s.cost for s in priced.splits) and not any(s.cost for s in judged.splits)
