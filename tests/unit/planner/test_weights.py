"""Bytes of weights on the fullest rank, checked against what real engines printed."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkwright.domain.checkpoint import Checkpoint, TensorGroup
from sparkwright.domain.facts import Unknown
from sparkwright.domain.ledger import Fit, Lack, LedgerLine, Origin
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Model, Parallelism, Recipe, Speculation
from sparkwright.domain.units import GIB, MIB, gib
from sparkwright.domain.verdict import Load
from sparkwright.planner.judge import verdict
from sparkwright.planner.kv_cache import capacity
from sparkwright.planner.ledger import ledger
from sparkwright.planner.parts import by_bytes, draft_layers, main, settled
from sparkwright.planner.speed import estimate_speed
from sparkwright.planner.stated import least_by_name
from sparkwright.planner.weights import WeightFactors, checkpoint_size, fitted, rank_weights, whole_size
from unit.checks.samples import ABSENT, WHOLE
from unit.for_each import for_each
from unit.planner.memory_samples import gb10_node, model_shape, recipe

MINIMAX = model_shape("minimax-m2.7-nvfp4")
V4 = model_shape("deepseek-v4-flash")


def with_size(made: Recipe, size: float) -> Recipe:
    return replace(made, model=replace(made.model, size=int(size)))


def weights_line(made: Recipe, checkpoint: object = None) -> LedgerLine:
    return rank_weights(made, made.model.shape, checkpoint)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "tp", "printed"),
    [
        ("qwen3-8b", 1, 15.27),
        ("qwen3-30b-a3b", 1, 56.88),
        ("dsv2-lite", 1, 29.32),
        ("minimax-m2.7-nvfp4", 2, 62.76),
        ("deepseek-v4-flash", 2, 74.08),
    ],
)
def test_as_vllm_printed_them(name: str, tp: int, printed: float) -> None:
    """Guards the count against `Model loading took ... GiB` of our own captures (vLLM 0.21.0), within 0.3 %."""
    found = weights_line(recipe(model_shape(name), tp=tp))
    assert found.bytes / GIB == pytest.approx(printed, rel=0.003)
    assert found.low is not None and found.high is not None and found.low < printed * GIB < found.high


def test_tables_next_to_the_vocabulary() -> None:
    """Guards the unsafe direction: without files or size, tables that only the config reports of are counted.

    Gemma-4-E4B's files are 14.9 GiB; 189 of DeepSeek-V4.1's 475 GiB are Engram, in memory unless reported otherwise.
    """
    assert weights_line(recipe(model_shape("gemma-4-e4b"))).bytes / GIB == pytest.approx(14.9, rel=0.03)
    engram = recipe(model_shape("deepseek-v4.1-flash"), tp=4)
    off = replace(engram, model=replace(engram.model, on_disk=203_000_000_000))
    assert (weights_line(engram).bytes - weights_line(off).bytes) * 4 / GIB == pytest.approx(189, rel=0.01)
    assert weights_line(with_size(off, 510e9)).bytes == pytest.approx(weights_line(off).bytes, rel=0.03)
    assert weights_line(with_size(engram, 510e9)).bytes == pytest.approx(weights_line(engram).bytes, rel=0.03)


def test_numbers_of_tables_that_nobody_reports() -> None:
    """Guards a format that no key names: the size reports it; without one the range holds all that are written."""
    mixed = replace(model_shape("qwen3.8-flash-next"), expert_format="nvfp4", expert_group=16)
    assert [settled(mixed, int(size)).table_format for size in (133e9, 183e9)] == ["fp8", "bf16"]
    assert weights_line(with_size(recipe(mixed, tp=2), 133e9)).bytes * 2 / 1e9 == pytest.approx(
        129, rel=0.01
    )  # and 4 of MTP
    found = weights_line(recipe(mixed, tp=2))
    assert found.low is not None and found.high is not None and found.origin is Origin.ASSUMED
    assert found.low < 62e9 and 89e9 < found.bytes < found.high


def test_tables_that_nobody_can_count() -> None:
    """Guards that a low figure does not look exact where a config names tables without their size."""
    untold = replace(model_shape("qwen3-8b"), tables_unknown=True)
    found, plain = weights_line(recipe(untold)), weights_line(recipe(model_shape("qwen3-8b")))
    assert found.high is not None and found.high > 2.4 * plain.bytes
    assert found.origin is Origin.ASSUMED and "nobody can count" in found.why and plain.origin is Origin.COMPUTED
    told = weights_line(with_size(recipe(untold), 16.4e9))
    assert told.high is not None and told.high < 1.1 * plain.bytes


def test_seed_minimax() -> None:
    """Guards report 001: about 65 GB of NVFP4 weights a node, and about 115 GB of FP8 ones, which leave no room."""
    fp8 = replace(MINIMAX, format="fp8", group=128, rows=128, expert_format="", expert_group=0)
    assert weights_line(with_size(recipe(MINIMAX, tp=2), 130.6e9)).bytes / 1e9 == pytest.approx(65, rel=0.05)
    assert weights_line(with_size(recipe(fp8, tp=2), 229e9)).bytes / 1e9 == pytest.approx(115, rel=0.02)


def test_draft_layers_are_loaded_for_speculation_only() -> None:
    """Guards that MTP layers count when they draft, and that a draft model next to the checkpoint does too."""
    plain, drafting, other = (
        weights_line(recipe(V4, tp=2, speculation=Speculation(method, 2))).bytes / GIB
        for method in ("", "mtp", "eagle3")
    )
    assert plain + 1 < drafting < plain + 2.5
    assert plain < other < plain + 1
    assert weights_line(recipe(V4, tp=2, speculation=Speculation("ngram", 5))).bytes / GIB == plain


def test_published_sizes() -> None:
    """Guards how a size corrects the count: nothing when it is a little less, all parts when it is more."""
    counted = weights_line(recipe(MINIMAX, tp=2)).bytes
    assert weights_line(with_size(recipe(MINIMAX, tp=2), 121.6 * GIB)).bytes == counted
    more = weights_line(with_size(recipe(MINIMAX, tp=2), 131.4 * GIB)).bytes
    assert more / counted == pytest.approx(131.4 / 125.2, rel=0.01)


@for_each(
    "size, exact, wanted",
    [
        (0, False, WeightFactors()),
        (20, True, WeightFactors()),
        (103, False, WeightFactors(draft=0.3)),
        (103, True, WeightFactors(draft=0.3)),
        (115, False, WeightFactors(draft=1.5)),
        (99, False, WeightFactors(1.0, 0.0)),
        (99, True, WeightFactors(0.99, 0.0)),
        (101, True, WeightFactors(1.01, 0.0)),
        (200, True, WeightFactors(rest=90)),
    ],
)
def test_what_a_size_reports(size: int, exact: bool, wanted: WeightFactors) -> None:
    """Guards each case by hand, for a model counted as 100 with draft layers of 10."""
    assert fitted(100, 10, size, exact) == wanted


def test_bytes_that_files_lack_may_be_the_models() -> None:
    """Guards a low end without drafts: files smaller than model and drafts may hold a lighter model (Nemotron 3
    Super)."""
    shape = model_shape("qwen3.8-flash-next")
    model, drafted = (sum(part.bytes for part in parts) for parts in (main(shape), draft_layers(shape)))
    files = model + 0.2 * drafted
    plain = weights_line(with_size(recipe(shape), files))
    assert plain.bytes == pytest.approx(model, rel=0.001) and plain.low is not None
    assert plain.low == pytest.approx(0.97 * model - 0.8 * drafted, rel=0.01)
    drafting = weights_line(with_size(recipe(shape, speculation=Speculation("mtp", 1)), files))
    assert drafting.bytes == pytest.approx(files, rel=0.001)
    assert drafting.low is not None and drafting.low == pytest.approx(0.97 * files, rel=0.005)


def test_what_tables_on_disk_leave_is_no_size_of_drafts() -> None:
    """Guards estimates: what is left of a checkpoint beside tables is too rough to make draft layers lighter."""
    assert fitted(100, 10, 103, exact=False, rough=True) == WeightFactors()


def test_tables_that_no_dimension_describes() -> None:
    """Guards that a checkpoint far beyond the count is shared out in full, and that the line reports it is not sure."""
    found = weights_line(with_size(recipe(MINIMAX, tp=2), 300 * GIB))
    assert found.bytes == pytest.approx(weights_line(recipe(MINIMAX, tp=2)).bytes + (300 - 125.3) / 2 * GIB, rel=0.01)
    assert found.origin is Origin.ASSUMED
    assert found.low is not None and found.low < 90 * GIB


def test_tables_that_stay_on_disk() -> None:
    """Guards that bytes that the recipe reports are never loaded are no weights, of its own figure and of the files."""
    made = recipe(MINIMAX, tp=2)
    made = replace(made, model=replace(made.model, size=300 * GIB, on_disk=int(174.8 * GIB)))
    files = replace(WHOLE, bytes=300 * GIB)
    assert weights_line(made).bytes == pytest.approx(weights_line(recipe(MINIMAX, tp=2)).bytes, rel=0.01)
    assert weights_line(made, files).bytes == pytest.approx(weights_line(recipe(MINIMAX, tp=2)).bytes, rel=0.01)


def test_stages_of_a_pipeline() -> None:
    """Guards that two stages hold half of the layers each, and the fuller one only one of the vocabularies."""
    one = weights_line(recipe(model_shape("qwen3-8b"))).bytes
    two = weights_line(recipe(model_shape("qwen3-8b"), parallelism=Parallelism(1, 2))).bytes
    assert two == pytest.approx(one / 2, rel=0.01)


def test_expert_tiles_are_padded() -> None:
    """Guards Marlin's padding of gpt-oss: 2880 wide experts become 3072 x 2944, 9 % more than the files."""
    plain = model_shape("gpt-oss-120b")
    padded = weights_line(recipe(plain)).bytes - weights_line(recipe(plain, "sglang 0.5.20")).bytes
    assert 3.5 * GIB < padded < 6 * GIB


def test_sglang_s_experts_are_as_its_kernels_hold_them() -> None:
    """Guards gpt-oss since 0.5.23: padded for a GB10 and by the flag, 1.37 times its files on a Hopper GPU."""
    plain = model_shape("gpt-oss-120b")
    before, made = recipe(plain, "sglang 0.5.20"), recipe(plain, "sglang 0.5.23")
    marlin = replace(made, flags={"moe-runner-backend": "marlin"})
    more = []
    for one, unified in ((made, True), (marlin, False), (made, False)):
        held, files = (rank_weights(each, plain, None, unified=unified).bytes for each in (one, before))
        more.append((held - files) / GIB)
    assert more == pytest.approx([5.13, 5.13, 21.0], rel=0.02)


@pytest.mark.parametrize("found", [ABSENT, None, Unknown("", "x"), replace(WHOLE, bytes=GIB, missing=("x",))])
def test_published_size_where_the_files_are_not_there(found: object) -> None:
    """Guards that a checkpoint that is still to be copied, or half copied, counts with its published size."""
    made = with_size(recipe(None, tp=2), 100 * GIB)
    assert weights_line(made, found).bytes == 50 * GIB
    assert "100.0 GiB (model.size of the recipe) / (tp 2 x pp 1), split evenly" in weights_line(made, found).why
    assert checkpoint_size(made, WHOLE) == (WHOLE.bytes, "files at /hub/big/snapshots/1")


def test_nothing_known_reports_it() -> None:
    """Guards that a missing figure is a line of 0 that is marked."""
    found = weights_line(recipe(None))
    assert (found.bytes, found.origin, found.why[:14]) == (0, Origin.ASSUMED, "size not known")


@for_each(
    "name, billions, bits",
    [
        ("nvidia/Nemotron-3-Ultra-550B-A55B-BF16", 550, 16),
        ("Qwen/Qwen3-235B-A22B-FP8", 235, 8),
        ("org/Hy3-295B-NVFP4-W4A16", 295, 4),
        ("org/big-70B", 70, 1.5),
        ("cyburn/Qwopus3.6-35B-A3B-v1-Blackwell-NVFP4-BF16-vllm-4.75bits", 35, 4),
        ("bleysg/Qwen3.5-122B-A10B-int4-fp8-hybrid", 122, 4),
    ],
)
def test_a_name_gives_the_least_that_weights_can_take(name: str, billions: float, bits: float) -> None:
    """A hint is rounded down: it must never refuse what fits."""
    least, why = least_by_name(name)
    assert least == int(0.9 * billions * 1e9 * bits / 8) and f"{billions:g}B parameters at {bits:g} bits" in why


@for_each("name", ["org/model", "org/A3B-tiny", "org/Phi-4", "org/v1b2-web", "org/llama-7bit"])
def test_a_name_without_a_count_hints_at_nothing(name: str) -> None:
    """Active parameters and parts of words are no counts."""
    assert least_by_name(name) == (0, "")


def test_a_name_can_only_make_the_verdict_worse() -> None:
    """550 billion parameters in BF16 do not fit on one node; 8 billion stay not known."""
    large, small = (
        verdict([ledger(recipe(None, model=Model(f"org/Some-{size}-BF16")), gb10_node(), None, 1)])
        for size in ("550B", "8B")
    )
    assert (large.fit, large.known, large.lack) == (Fit.NOT, False, Lack.POOL) and large.short > 800 * GIB
    assert (small.fit, small.kv) == (Fit.UNKNOWN, None) and "model.size" in small.missing[0]


def test_the_files_own_tensors_come_first() -> None:
    """Guards that tensors decide where there are any: what TP splits, and what is whole on both ranks."""
    groups = (
        TensorGroup("model.layers.#.self_attn.q_proj.weight", "BF16", 8 * GIB, 36),
        TensorGroup("model.layers.#.input_layernorm.weight", "BF16", 2 * GIB, 36),
    )
    files = replace(WHOLE, tensors=groups, bytes=10 * GIB)
    found = weights_line(recipe(model_shape("qwen3-8b"), "sglang 0.5.20", tp=2), files)
    assert gib(found.bytes) == "6.4 GiB"  # 8 / 2 + 2, and what SGLang counts with them
    assert found.why.endswith(": tensors of /hub/big/snapshots/1")


def test_a_tiny_file_beside_a_large_configuration_is_not_the_model() -> None:
    """One tensor of 1 MiB next to the config.json of an 8B model was planned as 1 MiB of weights."""
    files = replace(WHOLE, tensors=(TensorGroup("model.embed_tokens.weight", "BF16", MIB, 1),), bytes=MIB, weights=MIB)
    found = weights_line(recipe(model_shape("qwen3-8b"), "vllm 0.33.0"), files)
    assert gib(found.bytes) == "15.3 GiB" and "tensors of" not in found.why
    packed = TensorGroup("model.layers.#.mlp.up_proj.trellis", "I16", 3 * GIB, 36)
    three_bits = replace(files, tensors=(packed,), bytes=3 * GIB, weights=3 * GIB)
    assert "tensors of" in weights_line(recipe(model_shape("qwen3-8b"), "vllm 0.33.0"), three_bits).why


def test_files_smaller_than_their_own_config_leave_the_verdict_unknown() -> None:
    """Guards that 2 KB beside an 8B model's config.json are no checkpoint: neither that size nor the count decides."""
    shape = model_shape("qwen3-8b")
    files = replace(WHOLE, shape=shape, bytes=2150, weights=2150)
    made = recipe(shape, "vllm 0.33.0")
    made = replace(made, model=replace(made.model, size=0))
    found = weights_line(made, files)
    assert (found.bytes, found.known, found.low) == (0, False, pytest.approx(1.43 * GIB, rel=0.01))
    assert "hf download " in found.why and " --local-dir " in found.why
    assert verdict([ledger(made, gb10_node(), files, 1)]).fit is Fit.UNKNOWN
    unfinished = replace(files, missing=("model-00002-of-00004.safetensors (absent)",))
    for enough in (replace(files, weights=2 * GIB, bytes=2 * GIB), unfinished):
        assert weights_line(made, enough).known


def test_llama_cpp_splits_files_by_layers() -> None:
    """Guards that a GGUF's own size is shared out over the stages, whatever its dimensions report."""
    made = recipe(model_shape("qwen3-8b"), "llama-cpp 1", parallelism=Parallelism(1, 2))
    assert weights_line(with_size(made, 10 * GIB)).bytes == 5 * GIB


SHAPES = [
    model_shape(name)
    for name in ("qwen3-8b", "dsv2-lite", "deepseek-v4-flash", "minimax-m2.7-nvfp4", "gemma-4-26b-a4b")
]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.sampled_from(SHAPES), st.sampled_from([1, 2, 4, 8]), st.integers(0, 400), st.booleans())
def test_more_ranks_never_hold_more_each(of: ModelShape, tp: int, size: int, whole: bool) -> None:
    """Guards that splitting wider never raises what a rank holds, and that the range holds the figure."""
    files = Checkpoint("/m", "/m", "", size * GIB, 1) if whole else None
    found = [weights_line(with_size(recipe(of, tp=n), size * GIB), files) for n in (tp, 2 * tp)]
    # Padding of narrow slices may eat up what a split saves, not more.
    assert found[1].bytes <= found[0].bytes * 1.001
    assert all((x.low or 0) <= x.bytes <= (x.high or 0) for x in found)


@for_each("name, billions, bits", [("org/GLM-5.3-358B-exl3-2.25bpw", 358, 2.25), ("org/x-0.6B-Q4_K_M.gguf", 0.6, 4.89)])
def test_a_packing_s_name_gives_less_than_it_says(name: str, billions: float, bits: float) -> None:
    """Guards mixes: a published file named IQ4_XS has 3.8 bits of a weight, not 4.5."""
    assert least_by_name(name)[0] == int(0.8 * billions * 1e9 * bits / 8)


@for_each(
    "stated, gigabytes, bits, tables",
    [
        ("", 84.4, 2.0, "fp8"),  # BF16 tables alone are larger than the files: FP8 is the next usual way
        ("3.050bit", 84.4, 3.7, "3.69"),  # the author says 3.05: tables are packed with the rest
        ("3.050bit", 200.0, 3.05, ""),  # what is beyond stated bits was left as it was
        ("4.890bit", 70.0, 3.05, "3.0"),
    ],
)
def test_bits_are_those_that_explain_the_files(stated: str, gigabytes: float, bits: float, tables: str) -> None:
    """Guards EXL3 next to 51 billion numbers of n-grams: tables may be packed, too, and the name says how far."""
    plain = replace(model_shape("qwen3.8-flash-next"), format=stated, expert_format="", table_format="")
    found = by_bytes(plain, int(gigabytes * 1e9))
    assert found.format.endswith("bit") and float(found.format[:-3]) == pytest.approx(bits, abs=0.15)
    assert found.table_format.startswith(tables)


def test_a_format_that_nobody_knows_is_taken_from_the_files() -> None:
    """Guards EXL3, QTIP and what comes next: the bytes of the files are shared out, and nothing raises."""
    plain = replace(model_shape("qwen3-8b"), format="", tables=1_000_000_000, table_format="")
    for size in (0, 1, 5 * 10**9, 10**15):
        made = replace(recipe(plain), model=Model("org/odd", size=size, shape=plain))
        line = rank_weights(made, plain, None)
        assert line.known is (size > 0)
    made = replace(recipe(plain, tp=2), model=Model("org/odd", size=5 * 10**9, shape=plain))
    line = rank_weights(made, plain, None)
    assert "bit a number" in line.why and line.bytes == pytest.approx(2.5e9, rel=0.06)
    assert (
        line.low is not None and line.high is not None and line.low < 0.95 * line.bytes < 1.05 * line.bytes < line.high
    )


@given(
    st.sampled_from(("", "exl3", "q2_k", "3.25bit", "nvfp4", "fp8", "weird")),
    st.sampled_from(("", "tr3", "mxfp4", "1.00bit")),
    st.sampled_from((0, 1, 10**9, 70 * 10**9, 10**15)),
    st.sampled_from(("", "fp8", "turboquant_k3v4", "int2")),
    st.sampled_from(("qwen3-8b", "glm-5.3-flash", "deepseek-v4.1-flash", "qwen3.8-flash-next", "gemma-4-e4b")),
)
@settings(max_examples=60, deadline=None)
def test_no_format_raises(written: str, experts: str, size: int, cache: str, name: str) -> None:
    """Guards a plan for next month's packing: a figure with a range, or none, and never an error."""
    odd = replace(model_shape(name), format=written, expert_format=experts, quantization=written)
    made = recipe(odd, tp=2, serving={"kv_dtype": cache, "context": 8192}, speculation=Speculation("dflash", 7))
    made = replace(made, model=Model("org/odd", size=size, shape=odd))
    line = rank_weights(made, odd, None)
    assert line.bytes >= 0 and (line.known or not line.bytes)
    assert capacity(made, odd, 10 * GIB).bytes == 10 * GIB
    assert estimate_speed(made, odd, size, Load(depth=4096, prompt=4096)).load.depth == 4096


def test_other_checkpoints_are_not_shares_of_a_size_that_cannot_be() -> None:
    """Guards the table of other checkpoints: shares of a model.size far below the dimensions were 21 MiB."""
    of = recipe(MINIMAX, tp=2)
    sizes = {size: whole_size(with_size(of, size), MINIMAX, None) for size in (40 * MIB, 120 * GIB)}
    assert sizes == {40 * MIB: 0, 120 * GIB: 120 * GIB}
