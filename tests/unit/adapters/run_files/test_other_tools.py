"""Results of other tools that hold figures and no requests: each becomes a run without intervals, or is refused."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fakes.measured import KNOWN, PLAN, make_level, make_row, run
from sparkwright.adapters.run_files import formats
from sparkwright.domain.errors import UsageError
from sparkwright.domain.run import Run
from sparkwright.domain.summary import Interval, Metric
from sparkwright.loadgen.compare import compare
from sparkwright.loadgen.stats import summarize
from sparkwright.report.html import report_page
from sparkwright.report.markdown import markdown
from sparkwright.report.tables import levels_table

VLLM = {
    "date": "20260814-114707", "model_id": "acme/model", "tokenizer_id": "acme/model", "num_prompts": 100,
    "request_rate": 0.5, "burstiness": 1.0, "max_concurrency": None, "duration": 200.0, "completed": 98, "failed": 2,
    "total_input_tokens": 98000, "total_output_tokens": 19600, "request_throughput": 0.49, "request_goodput": None,
    "output_throughput": 98.0, "total_token_throughput": 588.0, "mean_ttft_ms": 700.0, "median_ttft_ms": 600.0,
    "std_ttft_ms": 50.0, "p99_ttft_ms": 2000.0, "mean_tpot_ms": 30.0, "median_tpot_ms": 25.0, "std_tpot_ms": 1.0,
    "p99_tpot_ms": 60.0, "mean_itl_ms": 28.0, "median_itl_ms": 24.0, "std_itl_ms": 5.0, "p99_itl_ms": 50.0,
}  # fmt: skip
BENCH = {
    "build_commit": "4df29be", "build_number": 7100, "cpu_info": "Cortex-X925", "gpu_info": "NVIDIA GB10",
    "backends": "CUDA", "model_filename": "m.gguf", "model_type": "gpt-oss 120B MXFP4 MoE", "model_size": 63387346464,
    "n_prompt": 512, "n_gen": 0, "n_depth": 0, "test_time": "2026-09-24T12:40:01Z", "avg_ns": 1, "stddev_ns": 0,
    "avg_ts": 1700.5, "stddev_ts": 12.5, "samples_ns": [1, 1], "samples_ts": [1688.0, 1713.0],
}  # fmt: skip
TABLE = """
ggml_cuda_init: found 1 CUDA devices:
| model                  |       size |   params | backend    | ngl | fa |           test |             t/s |
| ---------------------- | ---------: | -------: | ---------- | --: | -: | -------------: | --------------: |
| gpt-oss 120B MXFP4 MoE |  59.02 GiB | 116.83 B | CUDA       |  99 |  1 |          pp512 |  1700.50 ± 12.5 |
| gpt-oss 120B MXFP4 MoE |  59.02 GiB | 116.83 B | CUDA       |  99 |  1 |          tg128 |    58.20 ± 0.11 |
| gpt-oss 120B MXFP4 MoE |  59.02 GiB | 116.83 B | CUDA       |  99 |  1 |  tg128 @ d4096 |    50.00 ± 0.20 |

build: 4df29be (7100)
"""


def spread(mean: float, median: float) -> dict[str, Any]:
    """A distribution as guidellm writes it."""
    ends = {"std_dev": 1.0, "min": mean / 2, "max": mean * 3, "count": 20, "total_sum": mean * 20}
    found = {"mean": mean, "median": median, **ends, "percentiles": {"p90": mean * 2, "p99": mean * 3}}
    return {"successful": found, "errored": {**found, "mean": 0.0}, "incomplete": found, "total": found}


def guidellm(strategy: dict[str, Any]) -> dict[str, Any]:
    metrics = {
        "request_totals": {"successful": 20, "errored": 1, "incomplete": 2, "total": 23},
        "requests_per_second": spread(2.0, 2.0), "request_latency": spread(1.5, 1.4),
        "prompt_token_count": spread(256.0, 256.0), "output_token_count": spread(64.0, 64.0),
        "time_to_first_token_ms": spread(120.0, 110.0), "inter_token_latency_ms": spread(21.0, 20.0),
        "time_per_output_token_ms": spread(23.0, 22.0), "output_tokens_per_second": spread(128.0, 0.0),
        "tokens_per_second": spread(640.0, 0.0),
    }  # fmt: skip
    one = {"type_": "generative_benchmark", "config": {"strategy": strategy}, "duration": 30.0, "metrics": metrics}
    spec = {"backend": {"kind": "openai_http", "model": "acme/model"}}
    return {"metadata": {"version": 2, "guidellm_version": "0.4.0"}, "config": {"spec": spec}, "benchmarks": [one]}


def aiperf() -> dict[str, Any]:
    def metric(unit: str, avg: float, p50: float = 0.0) -> dict[str, Any]:
        return {"unit": unit, "avg": avg, **({"p50": p50, "p90": 2 * p50, "p99": 3 * p50, "std": 1.0} if p50 else {})}

    return {
        "aiperf_version": "0.4.0", "start_time": "2026-10-01T10:00:00", "was_cancelled": False,
        "input_config": {"endpoint": {"model_names": ["acme/model"]}, "loadgen": {"concurrency": 4}},
        "request_throughput": metric("requests/sec", 2.5), "request_count": metric("requests", 10.0),
        "error_request_count": metric("requests", 1.0), "request_latency": metric("ms", 1600.0, 1500.0),
        "time_to_first_token": metric("ms", 200.0, 180.0), "inter_token_latency": metric("ms", 22.0, 20.0),
        "output_token_throughput": metric("tokens/sec", 160.0), "input_sequence_length": metric("tokens", 550.0, 550.0),
        "output_sequence_length": metric("tokens", 64.0, 64.0), "benchmark_duration": metric("sec", 4.0),
    }  # fmt: skip


def read_run(tmp_path: Path, content: Any) -> Run:
    path = tmp_path / "file"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return formats.read(str(path))


def only_metrics(found: Run) -> dict[str, Metric]:
    (one,) = summarize(found).levels
    return dict(one.metrics)


def point_value(metric: Metric, statistic: str = "median") -> float | None:
    interval: Interval | None = getattr(metric, statistic)
    assert interval is None or interval.low == interval.high == interval.value
    return interval and interval.value


def test_vllms_totals_are_a_run_without_intervals(tmp_path: Path) -> None:
    """`--save-detailed` is not that tool's default: its means, medians and percentiles are there, and no more."""
    found = read_run(tmp_path, VLLM)
    one, metrics = summarize(found).levels[0], only_metrics(found)
    assert (one.name, one.sent, one.good, one.tokens, one.seconds) == ("rate 0.5", 100, 98, 19600, 200.0)
    assert (point_value(metrics["ttft"]), point_value(metrics["ttft"], "p99"), metrics["ttft"].p90) == (0.6, 2.0, None)
    assert (point_value(metrics["decode"]), point_value(metrics["output_rate"])) == (40.0, 98.0)
    assert (metrics["ttft"].count, one.errors) == (98, {"error": 2})
    assert summarize(found).invalid == ()
    assert "goodput" not in metrics


def test_a_file_of_a_published_benchmark_imports() -> None:
    """One of 364 that were all refused."""
    path = Path(__file__).parents[5] / "shared/data/inputs/vllm-bench-totals.json"
    if not path.exists():
        pytest.skip("data: no published benchmark next to the checkout")
    assert point_value(only_metrics(formats.read(str(path)))["itl"]) == pytest.approx(0.02278, rel=1e-3)


def test_totals_are_shown_in_tables_and_reports(tmp_path: Path) -> None:
    """The terminal's table, Markdown and the page show them without an interval, and do not fail."""
    summary = summarize(read_run(tmp_path, VLLM))
    table = levels_table(summary)
    assert table.rows[0][table.head.index("TTFT")] == "600 ms"
    assert "| 40.00 |" in " ".join(markdown([summary]).split())
    assert "acme/model" in report_page([summary])


def test_totals_survive_an_export(tmp_path: Path) -> None:
    """JSON is complete; CSV has a row a request, of which there is none, and says so."""
    found = read_run(tmp_path, VLLM)
    assert formats.of_content(formats.bytes_of(found, "json"), "run.json") == found
    with pytest.raises(UsageError, match="states totals only"):
        formats.bytes_of(found, "csv")


def test_totals_next_to_a_measured_run_give_a_ratio_and_no_verdict(tmp_path: Path) -> None:
    """Nobody knows without an interval if the difference is chance."""
    found = read_run(tmp_path, {**VLLM, "max_concurrency": 1, "request_rate": "inf", "total_input_tokens": 9800,
                            "total_output_tokens": 392})  # fmt: skip
    ours = run(make_level([make_row(0.3), make_row(0.3)], plan=replace(PLAN)), conditions=KNOWN)
    told = compare(summarize(ours), summarize(found))
    assert told.refused == ()
    ttft = next(one for one in told.rows if one.metric == "ttft" and one.statistic == "median")
    assert (ttft.ratio, ttft.verdict) == (Interval(2.0, 2.0, 2.0), "unclear")
    assert any("a ratio and no verdict" in note for note in told.notes)


@pytest.mark.parametrize("lines", [False, True], ids=["json", "jsonl"])
def test_llama_benchs_tests_are_levels(tmp_path: Path, lines: bool) -> None:
    """Prefill and decode of the library, by depth; never a time to the first token, which it does not measure."""
    tests = [BENCH, {**BENCH, "n_prompt": 0, "n_gen": 128, "n_depth": 4096, "avg_ts": 50.0, "samples_ts": [50.0]}]
    found = read_run(tmp_path, "\n".join(map(json.dumps, tests)) if lines else tests)
    first, deep = summarize(found).levels
    assert (first.name, deep.name) == ("pp512", "tg128 @ d4096")
    assert (point_value(first.metrics["prefill"], "mean"), point_value(deep.metrics["decode"], "mean")) == (
        1700.5,
        50.0,
    )
    assert (first.metrics["prefill"].count, found.conditions.model) == (2, "gpt-oss 120B MXFP4 MoE")
    assert "ttft" not in first.metrics
    assert "NVIDIA GB10" in found.note


def test_llama_benchs_table_is_read_as_it_is_posted(tmp_path: Path) -> None:
    """The columns between backend and test differ from build to build."""
    found = read_run(tmp_path, TABLE)
    names = {one.name: point_value(next(iter(one.metrics.values())), "mean") for one in summarize(found).levels}
    assert names == {"pp512": 1700.5, "tg128": 58.2, "tg128 @ d4096": 50.0}
    assert "4df29be (7100)" in found.note


def test_llama_benchs_tests_of_the_same_sizes_stay_apart(tmp_path: Path) -> None:
    """One with flash attention and one without are two figures, not repeats of one."""
    found = read_run(tmp_path, [BENCH, {**BENCH, "avg_ts": 900.0}])
    assert [one.name for one in summarize(found).levels] == ["pp512", "pp512 (2)"]


@pytest.mark.parametrize(
    ("strategy", "name"),
    [
        ({"type_": "concurrent", "streams": 4}, "c4"),
        ({"type_": "synchronous"}, "c1"),
        ({"type_": "poisson", "rate": 2.5}, "2.5/s poisson"),
        ({"type_": "throughput"}, "throughput"),
    ],
)
def test_guidellms_benchmarks_are_levels(tmp_path: Path, strategy: dict[str, Any], name: str) -> None:
    """Figures of successful requests; the others are counted as failed."""
    found = read_run(tmp_path, guidellm(strategy))
    one, metrics = summarize(found).levels[0], only_metrics(found)
    assert (one.name, one.sent, one.good, one.errors) == (name, 23, 20, {"error": 1, "time-up": 2})
    assert (point_value(metrics["ttft"]), point_value(metrics["end_to_end"]), point_value(metrics["decode"])) == (
        0.11,
        1.4,
        50.0,
    )
    assert (point_value(metrics["output_rate"]), found.conditions.model) == (128.0, "acme/model")


def test_aiperfs_export_is_a_level(tmp_path: Path) -> None:
    """Each metric in the unit that it names."""
    found = read_run(tmp_path, aiperf())
    one, metrics = summarize(found).levels[0], only_metrics(found)
    assert (one.name, one.sent, one.good) == ("c4", 11, 10)
    assert (point_value(metrics["ttft"]), point_value(metrics["tpot"]), point_value(metrics["decode"])) == (
        0.18,
        0.02,
        50.0,
    )
    assert point_value(metrics["request_rate"]) == 2.5
    assert only_metrics(read_run(tmp_path, {"records": aiperf()}))["ttft"] == metrics["ttft"]


def sparkrun(results: dict[str, Any]) -> str:
    recipe = {"name": "r", "qualified_name": "@official/r", "model": "acme/model", "container": "acme/vllm:1",
              "runtime": "vllm-distributed", "text": "recipe_version: '2'\n"}  # fmt: skip
    # Keys as sparkrun 0.4.2 wrote them (export_results, version_commands).
    found = {"version": "1", "timestamp": "2026-10-01T10:00:00+00:00", "recipe": recipe,
             "cluster": {"tp": 2, "cluster_id": "sparkrun_1", "node_count": 2, "hosts": ["node-1", "node-2"],
                         "runtime_info": {"cuda": "13.0", "vllm": "0.26.0", "torch": "2.9.0",
                                          "container_org.opencontainers.image.version": "24.04"}},
             "benchmark": {"framework": "llama-benchy", "profile": "@official/spark-arena-v2", "args": {}},
             "results": results}  # fmt: skip
    return f"# written by sparkrun\nsparkrun_benchmark: {json.dumps(found)}\n"


def test_sparkruns_yaml_is_the_run_of_its_tool(tmp_path: Path) -> None:
    """The figures are llama-benchy's; image and version come from the recipe that was measured."""
    metric = {"mean": 50.0, "std": 1.0, "values": [49.0, 51.0]}
    entry = {"concurrency": 1, "context_size": 0, "prompt_size": 2048, "response_size": 128,
             "is_context_prefill_phase": False, "e2e_ttft": metric, "tg_throughput": metric}  # fmt: skip
    found = read_run(
        tmp_path, sparkrun({"json": {"model": "acme/model", "benchmarks": [entry]}, "csv": "", "stdout": ""})
    )
    assert (found.imported, found.conditions.recipe, found.conditions.image) == (
        "llama-benchy", "@official/r", "acme/vllm:1")  # fmt: skip
    assert (found.conditions.engine_version, [len(one.rows) for one in found.levels]) == ("0.26.0", [1, 1])
    assert "TP 2 on 2 nodes" in found.note


@pytest.mark.parametrize("order", [("json", "csv", "stdout"), ("csv", "json", "stdout")])
def test_results_that_sparkrun_keeps_for_itself_are_read(tmp_path: Path, order: tuple[str, ...]) -> None:
    """`result.yaml` of a benchmark's folder has no recipe: the figures are the same, the conditions fewer."""
    metric = {"mean": 50.0, "std": 1.0, "values": [49.0, 51.0]}
    entry = {"concurrency": 1, "context_size": 0, "prompt_size": 2048, "response_size": 128,
             "is_context_prefill_phase": False, "e2e_ttft": metric, "tg_throughput": metric}  # fmt: skip
    parts = {"json": {"model": "acme/model", "benchmarks": [entry]}, "csv": "model,test_name\r\n", "stdout": "out"}
    found = read_run(tmp_path, "".join(f"{key}: {json.dumps(parts[key])}\n" for key in order))
    assert (found.imported, found.conditions.model, found.conditions.image) == ("llama-benchy", "acme/model", "")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (sparkrun({"json": {}}), "nothing was measured"),
        (sparkrun({"json": {"a": 1}}), "results of llama-benchy, which is not known here"),
        ("sparkrun_benchmark:\n  - [", "no YAML"),
        ("sparkrun_benchmark: 3\n", "no mapping"),
        ([{**BENCH, "n_prompt": 0}], "a test of 0 and 0 tokens"),
        ([{**BENCH, "n_prompt": "many"}], "missing or odd"),
        (TABLE.replace("tg128 |    58.20", "hello |    58.20").replace("| gpt-oss", "| other", 1), "about 2 models"),
        ({"benchmarks": [{"metrics": {"request_totals": 4}}]}, "missing or odd"),
        ({"benchmarks": [{"metrics": {}}]}, "no figure that is known"),
        ({"benchmarks": []}, "no measured value"),
        (TABLE.replace("1700.50", "1.2.3").replace("58.20", "-").replace("50.00", ""), "no line whose test is like"),
        ({**aiperf(), "input_config": 3}, "missing or odd"),
        ({**VLLM, "max_concurrency": 1e300}, "out of range"),
        ({**VLLM, "median_ttft_ms": 1e300}, "out of range"),
        ([{**BENCH, "n_prompt": 10**40}], "out of range"),
        ({**VLLM, "ttfts": [1], "itls": [2], "input_lens": [1], "output_lens": [1], "errors": [""]}, "missing or odd"),
    ],
)
def test_what_cannot_be_imported_is_refused_with_the_reason(tmp_path: Path, content: Any, why: str) -> None:
    """The file's name and what is wrong with it; never a traceback."""
    with pytest.raises(UsageError) as error:
        read_run(tmp_path, content)
    assert why in error.value.message


def test_guidellms_other_spellings_are_read(tmp_path: Path) -> None:
    """0.6 keeps the model under backend_kwargs and no duration, 0.7 calls the strategy `kind`."""
    one = {
        "config": {"strategy": {"kind": "concurrent", "max_concurrency": 32}},
        "scheduler_metrics": {"start_time": 100.0, "measure_start_time": 110.0, "measure_end_time": 130.0},
        "metrics": {
            "request_totals": {"successful": 32, "errored": 5, "incomplete": 1},
            "output_tokens_per_second": {"successful": {"mean": 51.76}},
            "prompt_token_count": {"successful": {"mean": 400, "total_sum": 12800}},
            "output_token_count": {"successful": {"mean": 100, "total_sum": 3200}},
        },
    }
    tree = {
        "metadata": {"guidellm_version": "0.7.3"},
        "args": {"backend_kwargs": {"model": "org/m"}},
        "benchmarks": [one],
    }
    (tmp_path / "b.json").write_text(json.dumps(tree))
    run = formats.read(str(tmp_path / "b.json"))
    (level,) = run.levels
    assert (level.plan.name, level.seconds, run.conditions.model) == ("c32", 20.0, "org/m")


def test_a_test_that_is_there_again_is_named(tmp_path: Path) -> None:
    """People paste several runs into one file; one level keeps the figures of one of them."""
    head = "| model | test | t/s (total) |\n|---|---|---|\n"
    rows = "| m | pp2048 (c4) | 800.0 ± 1.0 |\n| m | tg32 (c4) | 60.0 ± 1.0 |\n"
    (tmp_path / "t.md").write_text(head + rows + "\nagain\n\n" + head + rows.replace("60.0", "70.0"))
    run = formats.read(str(tmp_path / "t.md"))
    assert len(run.levels) == 1 and "1 of its tests are there again" in run.note
