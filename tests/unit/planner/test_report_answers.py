"""The questions to the planner for a row, and the answers of the estimator in use elsewhere."""

import json
from pathlib import Path
from typing import Any

import planner_report_memory as memory
import planner_report_peer as peer
import planner_report_speed as speed
import pytest
from planner_report_answers import PlannerAnswer, attention_kind
from planner_report_rows import PlannerCase, load

from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import EngineChoice, Model, Recipe, Serving
from unit.planner.report_samples import FACTS, published_row

POINT = {"depth": 0, "concurrency": 1, "tps": 30.0, "aggregate": False}


def load_case(folder: Path, **changes: Any) -> PlannerCase:
    (folder / "models.jsonl").write_text(json.dumps(FACTS))
    (folder / "rows.jsonl").write_text(json.dumps(published_row(**changes)))
    return load(folder / "rows.jsonl")[0]


def shape_case(shape: ModelShape, kv_dtype: str = "", size: int = 0) -> PlannerCase:
    recipe = Recipe("row", "", Model(), EngineChoice("vllm", "0.21.0"), serving=Serving(kv_dtype=kv_dtype))
    return PlannerCase(published_row(), recipe, shape, size, 0)


def answers(found: PlannerCase) -> dict[str, list[PlannerAnswer]]:
    grouped: dict[str, list[PlannerAnswer]] = {}
    for answer in (*memory.answers(found), *speed.answers(found)):
        grouped.setdefault(answer.quantity, []).append(answer)
    return grouped


@pytest.mark.parametrize(
    ("shape", "bytes_a_token"),
    [
        (ModelShape(61, 128, 1, hidden=7168, head_dim=192, latent=576), 1_748_992),
        (ModelShape(48, 16, 2, head_dim=256, state_layers=36), 98_304),
        (ModelShape(36, 64, 8, head_dim=64, full_layers=18, window_layers=18), 73_728),
        (ModelShape(62, 32, 16, head_dim=128, full_layers=10, window_layers=52), 507_904),
    ],
    ids=("DeepSeek-V3", "Qwen3-Next-80B", "gpt-oss-120b", "Gemma-3-27B"),
)
def test_the_other_estimator_counts_every_layer_in_full(shape: ModelShape, bytes_a_token: int) -> None:
    """The figures that its own functions gave for these models' config values (BF16)."""
    assert peer.tokens(shape_case(shape), 1e12) == pytest.approx(1e12 / bytes_a_token)
    assert peer.tokens(shape_case(shape, "fp8"), 1e12) == pytest.approx(2e12 / bytes_a_token)


def test_the_other_estimator_reports_nothing_without_a_size(tmp_path: Path) -> None:
    """No checkpoint, no parameters: no figure, instead of a pool without weights."""
    found = shape_case(ModelShape(48, 16, 2, head_dim=256))
    assert (peer.weights(found), peer.kv_pool_bytes(found), peer.context_fits(found)) == (None, None, None)


def test_kinds_follow_what_is_cached() -> None:
    """The strangest part of a model names its kind."""
    plain = ModelShape(32, 32, 8, head_dim=128)
    assert attention_kind(shape_case(plain)) == "GQA, MHA"
    assert attention_kind(shape_case(ModelShape(32, 32, 8, window_layers=16, window=128))) == "sliding window + full"
    assert attention_kind(shape_case(ModelShape(32, 32, 8, state_layers=24))) == "linear or Mamba hybrid"
    assert attention_kind(shape_case(ModelShape(32, 32, 1, latent=576, index_layers=32))) == "sparse MLA with indexer"


def test_a_row_is_asked_for_what_it_publishes(tmp_path: Path) -> None:
    """No figure, no answer; figures that are text, null or zero are none."""
    found = answers(load_case(tmp_path, weights_gib_per_node=4.9, kv_cache_gib=None, decode_tps=[POINT, {"tps": None}]))
    assert {name: len(each) for name, each in found.items()} == {"weights_gib": 1, "fits": 1, "decode_tps": 1}


def test_streams_and_drafts_are_quantities_of_their_own(tmp_path: Path) -> None:
    """A median over single streams is not mixed with aggregates, nor with speculation that only a remark reports."""
    many, remark = {**POINT, "concurrency": 8}, {**POINT, "note": "peak, ngram spec"}
    found = answers(load_case(tmp_path, decode_tps=[POINT, many, remark]))
    assert [len(found[name]) for name in (speed.DECODE, speed.CONCURRENT, speed.DRAFTED)] == [1, 1, 1]
    assert found[speed.DRAFTED][0].predicted is None


def test_a_curve_is_predicted_from_its_first_point(tmp_path: Path) -> None:
    """The other points lie on the curve through the one measured point."""
    curve = [{**POINT, "depth": depth, "tps": tps} for depth, tps in ((0, 50.0), (8192, 45.0), (32768, 40.0))]
    found = answers(load_case(tmp_path, decode_tps=curve))[speed.CALIBRATED]
    assert [one.conditions["depth"] for one in found] == [8192, 32768]
    assert 50 > (found[0].predicted or 0) > (found[1].predicted or 0) > 0


def test_an_aggregate_of_whole_requests_waits_for_their_prompts(tmp_path: Path) -> None:
    """Four requests with long prompts write far less a second than four streams that are already writing."""
    streams = {"depth": 16384, "concurrency": 4, "tps": 30.0, "aggregate": True}
    steady, whole = answers(load_case(tmp_path, decode_tps=[streams, {**streams, "gen": 128}]))[speed.CONCURRENT]
    assert 0 < (whole.predicted or 0) < (steady.predicted or 0) / 2
    assert (whole.low or 0) < (whole.predicted or 0) < (whole.high or 0)


def test_a_rate_over_the_whole_context_is_of_one_long_prompt(tmp_path: Path) -> None:
    """Some sources divide the whole context by its time, and name the last part as the prompt."""
    point = {"depth": 100_000, "prompt": 1024, "concurrency": 1, "tps": 1000.0}
    whole = answers(load_case(tmp_path, prefill_tps=[point], notes="measured over the whole context"))[speed.PREFILL]
    part = answers(load_case(tmp_path, prefill_tps=[point]))[speed.PREFILL]
    assert whole[0].conditions["prompt"] == 101_024
    assert part[0].conditions == {"depth": 100_000, "concurrency": 1, "prompt": 1024}


def test_only_failures_of_memory_are_the_planners(tmp_path: Path) -> None:
    """A kernel that is missing reports nothing about fitting."""
    assert "fits" not in answers(load_case(tmp_path, fits=False, failure="no kernel for sm_121"))
    assert answers(load_case(tmp_path, fits=False, failure="CUDA OOM at start"))["fits"][0].published is False


STATED = {"gpu_memory_utilization": 0.8, "max_model_len": 32768, "max_num_seqs": 8}


def test_a_fraction_that_nobody_gives_may_be_any(tmp_path: Path) -> None:
    """A row without its fraction is neither refused nor reported to fit; without one no pool is predicted."""
    found = answers(load_case(tmp_path, gpu_memory_utilization=None, kv_cache_gib=50.0))
    assert (found["fits"][0].predicted, found["fits"][0].passed) == (None, True)
    assert "does not state the memory fraction" in found["fits"][0].reason
    assert found["kv_gib"][0].reason == "the source gives no memory fraction"


def test_a_row_fits_only_when_every_condition_is_stated(tmp_path: Path) -> None:
    """Each condition that decides turns a verdict into none when it is left out; a refusal stays one.

    A context that nobody gives is the longest that the model takes.
    """
    assert answers(load_case(tmp_path, **STATED))["fits"][0].predicted is True
    assert answers(load_case(tmp_path, **STATED | {"max_model_len": None}))["fits"][0].predicted is True
    for name in ("gpu_memory_utilization", "max_num_seqs"):
        assert answers(load_case(tmp_path, **STATED | {name: None}))["fits"][0].passed
    small = answers(load_case(tmp_path, **STATED | {"gpu_memory_utilization": 0.05, "max_num_seqs": None}))["fits"][0]
    assert (small.predicted, small.passed) == (False, False)


def test_a_split_that_engines_refuse_is_a_forks(tmp_path: Path) -> None:
    """A fork's handling of 32 heads on three ranks is unknown: no row of it gets the verdict fits."""
    assert answers(load_case(tmp_path, **STATED, tp=3))["fits"][0].passed


def test_a_count_is_less_sure_where_the_version_is_not_reported(tmp_path: Path) -> None:
    """The effect of versions and steps' tokens is in the interval of a row that does not report them."""
    window = {"model": "Gemma-4-31B-it", "quant": "bf16", "kv_cache_gib": 40.0, "kv_cache_tokens": 100_000}
    told = load_case(tmp_path, **window, max_num_batched_tokens=8192, engine_version_or_image="0.21.0")
    silent = load_case(tmp_path, **window, engine_version_or_image=None)
    sure, unsure = (answers(one)["kv_tokens_given_gib"][0] for one in (told, silent))
    assert sure.low is not None and unsure.low is not None and sure.high is not None and unsure.high is not None
    assert sure.high - sure.low < 0.01 * sure.high < unsure.high - unsure.low


def test_a_pool_that_is_pinned_is_no_prediction(tmp_path: Path) -> None:
    """A repetition of the command's own figure is no answer."""
    pinned = answers(load_case(tmp_path, kv_cache_gib=24.0, notes="extra args: --kv-cache-memory-bytes 25769803776"))
    assert pinned["kv_gib"][0].reason == "the command fixes the pool: nothing to predict"


def test_no_room_at_all_is_an_answer(tmp_path: Path) -> None:
    """A pool of nothing, where there was one, is wrong by all of it and not left out."""
    tight = load_case(tmp_path, gpu_memory_utilization=0.03, kv_cache_gib=1.0, max_num_seqs=8)
    found = answers(tight)["kv_gib"][0]
    assert (found.predicted, found.error) == (0.0, -1.0)


def test_limits_that_are_not_reported_decide_a_small_pool_only(tmp_path: Path) -> None:
    """8,192 batched tokens or 2,048, 1,024 sequences or 16: nothing of a large fraction and much of a small one."""
    small = {"gpu_memory_utilization": 0.08, "kv_cache_gib": 4.0}
    silent = answers(load_case(tmp_path, **small))["kv_gib"][0]
    assert (silent.predicted, "hangs on them" in silent.reason) == (None, True)
    assert answers(load_case(tmp_path, **small, max_num_seqs=16))["kv_gib"][0].predicted
    assert answers(load_case(tmp_path, **small | {"gpu_memory_utilization": 0.9}))["kv_gib"][0].predicted


def test_figures_that_are_too_coarse_are_not_compared_with_anyone(tmp_path: Path) -> None:
    """0.02 GiB may be 0.015 or 0.025: no count of tokens follows from it."""
    found = answers(load_case(tmp_path, kv_cache_gib=0.02, kv_cache_tokens=300))["kv_tokens_given_gib"]
    assert found[0].reason == "the source's GiB are rounded too coarsely"


GEMMA = {"model": "Gemma-4-31B-it", "quant": "bf16", "kv_cache_gib": 40.0, "max_num_batched_tokens": 8192}


def generation(folder: Path, image: str | None, concurrency: float | None) -> PlannerAnswer:
    """The tokens in 40 GiB of a row that prints so many contexts at once."""
    made = published_row(**GEMMA, kv_cache_tokens=100_000, engine_version_or_image=image, date="2026-06")
    made["result"]["max_concurrency"] = concurrency
    (folder / "rows.jsonl").write_text(json.dumps(made))
    return answers(load(folder / "rows.jsonl")[0])["kv_tokens_given_gib"][0]


@pytest.mark.parametrize(
    ("image", "concurrency", "tokens", "low", "high"),
    [
        (None, 5.07, 165_982, 165_957, 166_002),
        (None, 8.38, 274_684, 87_376, 274_718),
        (None, 3.0, 274_684, 87_376, 274_718),
        ("0.20", 8.38, 87_376, 83_007, 274_684),
        ("0.20", None, 87_376, 83_007, 274_684),
        ("0.21.0", 5.07, 274_684, 274_642, 274_718),
    ],
    ids=("one generation", "several", "none", "no patch number", "no concurrency", "release stated"),
)
def test_a_printed_concurrency_identifies_the_generation(
    tmp_path: Path, image: str | None, concurrency: float | None, tokens: int, low: int, high: int
) -> None:
    """Releases whose blocks give another concurrency are left out; all others, and 5 % around an unread one, are in."""
    found = generation(tmp_path, image, concurrency)
    assert (found.predicted, found.low, found.high) == (tokens, low, high)
