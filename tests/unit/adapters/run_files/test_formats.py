"""Runs as files: ours come back the same, other tools' become what they report."""

import csv
import io
import json
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fakes.measured import KNOWN, PLAN, failed, make_level, make_row, run, scrape
from sparkwright.adapters.run_files import formats
from sparkwright.domain.errors import UsageError
from sparkwright.domain.run import Reads, Run
from sparkwright.domain.summary import Interval
from sparkwright.domain.workload import Agent, Arrival, Length, Pace, Single
from sparkwright.loadgen.stats import summarize

DEEP = replace(PLAN, name="deep", shape=Single(Length(100, 100), Length(4, 4), 4096), pace=Pace(concurrency=2))
RUN = run(
    make_level([make_row(0.125), make_row(0.25, text='comma, "quote"\nnext line'),
                failed(retry_after=1.5)], scrapes=(scrape(1),)),
    make_level([make_row(0.5, warmup=True),
                make_row(reads=Reads((0.25, 0.5), (1, 3), exact=False), simulated=True)], 1),
    make_level([make_row(0.5, prompt_tokens=4196, planned_prompt=4196, sent=0.25),
                make_row(1.5)], plan=DEEP, doubts=("odd",)),
    conditions=replace(KNOWN, engine="vllm", engine_version="0.21.0", flags=("--a",)),
    tags=("kept",),
)  # fmt: skip


def benchy(**given: Any) -> dict[str, Any]:
    """A file as llama-benchy 0.4.0 writes it: two batches of two."""

    def metric(*values: float) -> dict[str, Any]:
        return {"mean": statistics.fmean(values), "std": statistics.pstdev(values), "values": list(values)}

    entry = {
        "concurrency": 2,
        "context_size": 4096,
        "prompt_size": 2048,
        "response_size": 32,
        "is_context_prefill_phase": False,
        "pp_throughput": metric(3000.0, 3100.0),
        "pp_req_throughput": metric(1500.0, 1510.0, 1520.0, 1530.0),
        "tg_throughput": metric(80.0, 81.0),
        "tg_req_throughput": metric(40.0, 41.0, 42.0, 43.0),
        "peak_throughput": metric(90.0, 91.0),
        "peak_req_throughput": metric(45.0, 45.0, 46.0, 46.0),
        "ttfr": metric(1300.0, 1310.0, 1320.0, 1330.0),
        "est_ppt": metric(1290.0, 1300.0, 1310.0, 1320.0),
        "e2e_ttft": metric(1400.0, 1410.0, 1420.0, 1430.0),
        "throughput_over_time": None,
        "requests_throughput_over_time": None,
    }
    head = {"version": "0.4.0", "timestamp": "2026-11-20 10:00:00Z", "latency_mode": "api", "latency_ms": 10.0}
    more = {"model": "acme/model", "prefix_caching_enabled": False, "max_concurrency": 2}
    return {**head, **more, "benchmarks": [{**entry, **given}]}


TABLE = """
Two nodes, see below.

| model      |                 test |   t/s (total) |    t/s (req) |     peak t/s | ttfr (ms) |   e2e_ttft (ms) |
|:-----------|---------------------:|--------------:|-------------:|-------------:|----------:|----------------:|
| acme/model |          pp2048 (c2) | 3000.0 ± 50.0 | 1500.0 ± 9.0 |              |           |  1400.0 ± 100.0 |
| acme/model |            tg32 (c2) |    80.0 ± 1.0 |   40.0 ± 0.5 |              |           |                 |
| acme/model | pp2048 @ d4096 (c2)  |        3000.0 |       1500.0 |              |           |          4000.0 |

Thank you.
"""


def save_file(tmp_path: Path, content: bytes | str | dict[str, Any], name: str = "file") -> str:
    path = tmp_path / name
    text = json.dumps(content) if isinstance(content, dict) else content
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def there_and_back(tmp_path: Path, form: str) -> Run:
    path = str(tmp_path / "run")
    formats.write(formats.bytes_of(RUN, form), path)
    return formats.read(path)


def test_a_run_comes_back_the_same(tmp_path: Path) -> None:
    """Every field of it, whatever the file is called; nothing else is left in the folder."""
    assert there_and_back(tmp_path, "json") == RUN
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_csv_has_a_line_for_each_request() -> None:
    """Any spreadsheet reads it: failed ones too, texts with commas, nothing where nothing is known."""
    lines = list(csv.DictReader(io.StringIO(formats.bytes_of(RUN, "csv").decode())))
    assert [(line["level"], line["repeat"], line["first"]) for line in lines][:3] == [
        ("c1", "0", "0.125"), ("c1", "0", "0.25"), ("c1", "0", "")]  # fmt: skip
    assert lines[1]["text"] == 'comma, "quote"\nnext line'
    assert (lines[2]["kind"], lines[2]["error"], lines[2]["retry_after"]) == ("http-500", "http-500: no", "1.5")
    assert (lines[4]["simulated"], lines[4]["reads_tokens"], lines[4]["reads_exact"]) == ("true", "1 3", "false")
    assert len(lines) == 7


def test_csv_restores_what_its_columns_hold(tmp_path: Path) -> None:
    """All requests and the levels' sizes; conditions without a column stay unknown, and it is reported where it is
    from."""
    told = there_and_back(tmp_path, "csv")
    assert [one.rows for one in told.levels] == [one.rows for one in RUN.levels]
    assert told.levels[2].plan.shape == Single(Length(100, 100), Length(4, 4), 4096)
    assert (told.levels[2].plan.pace, told.conditions.engine) == (DEEP.pace, "vllm")
    assert (told.imported, told.conditions.flags) == ("csv", ())
    assert summarize(told).levels[0].metrics == summarize(RUN).levels[0].metrics


def test_a_csv_of_somebody_else_needs_few_columns(tmp_path: Path) -> None:
    """Level and send time; the id is made of the content, so that the same file is not copied in twice."""
    path = save_file(tmp_path, "level,sent,first,end,output_tokens,mine\nx,1.5,0.5,2.5,9,?\n")
    told = formats.read(path)
    assert told.levels[0].rows[0].first == 0.5
    assert told.id == formats.read(path).id != formats.read(save_file(tmp_path, "level,sent\nx,1\n")).id


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("level,sent,first\nx,1.5,soon\n", ":2: first: 'soon' is no float"),
        ("level,sent,warmup\nx,1,perhaps\n", ":2: warmup: 'perhaps' is no bool"),
        ("level,sent,reads_at,reads_tokens\nx,1,0.5 0.6,1\n", ":2: 2 times of reads, and tokens of 1"),
        ("level,first\nx,1.5\n", "no column sent"),
        ("level,sent\n", "no request"),
        ("hello\n", "unknown format"),
        (b"\x80\x81\x82", "this is not text"),
        (b"PAR1 and no more", "Parquet is not read any more"),
        ("{", "no JSON"),
        ("{}", "unknown format"),
        ({"kind": "sparkwright-run", "version": 9}, "reads version 1"),
        ({"kind": "sparkwright-run", "version": 1, "run": {"id": "x"}}, "missing"),
        (formats.bytes_of(replace(RUN, id="last"), "json"), "'last' is no run's id"),
        (benchy(concurrency="many"), "missing or odd"),
        (benchy(e2e_ttft=None), "no measured value"),
        ({"request_throughput": "?", "model_id": "m"}, "no figure that is known"),
        ("| model | test |\n|---|---|\n| m | hello |\n", "no line whose test is like pp2048"),
    ],
)
def test_what_cannot_be_read_is_reported(tmp_path: Path, content: Any, why: str) -> None:
    """The file, the line where there is one, and what was wrong; never a traceback."""
    path = save_file(tmp_path, content)
    with pytest.raises(UsageError) as error:
        formats.read(path)
    assert error.value.message.startswith(path)
    assert why in error.value.message


def test_a_file_that_is_not_there_or_not_to_be_written_is_reported(tmp_path: Path) -> None:
    """The error names the file and the reason."""
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        formats.read(str(tmp_path / "none"))
    with pytest.raises(UsageError, match="cannot be written: No such file"):
        formats.write(b"x", str(tmp_path / "none" / "file"))


def test_llama_benchys_values_become_requests(tmp_path: Path) -> None:
    """Batches are repeats; the speeds and times of each request are those that it reports."""
    told = formats.read(save_file(tmp_path, benchy()))
    assert [(one.plan.name, one.repeat, len(one.rows)) for one in told.levels] == [
        ("pp2048 tg32 @ d4096 (c2)", 0, 2), ("pp2048 tg32 @ d4096 (c2)", 1, 2)]  # fmt: skip
    found = summarize(told).levels[0]
    assert found.metrics["decode"].mean.value == pytest.approx(41.5)
    assert found.metrics["ttft"].median.value == pytest.approx(1.415)
    assert found.metrics["prefill"].least == pytest.approx(6144 / 1.43)
    assert (told.conditions.model, told.began) == ("acme/model", 1795168800.0)
    assert "itl" not in found.metrics


def test_prefix_caching_of_llama_benchy_is_a_warm_level(tmp_path: Path) -> None:
    """Its context was loaded before: what is prefilled is the prompt behind it. Loading is a level of its own."""
    tree = benchy()
    loading = {**tree["benchmarks"][0], "is_context_prefill_phase": True}
    tree |= {"prefix_caching_enabled": True, "benchmarks": [loading, *tree["benchmarks"]]}
    told = formats.read(save_file(tmp_path, tree))
    first, warm = summarize(told).levels[0], next(one for one in told.levels if one.plan.name.startswith("pp"))
    assert first.plan.name == "ctx @ d4096 (c2)"
    assert warm.rows[0].planned_cached == 4096
    assert warm.plan.shape == Single(Length(2048, 2048), Length(32, 32), 4096, warm=True)  # fmt: skip


def test_a_run_as_llama_benchys_json_reads_back(tmp_path: Path) -> None:
    """The same levels, times to the first token and speeds; its field names, and values of each request."""
    tree = json.loads(formats.bytes_of(RUN, "llama-benchy"))
    assert set(tree) == set(benchy())
    assert [set(entry) for entry in tree["benchmarks"]] == [set(benchy()["benchmarks"][0])] * 2
    deep = tree["benchmarks"][1]
    assert (deep["concurrency"], deep["context_size"], deep["e2e_ttft"]["values"]) == (2, 4096, [500.0, 1500.0])
    told = summarize(formats.read(save_file(tmp_path, tree)))
    ttft, ours = told.levels[0].metrics["ttft"], summarize(RUN).levels[0].metrics["ttft"]
    assert (ttft.count, ttft.mean.value) == (ours.count, pytest.approx(ours.mean.value))
    assert told.levels[0].metrics["decode"].mean.value == pytest.approx((50 + 50 + 12) / 3)


def test_the_whole_of_a_batch_is_counted_as_llama_benchy_does() -> None:
    """Prompt tokens until the last first token; later tokens from the first token of all to the last."""
    deep = json.loads(formats.bytes_of(RUN, "llama-benchy"))["benchmarks"][1]
    # Sent at 0.25 and 0; first tokens at 0.75 and 1.5, last at 0.81 and 1.56 s.
    assert deep["pp_throughput"]["values"] == [pytest.approx((4196 + 100) / 1.5)]
    assert deep["tg_throughput"]["values"] == [pytest.approx(6 / 0.81)]
    assert deep["peak_throughput"]["values"] == [pytest.approx(8 / 0.81)]


def test_a_table_is_read_as_it_is_posted(tmp_path: Path) -> None:
    """Text around it is passed over; figures are those of the cells, without an interval that nobody measured."""
    told = formats.read(save_file(tmp_path, TABLE))
    first, deep = summarize(told).levels
    assert (first.plan.name, deep.plan.name) == ("pp2048 tg32 (c2)", "pp2048 tg1 @ d4096 (c2)")
    ttft, decode = first.metrics["ttft"].mean, first.metrics["decode"].mean
    assert (ttft, decode) == (Interval(1.4, 1.4, 1.4), Interval(40.0, 40.0, 40.0))
    assert first.metrics["ttft"].median is None
    assert (told.levels[0].rows, first.sent) == ((), 0)
    assert "no requests, so no intervals" in first.notes[0]
    assert deep.metrics["prefill"].mean == Interval(1500.0, 1500.0, 1500.0)


def test_an_imported_table_is_exported_as_it_was(tmp_path: Path) -> None:
    """Totals at concurrency, peaks and deviations are the tool's own: nobody posts other figures under its name."""
    back = formats.bytes_of(formats.read(save_file(tmp_path, TABLE)), "llama-benchy-table").decode()
    rows = [[cell.strip() for cell in line.strip("|").split("|")][1:] for line in back.splitlines()[2:]]
    assert rows[0] == ["pp2048 (c2)", "3000.00 ± 50.00", "1500.00 ± 9.00", "", "", "", "", "1400.00 ± 100.00"]
    assert rows[1] == ["tg32 (c2)", "80.00 ± 1.00", "40.00 ± 0.50", "", "", "", "", ""]
    assert rows[2][0] == "pp2048 @ d4096 (c2)"


def test_an_imported_json_of_llama_benchy_is_exported_as_it_was(tmp_path: Path) -> None:
    """Every metric of every level, with its values; levels that load a context are marked as such again."""
    tree = benchy()
    loading = {**tree["benchmarks"][0], "is_context_prefill_phase": True, "prompt_size": 4096}
    tree |= {"prefix_caching_enabled": True, "benchmarks": [loading, *tree["benchmarks"]]}
    back = json.loads(formats.bytes_of(formats.read(save_file(tmp_path, tree)), "llama-benchy"))
    assert back["benchmarks"] == tree["benchmarks"]


def test_a_table_is_written_in_its_form(tmp_path: Path) -> None:
    """Pipes, the same headings; and it reads back."""
    alone = replace(RUN, levels=RUN.levels[:2])
    text = formats.bytes_of(alone, "llama-benchy-table").decode()
    heads = [cell.strip() for cell in text.splitlines()[0].strip("|").split("|")]
    assert heads == ["model", "test", "t/s", "peak t/s", "ttfr (ms)", "est_ppt (ms)", "e2e_ttft (ms)"]
    assert len({len(line) for line in text.splitlines()}) == 1
    told, ours = (summarize(one).levels[0].metrics["ttft"] for one in (formats.read(save_file(tmp_path, text)), alone))
    assert told.mean.value == pytest.approx(ours.mean.value, abs=1e-5)


def test_a_simulated_run_reports_it_in_every_format(tmp_path: Path) -> None:
    """A made-up figure must not be taken for a measured one, wherever it is posted, and anyone who reads it back."""
    simulator = run(make_level([make_row(simulated=True)]), conditions=replace(KNOWN, simulated=True))
    for form in formats.FORMS:
        content = formats.bytes_of(simulator, form)
        assert b"simulated" in content, form
        (tmp_path / "kept").write_bytes(content)
        assert formats.read(tmp_path / "kept").conditions.simulated, form


def test_what_llama_benchy_has_no_place_for_is_refused() -> None:
    """Agents and open loops: a table of nothing would look like a result."""
    agents = make_level([make_row()], plan=replace(PLAN, shape=Agent(2, 1, 1, 1, 1, 4)))
    open_loop = make_level([make_row()], plan=replace(PLAN, name="open", pace=Pace(Arrival.POISSON, rate=1.0)))
    with pytest.raises(UsageError, match="has no level of single requests"):
        formats.bytes_of(run(agents, open_loop), "llama-benchy")


def test_vllms_detailed_result_becomes_requests(tmp_path: Path) -> None:
    """Times in seconds, chunks between tokens, an error where the request failed."""
    tree = {
        "date": "20261120-100000", "model_id": "acme/model", "tokenizer_id": "acme/model", "request_rate": "inf",
        "max_concurrency": 8, "duration": 2.0, "request_throughput": 1.0, "input_lens": [100, 100, 100],
        "output_lens": [4, 6, 0], "ttfts": [0.1, 0.2, 0.0], "itls": [[0.02, 0.02, 0.02], [0.04, 0.06], []],
        "start_times": [50.0, 50.5, 51.0], "errors": ["", "", "Traceback\nTimeoutError"],
    }  # fmt: skip
    told = formats.read(save_file(tmp_path, tree))
    first, second, third = told.levels[0].rows
    assert (told.levels[0].plan.name, told.levels[0].plan.pace.concurrency) == ("c8", 8)
    assert (first.sent, second.sent, first.reads.exact, second.reads.tokens) == (0.0, 0.5, True, (2, 2, 2))
    assert (second.end, third.kind, third.first) == (pytest.approx(0.3), "error", None)
    assert summarize(told).levels[0].metrics["itl"].least == pytest.approx(0.02)
