"""The speed of a recipe: published runs, and rules that hold for any."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkwright.domain.ledger import CacheKind, CacheLayers
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Parallelism, Recipe
from sparkwright.domain.verdict import Estimate, Load, Speed
from sparkwright.planner.kv_layout import layers
from sparkwright.planner.speed import Measured, estimate_speed
from sparkwright.planner.speed_decode import DecodedModel, decode_step
from sparkwright.planner.speed_rates import LIKELY
from unit.for_each import for_each
from unit.planner.speed_samples import (
    GB,
    GEMMA,
    M27,
    OSS,
    QWEN8,
    QWEN8_FP4,
    QWEN30,
    QWEN36,
    SEED,
    SEED_SIZE,
    SUPER,
    V4,
    recipe,
)

# Report 003: tokens of context -> tokens/s of one stream, and seconds to the first token of a prompt of that length.
CURVE = {0: 45.7, 240_000: 39.4, 384_000: 36.4, 512_000: 36.1, 720_000: 35.0, 980_000: 30.4}
FIRST = {240_000: 2.4 * 60, 384_000: 4.3 * 60, 512_000: 6.2 * 60, 720_000: 10.1 * 60, 980_000: 16.6 * 60}
# Published decode of one stream on GB10: model, nodes, size of the checkpoint in GB (0: not given), tokens/s, source.
PUBLISHED = {
    "Qwen3-8B BF16 (byteshape)": (QWEN8, 1, 0, 13.87),
    "Qwen3-8B NVFP4 (heitor-mocelin)": (QWEN8_FP4, 1, 0, 39.6),
    "Qwen3-Omni-30B-A3B BF16 (martin)": (QWEN30, 1, 0, 30.8),
    "Qwen3-VL-30B-A3B FP8 (martin)": (replace(QWEN30, format="fp8", group=128, rows=128), 1, 0, 52.7),
    "Qwen3.6-35B-A3B FP8 (djangodevreng)": (replace(QWEN36, format="fp8", group=128, rows=128), 1, 0, 51.9),
    "Gemma-4-26B-A4B BF16 (jethac)": (GEMMA, 1, 0, 24.3),
    "gpt-oss-120b (martin)": (OSS, 1, 65.25, 56.1),
    "MiniMax-M2.7 NVFP4 on two nodes (saricles)": (M27, 2, 130.6, 26.2),
    "DeepSeek-V4-Flash on two nodes (pulsar)": (V4, 2, 160, 27.02),
}
ANY = st.sampled_from([QWEN8, QWEN8_FP4, QWEN30, QWEN36, M27, OSS, GEMMA, V4])
DEPTHS = st.integers(0, 1_000_000)


def measured(shape: ModelShape, made: Recipe, size: float = 0, anchor: Measured | None = None, **load: int) -> Speed:
    return estimate_speed(made, shape, int(size), Load(**load), anchor)


@for_each("name", PUBLISHED)
def test_published_decoding_is_met(name: str) -> None:
    """One stream without drafts, from dimensions alone: within a fifth, and inside the interval."""
    shape, nodes, size, tokens = PUBLISHED[name]
    found = measured(shape, recipe(nodes), size * GB).decode
    assert found.value == pytest.approx(tokens, rel=0.2)
    assert found.low <= tokens <= found.high


def test_seed_003_is_met_from_its_first_point() -> None:
    """Decoding down to 980,000 tokens of context follows from the figure at none, within a tenth."""
    first = Measured(CURVE[0])
    found = {depth: measured(V4, SEED, SEED_SIZE, first, depth=depth).decode.value for depth in CURVE}
    assert found == pytest.approx(CURVE, rel=0.1)


@pytest.mark.parametrize("depth", [240_000, 512_000, 980_000])
def test_seed_003_is_met_from_a_deep_point(depth: int) -> None:
    """It does not matter much where the one figure is from."""
    found = {d: measured(V4, SEED, SEED_SIZE, Measured(CURVE[depth], depth), depth=d).decode.value for d in CURVE}
    assert found == pytest.approx(CURVE, rel=0.11)


def test_seed_003_waits_as_long_for_the_first_token() -> None:
    """Prompts of 240,000 to 980,000 tokens take 2.4 to 16.6 minutes: within a tenth, without any calibration."""
    found = {tokens: measured(V4, SEED, SEED_SIZE, prompt=tokens).ttft.value for tokens in FIRST}
    assert found == pytest.approx(FIRST, rel=0.1)


def test_seed_003_runs_two_streams() -> None:
    """36.5 tokens/s alone and 54.4 for two together (its second table)."""
    found = measured(V4, SEED, SEED_SIZE, Measured(36.5), concurrency=2).decode_all.value
    assert found == pytest.approx(54.4, rel=0.1)


@pytest.mark.parametrize(("asked", "published"), [(6, 98), (12, 98), (24, 101)])
def test_seed_004_saturates_at_its_six_sequences(asked: int, published: float) -> None:
    """One figure, 37 tokens/s, is enough: the 1M profile runs six sequences, so more requests than that only wait."""
    found = measured(V4, SEED, SEED_SIZE, Measured(37), concurrency=asked).decode_all.value
    assert found == pytest.approx(published, rel=0.1)


@settings(max_examples=40)
@given(ANY, DEPTHS, st.integers(1, 64), st.integers(1, 4))
def test_an_interval_holds_its_estimate(shape: ModelShape, depth: int, streams: int, nodes: int) -> None:
    """Fast rates are never slower than likely ones, nor those than slow ones, whatever is asked."""
    split = recipe(split=Parallelism(pp=nodes))
    found = measured(shape, split, 100 * GB, depth=depth, concurrency=streams, prompt=1000)
    for one in (found.decode, found.decode_all, found.prefill, found.ttft, found.loading):
        assert 0 < one.low <= one.value <= one.high


@settings(max_examples=40)
@given(ANY, DEPTHS, DEPTHS, st.integers(1, 32))
def test_more_context_is_never_faster(shape: ModelShape, one: int, other: int, streams: int) -> None:
    """Every further token in the cache is read or asked."""
    near, far = (measured(shape, recipe(), depth=d, concurrency=streams).decode for d in sorted((one, other)))
    assert far.value <= near.value


@settings(max_examples=40)
@given(ANY, st.integers(1, 63))
def test_more_streams_share(shape: ModelShape, streams: int) -> None:
    """One more stream slows each of the others down."""
    few, more = (measured(shape, recipe(), concurrency=n, depth=4096).decode for n in (streams, streams + 1))
    assert more.value <= few.value


def test_rates_are_the_machines() -> None:
    """No estimate reads faster than the memory does: 8 billion BF16 numbers take 61 ms at 273 GB/s."""
    assert 1 / measured(QWEN8, recipe()).decode.high > 15.1e9 / 273e9


def test_llama_cpps_rpc_waits_longer_than_nccl() -> None:
    """Nemotron-3-Super in Q8_0 on two nodes: 10.5 tokens/s (sparkbase), where bytes and kernels alone give 15."""
    q8 = replace(SUPER, format="int8", group=32, expert_format="", expert_group=0, mtp_layers=0)
    rpc, nccl = (recipe(split=Parallelism(pp=2), engine=name) for name in ("llama-cpp", "vllm"))
    slow, fast = (measured(q8, made, 128 * GB).decode for made in (rpc, nccl))
    assert slow.low < 10.5 < slow.high < fast.high
    assert slow.value == pytest.approx(10.5, rel=0.2)


def test_sockets_cost_more_than_rdma() -> None:
    """Exchanges over TCP take a third of a millisecond and more: MiniMax has 124 of them a token."""
    env = {"NCCL_IB_DISABLE": "1"}
    tcp, rdma = (measured(M27, recipe(2, env=e), 130.6 * GB).decode for e in (env, {"NCCL_NET": "IB"}))
    assert 1 / tcp.value - 1 / rdma.value == pytest.approx(124 * (400e-6 - 85e-6), rel=0.01)


def test_eager_mode_hurts_where_kernels_are_small() -> None:
    """gpt-oss-120b loses a third and more (59 -> 26 published); 24 billion dense BF16 numbers hide the launches."""
    off = {"enforce-eager": True}
    dense = replace(QWEN8, layers=40, hidden=5120, intermediate=32768)
    lost = [1 - measured(s, recipe(flags=off)).decode.value / measured(s, recipe()).decode.value for s in (OSS, dense)]
    assert lost[0] > 0.25
    assert lost[1] == 0


def test_batches_without_a_graph_are_launched_by_the_cpu() -> None:
    """A graph captured for 8 tokens does not help 12 sequences (capture sequences x drafts)."""
    tiny = replace(QWEN8_FP4, hidden=1024, heads=16, intermediate=3072, layers=28)
    small, large = (recipe(flags={"max-cudagraph-capture-size": n}) for n in (8, 64))
    assert measured(tiny, small, concurrency=12).decode.value < measured(tiny, large, concurrency=12).decode.value
    assert measured(tiny, small, concurrency=8) == measured(tiny, large, concurrency=8)


def test_a_cached_prefix_is_not_read_again() -> None:
    """Nine tenths of a prompt in the prefix cache save most of the wait, but not its attention."""
    cold = measured(QWEN8, recipe(), prompt=50_000).ttft.value
    warm = measured(QWEN8, recipe(), prompt=50_000, cached=45_000).ttft.value
    short = measured(QWEN8, recipe(), prompt=5_000).ttft.value
    assert short < warm < 0.3 * cold


def test_prompts_that_arrive_together_wait() -> None:
    """Six cold prompts of 131,072 tokens: 282 s on the average where one takes 80 (MiaAI, two nodes)."""
    one, six = (measured(V4, SEED, SEED_SIZE, prompt=131_072, concurrency=n).ttft.value for n in (1, 6))
    assert six / one == pytest.approx(282 / 80.4, rel=0.05)


def test_small_prompts_share_a_step() -> None:
    """Two and four prompts of 2,048 tokens fit into one step of 8,192: 1.2 s, 2.2 s, 3.7 s (report 003)."""
    one, two, four = (measured(V4, SEED, SEED_SIZE, prompt=2048, concurrency=n).ttft.value for n in (1, 2, 4))
    assert two / one == pytest.approx(2.2 / 1.2, rel=0.15)
    assert four / one == pytest.approx(3.7 / 1.2, rel=0.3)


def test_a_short_prompt_takes_one_reading_of_the_weights() -> None:
    """40 tokens of Qwen3-8B in BF16 took 76 ms on a GB10, 16 GB at its pace, and no second step (vLLM 0.24)."""
    found = measured(QWEN8, recipe(), prompt=40).ttft
    assert found.value == pytest.approx(0.076, rel=0.35)
    assert found.low < 0.076 < found.high and not any("step" in line for line in found.why)


def test_prompts_of_one_step_read_the_weights_once() -> None:
    """Eight prompts of 64 tokens may be read in one step, or one after the other: only the fast end shares it."""
    one, eight = (measured(QWEN8, recipe(batched_tokens=8192), prompt=64, concurrency=n).prefill for n in (1, 8))
    assert eight.high > 3 * one.high
    assert (eight.value, eight.low) == (one.value, one.low)


def test_the_text_decides_how_many_drafts_are_accepted() -> None:
    """Guards that a story is not promised the speed of a list: GLM-5.3-Flash gave 29, 62 and 70 tokens/s for them."""
    made = recipe(2, speculation=("dflash2", 7))
    texts = ("prose", "code", "counting")
    prose, code, counting = (estimate_speed(made, V4, SEED_SIZE, Load(text=text)).decode for text in texts)
    assert 1.5 * prose.value < code.value < counting.value
    assert prose.high / prose.low < measured(V4, made, SEED_SIZE).decode.high / measured(V4, made, SEED_SIZE).decode.low
    plain = [estimate_speed(recipe(2), V4, SEED_SIZE, Load(text=text)).decode for text in ("", *texts)]
    assert plain == plain[:1] * 4


def test_drafts_write_a_state_for_each_token() -> None:
    """Guards linear attention with drafts: what is taken back needs the state from before, so each is written."""
    made = recipe(speculation=("mtp", 3))
    steps = [
        decode_step(DecodedModel(made, replace(QWEN36, state_layers=n), 0, layers_of(made, n)), Load(), LIKELY, 4)
        for n in (0, 30)
    ]
    once = decode_step(DecodedModel(made, QWEN36, 0, layers_of(made, 30)), Load(), LIKELY, 1)
    assert steps[1].cache == pytest.approx(2.5 * once.cache) and not steps[0].cache


def layers_of(made: Recipe, states: int) -> tuple[CacheLayers, ...]:
    """The layout of Qwen3.6's states, or of none."""
    found = layers(made, QWEN36)
    assert isinstance(found, tuple)
    return tuple(one for one in found if one.kind is CacheKind.STATE) if states else ()


def test_drafts_are_accepted_less_often_far_inside_a_context() -> None:
    """Guards the range at depth: the low end falls faster than reading the cache explains."""
    made = recipe(2, speculation=("mtp", 3))
    shallow, deep = (measured(V4, made, SEED_SIZE, depth=depth).decode for depth in (0, 262_144))
    assert deep.value / deep.low > 1.04 * shallow.value / shallow.low


def test_an_anchor_with_drafts_is_less_sure() -> None:
    """Guards a measured speed that had drafts: another text or day gave a third more or less (17 published runs)."""
    made, plain = recipe(2, speculation=("mtp", 3)), recipe(2)
    drafted, alone, known = (
        measured(V4, one, SEED_SIZE, Measured(30.0, accepted=chance)).decode
        for one, chance in ((made, 0.0), (plain, 0.0), (made, 0.7))
    )
    assert drafted.high / drafted.low > 1.5 * alone.high / alone.low
    assert known.high / known.low == pytest.approx(alone.high / alone.low)


def test_a_gguf_file_is_read_at_its_own_size_and_its_engine_s_pace() -> None:
    """Guards Q4_K_M mixes: 27B of 16.5 GB gave 11.3 tokens/s where 4 bits at another engine's pace promise 14.9."""
    gguf = replace(QWEN8, quantization="gguf", format="4.890bit", group=0)
    small, large = (measured(gguf, recipe(engine="llama-cpp"), size * GB).decode for size in (4.7, 9.4))
    assert small.value == pytest.approx(2 * large.value, rel=0.15)
    other = measured(gguf, recipe(engine="vllm"), 4.7 * GB).decode
    assert small.value < 0.97 * other.value and small.high / small.low > other.high / other.low


def test_tables_off_memory_cost_time_in_each_step() -> None:
    """Guards one node with n-grams on disk: rows took 2 of 57 ms where staged, and steps twice as long elsewhere."""
    made = recipe()
    off = replace(made, model=replace(made.model, on_disk=50 * GB))
    inside, outside = (measured(QWEN36, one, 25 * GB).decode for one in (made, off))
    assert 1 / outside.value - 1 / inside.value == pytest.approx(2e-3)
    assert outside.low < 0.6 * inside.low and any("off memory" in line for line in outside.why)


def test_rows_that_are_read_one_by_one_slow_a_prompt() -> None:
    """Guards Qwen3.8-Flash-Next on llama.cpp: prompts at 215 to 545 tokens/s, where the products allow 900."""
    for engine, slower in (("llama-cpp", True), ("vllm", False)):
        made = recipe(engine=engine)
        off = replace(made, model=replace(made.model, on_disk=27 * GB))
        inside, outside = (estimate_speed(one, QWEN36, 25 * GB, Load(prompt=8192)).prefill for one in (made, off))
        assert (outside.value < 0.6 * inside.value) is slower
        assert any("rows of tables off memory" in line for line in outside.why) is slower


def test_kernels_of_a_plugin_are_less_sure() -> None:
    """Guards EXL3, AQLM and QTIP: their kernels are not the engine's, and published runs differ by two."""
    plain, packed = (measured(replace(QWEN8, format=f, group=0), recipe(), 4 * GB).decode for f in ("int4", "4.000bit"))
    assert packed.value < plain.value and packed.high / packed.low > 1.5 * plain.high / plain.low


def test_acceptance_narrows_the_interval() -> None:
    """The acceptance of drafts is the largest unknown; once measured, only the machine is left."""
    known = measured(V4, SEED, SEED_SIZE, Measured(accepted=0.8)).decode
    guessed = measured(V4, SEED, SEED_SIZE).decode
    assert known.high / known.low < guessed.high / guessed.low


@pytest.mark.parametrize(
    ("shape", "word"),
    [
        (replace(QWEN8, hidden=0), "hidden"),
        (replace(QWEN8, format="q2_k", vocab=0), "vocab"),
        (ModelShape(2, 8, 8), "hidden"),
    ],
)
def test_what_is_not_known_is_not_guessed(shape: ModelShape, word: str) -> None:
    """There is no figure without a dimension, and the estimate reports which one is missing."""
    found = measured(shape, recipe(), 10 * GB)
    for one in (found.decode, found.decode_all, found.prefill, found.ttft):
        assert not one.known
        assert word in one.why[0]
    assert measured(shape, recipe()).loading == Estimate(0.0, why=("the checkpoint's size is not known",))


@pytest.mark.parametrize(
    "shape",
    [
        replace(QWEN8, kv_heads=0),
        replace(QWEN30, experts_per_token=200),
        replace(V4, rope_dim=1000),
        replace(QWEN8, window_layers=50, state_layers=60, state_width=10, single_blocks=True, ffn_layers=-30),
    ],
)
def test_nonsense_is_called_so(shape: ModelShape) -> None:
    """A config.json may report anything: no division by nothing, and no negative bytes."""
    assert "contradict" in measured(shape, recipe(2), 10 * GB).decode.why[0]


def test_an_unknown_cache_only_hides_what_depends_on_it() -> None:
    """A layout that nobody knows matters at depth, not for the first tokens."""
    odd = replace(V4, compress=(1, 2) * 21 + (4,))
    assert measured(odd, SEED, SEED_SIZE).decode.known
    assert not measured(odd, SEED, SEED_SIZE, depth=100_000).decode.known


def test_every_estimate_shows_its_arithmetic() -> None:
    """`plan --why` has weights, cache, kernels, exchanges, drafts and the measurement that scaled them."""
    found = measured(V4, SEED, SEED_SIZE, Measured(45.7), depth=240_000, prompt=4096)
    said = "\n".join((*found.decode.why, *found.ttft.why, *found.loading.why))
    for word in (
        "weights",
        "cache of 244,096 tokens",
        "kernels",
        "exchanges",
        "mtp drafts 2",
        "45.7 tokens/s measured",
    ):
        assert word in said
    for word in ("4,096 tokens in 1 chunk", "attention", "drafts", "files", "graphs"):
        assert word in said


def test_tables_are_not_read() -> None:
    """Guards that tables of which a token needs single rows cost memory and no time, with a size and without."""
    tabled = replace(QWEN8, tables=50 * GB, table_format="fp8")
    for plain, more in ((0, 0), (int(16.38 * GB), 50 * GB)):
        before, after = (
            estimate_speed(recipe(), model, size, Load(prompt=2048)).decode.value
            for model, size in ((QWEN8, plain), (tabled, plain + more))
        )
        assert after == pytest.approx(before, rel=0.01)
