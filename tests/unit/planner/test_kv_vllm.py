"""The lines that vLLM prints about its KV cache, checked against our own logs of 0.21.0 and the published ones that are
exact."""

from bisect import bisect_left
from dataclasses import replace
from typing import NamedTuple

import pytest

from sparkwright.domain.facts import Unknown
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.units import GIB
from sparkwright.engines.vllm import releases
from sparkwright.planner.kv_cache import capacity, needed, start
from unit.for_each import for_each
from unit.planner.kv_samples import model_shape, recipe

TINY = ModelShape(4, 8, 4, head_dim=64, positions=131072)
QWEN36 = model_shape("qwen3.6-35b-a3b")
# Qwen3.8-27B: 48 state layers and 16 of attention.
QWEN27 = replace(QWEN36, layers=64, heads=24, kv_heads=4, full_layers=16, state_layers=48, state_conv_width=10240,
                 state_matrix=48 * 128 * 128)  # fmt: skip
FLASH_NEXT = replace(model_shape("qwen3.8-flash-next"), state_format="fp32")
V4, MIMO, GLM53, GEMMA = map(model_shape, ("deepseek-v4-flash", "mimo-v2.5", "glm-5.3-flash", "gemma-4-26b-a4b"))
MTP3 = ("mtp", 3)


class KvLog(NamedTuple):
    """gib: as printed, rounded to 0.01. fits: contexts that, by the log, fit at once."""

    model: ModelShape
    run: Recipe
    gib: float
    tokens: int
    fits: str


OURS = {
    "8b": KvLog(model_shape("qwen3-8b"), recipe(32768), 52.19, 380048, "11.60"),
    "8b, FP8 cache": KvLog(model_shape("qwen3-8b"), recipe(32768, kv="fp8"), 51.81, 754608, "23.03"),
    "30b-a3b": KvLog(model_shape("qwen3-30b-a3b"), recipe(32768), 52.06, 568624, "17.35"),
    "MLA": KvLog(model_shape("dsv2-lite"), recipe(65536), 52.4, 1808992, "27.60"),
    "two nodes": KvLog(model_shape("minimax-m2.7-nvfp4"), recipe(196608, kv="fp8", tp=2), 48.18, 814848, "4.14"),
    "DeepSeek V4": KvLog(V4, recipe(1048576, kv="fp8", tp=2), 26.72, 4047815, "3.86"),
    "tiny": KvLog(TINY, recipe(32768), 27.41, 7186512, "219.31"),
    "tiny, tp 2": KvLog(TINY, recipe(16384, tp=2), 41.31, 21656944, "1321.83"),
    "tiny, n-gram": KvLog(TINY, recipe(32768, draft=("ngram", 5)), 26.68, 6995024, "213.47"),
}
# Logs that others published; the context and what else it takes are theirs.
THEIRS = {
    "states beside MTP": KvLog(
        QWEN27, recipe(262144, "0.27.1", kv="fp8", draft=MTP3, enable_prefix_caching=True), 66.74, 1883336, "7.18"),
    "states, MTP, other share": KvLog(
        QWEN27, recipe(262144, "0.27.1", kv="fp8", draft=MTP3, enable_prefix_caching=True), 46.98, 1325364, "5.06"),
    "states, without MTP": KvLog(
        QWEN27, recipe(262144, "0.27.1", kv="fp8", enable_prefix_caching=True), 35.45, 1114865, "4.25"),
    "states, nothing asked": KvLog(QWEN27, recipe(32768, "0.27.1", kv="fp8"), 4.45, 126976, "3.88"),
    "states, MTP, nothing asked": KvLog(QWEN27, recipe(32768, "0.27.1", kv="fp8", draft=MTP3), 2.94, 55606, "1.70"),
    "packed rows without a positional part": KvLog(
        GLM53, recipe(524288, "0.28.0", kv="fp8_ds_mla", tp=2, sequences=6, batched=1024, draft=MTP3,
                      enable_prefix_caching=True, block_size=256), 10.0, 1164369, "2.22"),
    "Mamba-2, since 0.28": KvLog(
        model_shape("nemotron-3-super"), recipe(262144, "0.28.0", kv="fp8"), 6, 1179648, "4.50"),
    "states, prefix caching": KvLog(
        QWEN36, recipe(262144, "0.24.0", kv="fp8", draft=MTP3, enable_prefix_caching=True), 41.3, 3487654, "13.30"),
    "pooled index": KvLog(
        GLM53, recipe(1048576, "0.30.0", kv="fp8", tp=4, batched=16384, draft=("dflash2", 7)), 24, 3834498, "3.66"),
    "pooled index, half the context": KvLog(
        GLM53, recipe(500000, "0.30.0", kv="fp8", tp=4, draft=("dflash2", 7)), 24, 3532196, "7.06"),
    "pooled index, fewer batched": KvLog(
        GLM53, recipe(1048576, "0.30.0", kv="fp8", tp=4, draft=("dflash2", 7)), 24, 3895606, "3.72"),
    "sparse index of qsa": KvLog(FLASH_NEXT, recipe(262144, "0.28.0", batched=2048, draft=MTP3), 21.28, 736837, "2.81"),
    "qsa, FP8": KvLog(FLASH_NEXT, recipe(262144, "0.28.0", kv="fp8", batched=2048, draft=MTP3), 16.46, 992584, "3.79"),
}  # fmt: skip


def size_for(log: KvLog) -> int:
    """The smallest pool that prints at least so many tokens, within the rounding of its GiB."""
    sizes = range(int((log.gib - 0.005) * GIB), int((log.gib + 0.005) * GIB))
    at = bisect_left(sizes, log.tokens, key=lambda size: capacity(log.run, log.model, size).reported)
    return sizes[min(at, len(sizes) - 1)]


@for_each("log", [*OURS.values(), *THEIRS.values()], ids=[*OURS, *THEIRS])
def test_the_engines_own_lines(log: KvLog) -> None:
    """Guards `GPU KV cache size` and `Maximum concurrency` to the last printed digit."""
    found = capacity(log.run, log.model, size_for(log))
    assert (found.reported, f"{found.reported / log.run.serving.context:.2f}") == (log.tokens, log.fits)
    assert found.tokens <= found.reported


@pytest.mark.parametrize(("model", "run", "gib", "tokens"), [
    (MIMO, recipe(1000000, kv="nvfp4", tp=2, batched=4096, draft=("mtp", 1)), 7.19, 2285451),
    (MIMO, recipe(1000000, kv="nvfp4", tp=2, batched=2048, draft=("mtp", 2)), 6.78, 2197421),
    (replace(QWEN36, kv_format="fp8"), recipe(32768, "0.22.1rc1", tp=2, enable_prefix_caching=True), 88.76, 13.2e6),
    (replace(GEMMA, kv_format="fp8"), recipe(131072, "0.20.0"), 81.8, 714768),
    (V4, recipe(1048576, "0.25.2.dev0", kv="nvfp4_ds_mla", tp=2, draft=("dspark", 5)), 14.48, 1488433),
])  # fmt: skip
def test_published_pools_that_are_rounded(model: ModelShape, run: Recipe, gib: float, tokens: float) -> None:
    """Guards windows of their own width, a checkpoint's own FP8 cache, and V4 on a build between two versions."""
    assert capacity(run, model, int(gib * GIB)).reported == pytest.approx(tokens, rel=0.02)


@pytest.mark.parametrize(("size", "dcp", "tokens"), [
    (12_000_000_000, 1, 219264), (10_950_000_000, 1, 200064), (1_810_000_000, 4, 132096)])  # fmt: skip
def test_a_pinned_pool_of_sparse_mla(size: int, dcp: int, tokens: int) -> None:
    """Guards GLM-5.2's rows: 79 of 656 B and 22 of the indexer's 132 B, the same on every rank unless dcp shards."""
    run = recipe(tokens, "0.24.0", kv="fp8_ds_mla", tp=4, draft=("mtp", 4), decode_context_parallel_size=dcp)
    assert capacity(run, model_shape("glm-5.2"), size).reported == tokens


@pytest.mark.parametrize(("gib", "tokens", "fits"), [(40.61, 177440, 35.75), (44.03, 192368, 38.76)])
def test_the_old_line_counted_blocks_of_one_group(gib: float, tokens: int, fits: float) -> None:
    """Guards that 0.20.0's figure is given as it prints it, and the 1.65 times as many that fit next to it."""
    run = recipe(8192, "0.20.0", batched=4096)
    log = KvLog(GEMMA, run, gib, tokens, "")
    found = capacity(run, GEMMA, size_for(log))
    assert found.reported == tokens
    assert found.sequences == pytest.approx(fits, abs=0.01)
    assert found.tokens == pytest.approx(fits * 8192, rel=0.001)


@pytest.mark.parametrize(("batched", "gib"), [(8192, 8.84), (16384, 15.66)])
def test_what_one_request_needs(batched: int, gib: float) -> None:
    """Guards DeepSeek V4's floor as two published refusals name it: windows hold the tokens of all steps in flight."""
    runs = [recipe(500000, v, kv="fp8", tp=2, batched=batched, draft=("dspark", 5)) for v in ("0.27.1", "0.30.0")]
    found, later = (needed(run, V4) for run in runs)
    assert isinstance(found, int)
    assert isinstance(later, int)
    assert round(found / GIB, 2) == gib
    assert capacity(runs[0], V4, later).reported == 500000


def test_a_pinned_pool_of_compressed_kv() -> None:
    """Guards DeepSeek V4 with DSpark: 20e9 B hold 652,465 tokens, 1.30 contexts of 500,000, as a log of it states."""
    run = recipe(500000, "0.27.1", kv="fp8", tp=2, batched=16384, draft=("dspark", 5))
    assert capacity(run, V4, 20_000_000_000).reported == 652465


def test_our_own_refusal() -> None:
    """Guards `5.62 GiB KV cache is needed` of the start whose context did not fit."""
    assert needed(recipe(40960), model_shape("qwen3-8b")) == 5.625 * GIB


def test_compressed_kv_holds_less_than_it_states() -> None:
    """Guards the true figure next to 0.21.0's: it weighs groups by their bytes, but each takes whole blocks."""
    found = capacity(recipe(1048576, tp=2), V4, int(26.72 * GIB))
    assert found.tokens == pytest.approx(found.reported * 7065 / 7450, rel=0.001)
    assert found.sequences == pytest.approx(3.66, abs=0.01)


def test_versions_lay_compressed_kv_out_differently() -> None:
    """Guards that a plan for another version is another plan: by far most tokens before steps in flight counted."""
    tokens = {v: capacity(recipe(1048576, v, tp=2), V4, 15 * GIB).reported for v in ("0.21.0", "0.24.0", "0.33.0")}
    assert tokens["0.33.0"] < 0.75 * tokens["0.21.0"] < 0.75 * tokens["0.24.0"]
    waiting = recipe(1048576, "0.33.0", tp=2, no_async_scheduling=True)
    assert capacity(waiting, V4, 15 * GIB).reported > 1.4 * tokens["0.33.0"]


@pytest.mark.parametrize(("context", "printed"), [(4096, 90841), (262144, 2175276)])
def test_0_23_0_packs_blocks_as_0_24_0_does(context: int, printed: int) -> None:
    """Guards two boots of DeepSeek V4 on two H200 of one source, 32.08 GiB each; later builds of 0.23 hold less."""
    v4, later = (recipe(context, version, kv="fp8", tp=2) for version in ("0.23.0", "0.23.1rc1"))
    held = capacity(v4, V4, int(32.08 * GIB)).reported
    assert held == pytest.approx(printed, rel=0.001) and held > capacity(later, V4, int(32.08 * GIB)).reported


def test_the_checkpoint_s_kv_type_is_taken_since_0_14() -> None:
    """Guards hf_quant_config.json, which 0.13.0 did not read: an NVFP4 build of Llama 3.1 8B had twice the bytes."""
    made = replace(model_shape("qwen3-8b"), kv_format="fp8")
    old, new = (capacity(recipe(4096, version), made, GIB).reported for version in ("0.13.0", "0.24.0"))
    assert new == pytest.approx(2 * old, rel=0.001)
    assert capacity(recipe(4096, "0.13.0", kv="fp8"), made, GIB).reported == new


def test_an_unreadable_version_counts_as_new() -> None:
    """Guards images without a version: the newest arithmetic is the most careful."""
    new = capacity(recipe(1048576, "0.33.0"), V4, 15 * GIB)
    for odd in ("", "nightly", "0.1.dev1+g6804e1b81"):
        found = capacity(recipe(1048576, odd), V4, 15 * GIB)
        assert replace(found, low=None, high=None, doubts=()) == new


def test_a_kv_type_that_the_release_does_not_have_is_another_build_s() -> None:
    """Guards a width of zero: an image called 0.26.0 that adds a type held 0.6 % more than the release's rules."""
    kept = {kv: capacity(recipe(1048576, "0.26.0", tp=2, kv=kv), V4, 15 * GIB) for kv in ("fp8", "nvfp4_ds_mla")}
    assert kept["fp8"].low is None
    found = kept["nvfp4_ds_mla"]
    assert found.low and found.high and found.low < 0.97 * found.tokens < found.tokens < 0.97 * found.high
    assert "no KV type nvfp4_ds_mla" in found.doubts[-1]


def test_a_version_that_was_not_read_has_a_range() -> None:
    """Guards figures that look exact: between two releases that share a pool out differently nobody knows which way."""
    assert capacity(recipe(1048576, "0.24.0"), V4, 15 * GIB).low is None
    old, new = (capacity(recipe(1048576, v), V4, 15 * GIB).tokens for v in ("0.24.0", "0.27.1"))
    between, patched = (capacity(recipe(1048576, v), V4, 15 * GIB) for v in ("0.25.2", "0.27.2rc1.dev3+gabc"))
    after = capacity(recipe(1048576, "0.26.0"), V4, 15 * GIB).tokens
    assert (between.low, between.high) == (after, old) and after < new < old
    assert between.doubts[-1].startswith("0.25.2 was not read: ")
    assert between.doubts[-1].endswith("as the releases 0.24.0 to 0.26.0 would hold")
    assert patched.tokens == capacity(recipe(1048576, "0.27.1"), V4, 15 * GIB).tokens
    unread, newest = (capacity(recipe(1048576, v), V4, 15 * GIB) for v in ("nightly", "0.99.0"))
    fewest = min(capacity(recipe(1048576, v), V4, 15 * GIB).tokens for v in releases.READ)
    assert (unread.low, unread.high, newest.low) == (fewest, old, int(0.95 * newest.tokens))


def test_a_release_without_the_model_is_not_asked() -> None:
    """Guards that a range does not have the ends of releases which would refuse the model: K2 came with 0.30.0."""
    name = "K2HorizonForCausalLM"
    assert releases.neighbours(recipe(4096, "nightly"), name) == ("0.30.0", "0.33.0")
    assert releases.neighbours(recipe(4096, "0.28.0"), name) == ("0.30.0",)
    assert releases.neighbours(recipe(4096, "0.28.0"), "") == ("0.27.1", "0.30.0")


def test_0_26_0_counts_flight_and_does_not_overlay() -> None:
    """Guards what is between 0.24.0 and 0.27.1: windows with the steps in flight, blocks of V4 as before."""
    old, between, new = (capacity(recipe(1048576, v), V4, 15 * GIB) for v in ("0.24.0", "0.26.0", "0.27.1"))
    assert between.tokens < new.tokens < old.tokens
    assert between.why[0] == old.why[0] != new.why[0], "blocks of the same size"


def test_prefixes_of_states_are_kept_by_default_since_0_28() -> None:
    """Guards a pool of hybrids planned too small: before 0.28 who does not ask for prefix caching keeps one state."""
    names = ("0.24.0", "0.26.0", "0.27.1", "0.28.0")
    held = [capacity(recipe(262144, v), QWEN27, 30 * GIB).per_sequence for v in names]
    assert held[0] == held[1] == held[2] < held[3]
    asked = recipe(262144, "0.27.1", enable_prefix_caching=True)
    assert capacity(asked, QWEN27, 30 * GIB).per_sequence == held[3]


def test_an_unread_version_starts_by_the_costliest_release() -> None:
    """Guards `fits` for source builds: a full sequence needs what the costliest release around it asks for."""
    every = [start(recipe(1048576, v), V4) for v in ("0.24.0", "0.27.1")]
    assert all(one and one[0] == one[1] for one in every) and every[0] != every[1]
    sizes = [one[0] for one in every if one]
    assert start(recipe(1048576, "0.25.2"), V4) == (min(sizes), max(sizes))
    source, newest = start(recipe(1048576, "0.1.dev1+g6804"), V4), start(recipe(1048576, "0.33.0"), V4)
    assert source and newest and source[0] <= newest[0] <= source[1] and source[0] < source[1]


def test_the_null_block_is_set_aside() -> None:
    """Guards 0.33.0's admission: a pool of just one context is refused by one block."""
    old, new = (needed(recipe(32768, v), model_shape("qwen3-8b")) for v in ("0.30.0", "0.33.0"))
    assert isinstance(old, int)
    assert new == old + capacity(recipe(32768), model_shape("qwen3-8b"), old).per_sequence // 2048


def test_small_windows_that_count_all_tokens_in_flight() -> None:
    """Guards Inkling: six groups of convolutions hold most of a sequence's blocks (vllm-project issue 54703)."""
    run = recipe(131072, "0.27.1", tp=2, batched=16384)
    found = capacity(run, model_shape("inkling-small"), 40 * GIB)
    assert "6 x 8,194 blocks of 4 tokens" in found.why[1]
    assert found.per_sequence // (7 * 65536) == 4096 + 5 * 1041 + 6 * 8194


def test_pages_that_do_not_divide() -> None:
    """Guards what 0.21.0 cannot start, and what later versions pad."""
    odd = replace(GEMMA, window_head_dim=192)
    early = capacity(recipe(8192), odd, 10 * GIB)
    assert early.unknown == "vLLM 0.21.0 cannot share blocks between pages of 65536 and 98304 B"
    assert isinstance(needed(recipe(8192), odd), Unknown)
    assert capacity(recipe(8192, "0.24.0"), odd, 10 * GIB).reported > 0


def test_windows_kept_whole_when_asked() -> None:
    """Guards the option that costs Gemma most of its cache."""
    usual, told = (capacity(r, GEMMA, 40 * GIB).tokens for r in (
        recipe(131072), recipe(131072, disable_hybrid_kv_cache_manager=True)))  # fmt: skip
    assert told < usual / 4


def test_a_kept_history_of_states() -> None:
    """Guards Mamba-2 with prefix caching: a state at the end of every block before 0.28, two since, three in 0.33.0."""
    model = model_shape("nemotron-3-super")
    versions = ("0.21.0", "0.27.1", "0.30.0", "0.33.0")
    pools = [capacity(recipe(131072, v, enable_prefix_caching=True), model, 30 * GIB) for v in versions]
    held = [pool.per_sequence // (8 * 8320 * 512) for pool in pools]
    assert held == [16 + 5 * 16, 16 + 5 * 16, 16 + 5 * 2, 16 + 5 * 3]
    every = capacity(recipe(131072, "0.30.0", mamba_cache_mode="all"), model, 30 * GIB)
    assert every.per_sequence == pools[0].per_sequence
    asked = capacity(recipe(131072, "0.28.0", mamba_cache_mode="align"), model, 30 * GIB)
    assert "5 x 2 blocks" in asked.why[1]


def test_states_inside_a_prompt() -> None:
    """Guards 0.33.0's blocks for GDN: multiples of 64 tokens, and one state more than before."""
    pools = [capacity(recipe(262144, v, kv="fp8", draft=MTP3), QWEN27, 30 * GIB) for v in ("0.30.0", "0.33.0")]
    assert [pool.block for pool in pools] == [1600, 1600]
    assert ["3 x 5 blocks" in pools[0].why[1], "3 x 6 blocks" in pools[1].why[1]] == [True, True]
    off = recipe(262144, "0.33.0", kv="fp8", no_enable_prefix_caching=True)
    assert capacity(off, QWEN27, 30 * GIB).block == 1568
    assert capacity(replace(off, flags={}), QWEN27, 30 * GIB).block == 1600


def test_a_block_holds_a_state() -> None:
    """Guards the block size that vLLM raises until attention's page is as large as a state."""
    assert capacity(recipe(131072, kv="fp8", draft=MTP3), QWEN27, 30 * GIB).block == 1600
    assert capacity(recipe(32768, block_size=32), model_shape("qwen3-8b"), GIB).block == 32
    assert capacity(recipe(32768, attention_backend="FLASHMLA"), model_shape("dsv2-lite"), GIB).block == 64


def test_why_reports_the_arithmetic() -> None:
    """Guards `--why`: blocks, their bytes, and what a sequence holds of each group."""
    found = capacity(recipe(262144, "0.30.0", kv="fp8", draft=MTP3), QWEN27, int(66.74 * GIB))
    assert found.why == (
        "1,286 blocks of 55,705,600 B",
        "a sequence of 262,144 tokens holds 179: 1 x 164 blocks of 1,600 tokens, 3 x 5 blocks of 1,600 tokens",
    )
    assert found.per_sequence == 179 * 55705600


LAGUNA = replace(model_shape("laguna-xs-2.1"), layers=48, full_layers=12, window_layers=36, positions=1048576)
PUBLISHED_LAGUNA = [("", 6.97, 94135), ("fp8", 35.2, 950420)]
# Its drafts: six layers of the same heads, computed in the same window.
DRAFTED = replace(LAGUNA, architecture="DFlashLagunaForCausalLM", layers=6, full_layers=0, window_layers=6)


def laguna(kv: str = "", draft: ModelShape | None = DRAFTED, batched: int = 2048) -> Recipe:
    """0.25.1 on one GB10 at a context of 65,536; its log says 2,048 batched tokens."""
    made = recipe(65536, "0.25.1", kv=kv, batched=batched, sequences=32, draft=("dflash", 15))
    return replace(made, speculation=replace(made.speculation, draft=draft))


@for_each("kv, gib, tokens", PUBLISHED_LAGUNA)
def test_drafts_of_laguna_share_the_groups_of_the_model(kv: str, gib: float, tokens: int) -> None:
    """A DFlash draft model keeps the whole context in the groups of the model's own layers."""
    assert capacity(laguna(kv), LAGUNA, int(gib * GIB)).tokens == pytest.approx(tokens, rel=0.002)
    unstated = capacity(laguna(kv, batched=0), LAGUNA, int(gib * GIB))
    assert unstated.low is not None and unstated.high is not None
    assert unstated.low < unstated.high == pytest.approx(tokens, rel=0.002)


@for_each("kv, gib, tokens", PUBLISHED_LAGUNA)
def test_a_draft_model_nobody_described_is_in_the_range(kv: str, gib: float, tokens: int) -> None:
    """The published tokens lie in the range that an unknown draft model leaves."""
    found = capacity(laguna(kv, None, batched=0), LAGUNA, int(gib * GIB))
    assert found.low is not None and found.high is not None and found.low <= tokens <= found.high


def test_batched_tokens_nobody_stated_widen_the_range() -> None:
    """Windows hold a step's tokens: the default of another build gives the upper end, a stated batch leaves none."""
    open_ended = capacity(recipe(65536, "0.24.0", batched=0), LAGUNA, 10 * GIB)
    smaller = capacity(recipe(65536, "0.24.0", batched=2048), LAGUNA, 10 * GIB)
    assert open_ended.tokens < smaller.tokens == open_ended.high and smaller.high is None


def test_eagles_layer_may_keep_all_heads() -> None:
    """MiniMax-M3 with EAGLE-3 on four ranks: 37,044,092,928 B were 1,087,872 tokens, its layer with 64 heads."""
    run = recipe(1 << 20, "0.30.0", kv="fp8", tp=4, draft=("eagle3", 2))
    found = capacity(run, model_shape("minimax-m3"), 37_044_092_928)
    assert found.low is not None and 0.99 * 1_087_872 < found.low < 1_087_872 < found.reported
    known = replace(run, speculation=replace(run.speculation, draft=model_shape("qwen3-8b")))
    assert not any("EAGLE" in doubt for doubt in capacity(known, model_shape("minimax-m3"), 37_044_092_928).doubts)


def test_eagles_layer_beside_windows_is_a_group_of_its_own() -> None:
    """Guards a published boot of Gemma 4 with EAGLE3: 65,696 tokens, 3.54 contexts at once; a group of six held 11 %
    less."""
    run = recipe(98304, "0.19.0", kv="fp8", sequences=2, draft=("eagle3", 3))
    found = capacity(run, GEMMA, int(7.77 * GIB))
    assert found.reported == pytest.approx(65696, rel=0.001) and f"{found.sequences:.2f}" == "3.54"
    assert (found.low or 0) < found.tokens < (found.high or 0), "its width is assumed"
