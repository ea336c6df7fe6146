"""/metrics pages as live figures."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkwright.domain.live import LiveEngine
from sparkwright.engines.catalog import ENGINES
from sparkwright.engines.tables import metric_names
from sparkwright.facts.engine_metrics import FIELDS, read

CAPTURES = Path(__file__).resolve().parents[4] / "shared" / "captures"
PAGE = """# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="a } b \\"c\\""} 3.0
vllm:num_requests_running{engine="1",model_name="x"} 2.0
vllm:kv_cache_usage_perc{engine="0",model_name="x"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="x"} 0.75
vllm:generation_tokens_total{engine="0",model_name="x"} 1.5e+06 1795233950123
vllm:generation_tokens_created{engine="0",model_name="x"} 1.795e+09
vllm:request_success_total{engine="0",finished_reason="stop",model_name="x"} 7.0
vllm:request_success_total{engine="0",finished_reason="length",model_name="x"} 2.0
vllm:iteration_tokens_total_bucket{engine="0",le="1.0"} 5.0
vllm:iteration_tokens_total_count{engine="0",model_name="x"} 301.0
vllm:prompt_tokens_total{engine="0",model_name="x"} NaN
"""


def test_labels_are_summed_and_shares_are_not() -> None:
    """Two engines' requests and tokens add up, their pools do not; NaN and what is missing is None."""
    found = read(PAGE, metric_names("vllm"), 5.0)
    assert found == LiveEngine(
        5.0, running=5.0, kv_usage=0.75, generation_tokens=1_500_000.0, finished=9.0, iterations=301.0
    )


def test_reasons_are_told_apart() -> None:
    """Recorded from vLLM 0.32.0, whose labels are sorted: the part that waits for no room, and that repeated itself."""
    text = """vllm:num_requests_waiting{engine="0",model_name="tiny"} 5.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="tiny",reason="capacity"} 3.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="tiny",reason="deferred"} 2.0
vllm:request_success_total{engine="0",finished_reason="stop",model_name="tiny"} 7.0
vllm:request_success_total{engine="0",finished_reason="abort",model_name="tiny"} 9.0
vllm:request_success_total{engine="0",finished_reason="repetition",model_name="tiny"} 4.0
vllm:admission_rejections_total{model_name="tiny",reason="max_num_queued_reqs"} 6.0
"""
    found = read(text, metric_names("vllm"), 5.0)
    assert found == LiveEngine(5.0, waiting=5.0, deferred=2.0, finished=11.0, repeating=4.0, refused=6.0)


@pytest.mark.parametrize("text", ["", "<html>404</html>", '{"error": "no"}', "other:metric 5\n", "# HELP only\n"])
def test_another_page_is_none(text: str) -> None:
    """A page of another engine, of a proxy, or of nothing is none."""
    assert read(text, metric_names("vllm"), 5.0) is None


def test_every_field_has_a_word_of_the_vocabulary() -> None:
    """A word that is renamed must not silently lose a figure."""
    words = {word for name in ENGINES for word in metric_names(name)}
    assert set(FIELDS.values()) <= words
    assert set(FIELDS) <= set(LiveEngine.__dataclass_fields__)


def test_llama_cpp_reports_its_decode_calls() -> None:
    """They move with every batch, its token counters only when a request ends."""
    text = "llamacpp:n_decode_total 332\nllamacpp:requests_processing 1\nllamacpp:tokens_predicted_total 8\n"
    found = read(text, metric_names("llama-cpp"), 1.0)
    assert found is not None
    assert (found.iterations, found.running, found.generation_tokens, found.kv_usage) == (332.0, 1.0, 8.0, None)


def test_sglang_reports_its_pool() -> None:
    """token_usage, and requests by whether they stream."""
    text = (
        'sglang:token_usage{tp_rank="0"} 0.31\nsglang:num_requests_total{s="a"} 4\nsglang:num_requests_total{s="b"} 3\n'
    )
    found = read(text, metric_names("sglang"), 1.0)
    assert found is not None
    assert (found.kv_usage, found.finished) == (0.31, 7.0)


def test_a_recorded_page_of_sglang_is_read() -> None:
    """Eight requests run; 69 of the 118 prompt tokens of those that ended came from the radix cache."""
    page = (Path(__file__).parents[2] / "data/captures/sglang/metrics.txt").read_text()
    found = read(page, metric_names("sglang"), 1.0)
    assert found is not None
    assert (found.running, found.waiting, found.finished) == (8.0, 0.0, 8.0)
    assert (found.prefix_hits, found.prefix_queries, found.generation_tokens) == (69.0, 118.0, 168.0)


@pytest.mark.parametrize(
    ("page", "wanted"),
    [
        ("1node/metrics-idle.txt", {"running": 0.0, "generation_tokens": 0.0, "iterations": 0.0, "kv_usage": 0.0}),
        (
            "1node/metrics-busy.txt",
            {"running": 30.0, "generation_tokens": 3813.0, "finished": 9.0, "iterations": 301.0},
        ),
        ("1node/metrics-after.txt", {"prompt_tokens": 198168.0, "prefix_hits": 191536.0, "prefix_queries": 198168.0}),
        ("speculation-agent/metrics-ngram.txt", {"drafts": 78.0, "draft_tokens": 362.0, "accepted_tokens": 362.0}),
    ],
)
def test_the_recorded_pages_are_read(page: str, wanted: dict[str, float]) -> None:
    """vLLM 0.21.0's own pages, idle, with 30 requests running, afterwards, and with speculation."""
    file = CAPTURES / f"vllm-0.21.0-{page}"
    if not file.is_file():
        pytest.skip("data: ../shared is absent: the recorded pages are there")
    found = read(file.read_text(), metric_names("vllm"), 1.0)
    assert {name: getattr(found, name) for name in wanted} == wanted


@given(st.lists(st.sampled_from(PAGE.splitlines()) | st.text(max_size=60), max_size=20))
def test_no_page_makes_it_raise(lines: list[str]) -> None:
    """Cut, shuffled or foreign."""
    read("\n".join(lines), metric_names("vllm"), 1.0)
