"""The peak that an engine computes with, checked against what vLLM left of its budget in our own captures."""

from dataclasses import replace

import pytest

from sparkwright.domain.recipe import Parallelism, Recipe, Speculation
from sparkwright.domain.units import GIB, MIB
from sparkwright.planner.overhead import Peak, rank_peak, spread
from unit.for_each import for_each
from unit.planner.memory_samples import model_shape, recipe

DENSE = model_shape("qwen3-8b")
SPARSE = model_shape("qwen3-30b-a3b")
V4 = model_shape("deepseek-v4-flash")
HYBRID = model_shape("qwen3.6-35b-a3b")
EAGER = {"enforce-eager": True}


def recipe_peak(made: Recipe, unified: bool = False) -> Peak:
    assert made.model.shape is not None
    return rank_peak(made, made.model.shape, unified)


@pytest.mark.parametrize(
    ("name", "tp", "serving", "wanted"),
    [
        ("qwen3-8b", 1, {"context": 32768}, 2.15),
        ("qwen3-30b-a3b", 1, {"context": 32768}, 2.60),
        ("dsv2-lite", 1, {"context": 65536}, 1.87),
        ("minimax-m2.7-nvfp4", 2, {"context": 196608}, 3.54),
        ("deepseek-v4-flash", 2, {"context": 1048576, "sequences": 6, "batched_tokens": 8192}, 3.80),
    ],
)
def test_what_the_captures_left(name: str, tp: int, serving: dict[str, int], wanted: float) -> None:
    """Guards the sum: budget - weights - KV of vLLM 0.21.0's logs, less kernels: 0.30 GiB on one GPU, 0.16 on two."""
    made = recipe(model_shape(name), tp=tp, serving=serving, flags=EAGER)
    assert recipe_peak(made).bytes / GIB == pytest.approx(wanted, abs=0.12)


def test_logits_of_many_sequences_are_the_peak_of_a_small_model() -> None:
    """Guards the largest term that nobody expects: 1,024 sequences x 151,936 words x 14 bytes, 18 where drafts are."""
    many, few = recipe_peak(recipe(DENSE)), recipe_peak(recipe(DENSE, serving={"sequences": 8}))
    assert many.sampler > 2 * GIB > 1 * GIB > few.bytes
    drafting = recipe_peak(recipe(DENSE, speculation=Speculation("ngram", 5)))
    assert drafting.sampler - many.sampler == pytest.approx(4 * 1024 * DENSE.vocab)


@for_each(
    "engine, env, method, second",
    [
        ("vllm 0.27.1", {}, "", False),
        ("vllm 0.27.1", {}, "dspark", True),
        ("vllm 0.30.0", {}, "", True),
        ("vllm 0.30.0", {"VLLM_USE_V2_MODEL_RUNNER": "0"}, "", False),
        ("vllm 0.24.0", {"VLLM_USE_V2_MODEL_RUNNER": 1}, "", True),
        ("sglang 0.5.23", {}, "", False),
    ],
)
def test_model_runner_v2_counts_words(engine: str, env: dict[str, str], method: str, second: bool) -> None:
    """Guards when vLLM's second runner works: it keeps a table of sequences x words, and needs less to sample."""
    found = recipe_peak(recipe(DENSE, engine, env=env, speculation=Speculation(method, 1)))
    assert (found.workspace > 0) is second
    assert (found.sampler < 1.2 * GIB) is (second or engine.startswith("sglang"))


def test_batched_tokens_are_the_main_knob() -> None:
    """Guards that all but the logits grow with max_num_batched_tokens."""
    small, large = (recipe_peak(recipe(SPARSE, serving={"batched_tokens": n, "sequences": 1})) for n in (2048, 8192))
    assert large.bytes == pytest.approx(4 * small.bytes, rel=0.01)


def test_experts_share_one_workspace() -> None:
    """Guards its size by hand for Qwen3-30B-A3B: 8,192 tokens x 8 experts, twice 2,048 wide, 2 bytes: 512 MiB."""
    assert recipe_peak(recipe(SPARSE)).workspace == 512 * MIB
    halves = recipe_peak(recipe(SPARSE, parallelism=Parallelism(2)))
    whole = recipe_peak(recipe(SPARSE, parallelism=Parallelism(2, ep=True)))
    assert halves.workspace <= whole.workspace == 512 * MIB


def test_sparse_attention_gathers_by_context() -> None:
    """Guards that a longer context costs activations, and that the indexer's logits follow their variable."""
    short, long = (recipe_peak(recipe(V4, tp=2, serving={"context": n})) for n in (65536, 1048576))
    assert long.workspace == 4 * (1048576 / 4 + 128 + 8192) * 512 * 2 > short.workspace
    small = recipe_peak(recipe(V4, tp=2, env={"VLLM_SPARSE_INDEXER_MAX_LOGITS_MB": "256"}))
    assert recipe_peak(recipe(V4, tp=2)).layers - small.layers == 256 * MIB


def test_a_gb10_reads_compressed_entries_directly() -> None:
    """Guards that vLLM 0.24.0 added kernels for it that need no gathered copy, and fewer padded heads."""
    old, new = (recipe_peak(recipe(V4, f"vllm {version}", 2), True) for version in ("0.23.1", "0.24.0"))
    assert new.workspace < old.workspace
    assert old.layers - new.layers == 8192 * 32 * 512 * 2
    assert recipe_peak(recipe(V4, "vllm 0.24.0", 2)).workspace == old.workspace
    asked = recipe(V4, "vllm 0.24.0", 2, flags={"attention-backend": "FLASHMLA_SPARSE"})
    assert recipe_peak(asked, True).workspace == old.workspace


def test_eager_frames_keep_streams() -> None:
    """Guards that a compiled V4 holds the streams before and after a layer, and an eager one two more of them."""
    eager, compiled = (recipe_peak(recipe(V4, tp=2, flags=flags)).layers for flags in (EAGER, {}))
    assert eager - compiled == 8192 * 2 * 4 * V4.hidden * 2


def test_mla_expands_latents() -> None:
    """Guards both kinds: plain MLA up to 65,536 rows, with a sparse indexer five times the context."""
    plain = model_shape("dsv2-lite")
    few = recipe_peak(recipe(replace(plain, experts=0), serving={"context": 1 << 20})).workspace
    sparse = recipe_peak(recipe(replace(plain, experts=0, index_layers=27), serving={"context": 1 << 20})).workspace
    assert few == 65536 * 576 * 2
    assert sparse == (5 * (1 << 20) + 8192 * 16) * 576 * 2


def test_encoders_are_profiled_with_a_whole_picture() -> None:
    """Guards that a model that sees costs more unless it is asked to serve text only, and that its range is wide.

    By hand: 16,384 tokens of 4 patches of 40 KiB; 64 where two pictures are joined; the MLP's 17 split over two ranks.
    """
    seeing = recipe_peak(recipe(HYBRID, serving={"batched_tokens": 2048, "sequences": 8}))
    text = recipe_peak(
        recipe(HYBRID, flags={"language-model-only": True}, serving={"batched_tokens": 2048, "sequences": 8})
    )
    assert seeing.encoder == 65536 * 40 * 1024 and text.encoder == 0
    assert recipe_peak(recipe(HYBRID, serving={"batched_tokens": 32768})).encoder == 2 * 65536 * 64 * 1024
    assert recipe_peak(recipe(HYBRID, tp=2, serving={"batched_tokens": 2048})).encoder == 65536 * 31.5 * 1024
    each = recipe(HYBRID, tp=2, serving={"batched_tokens": 2048}, flags={"mm-encoder-tp-mode": "data"})
    assert recipe_peak(each).encoder == seeing.encoder
    low, high = spread(seeing)
    assert low < 0.6 * seeing.bytes < 1.5 * seeing.bytes < high


def test_drafting_keeps_hidden_states() -> None:
    """Guards that a draft model of its own is fed with several of them, MTP layers with one, and looking up none."""
    plain, mtp, other = (
        recipe_peak(recipe(V4, tp=2, speculation=Speculation(name, 1))).layers for name in ("ngram", "mtp", "dflash")
    )
    assert plain < mtp and plain < other
