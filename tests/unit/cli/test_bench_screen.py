"""The report of `bench` before it measures."""

from dataclasses import replace

from fakes.prepared_bench import NO_BENCH
from fakes.tokenizer import CountingTokenizer
from sparkwright.app.bench.benchmark import fitting_levels
from sparkwright.app.bench.target import BenchRequest, BenchTarget, PreparedBench
from sparkwright.cli.bench_screen import found_text, missing_features, plan_json, plan_text
from sparkwright.domain.probed import Probed
from sparkwright.domain.run import RunConditions
from sparkwright.domain.workload import Arrival, Length, LevelPlan, Pace, RateSearch, Single, Workload

PLAN = LevelPlan("one", Single(Length(256, 256), Length(64, 64)), Pace(concurrency=4), requests=12)
OPEN = LevelPlan("open", Single(Length(9000, 9000), Length(64, 64)), Pace(Arrival.POISSON, 8, rate=2.5))
WORK = Workload("w", "A title", (PLAN, OPEN), repeats=2, deadline=110.0)
FULL = Probed(
    "http://node", "m", ("m",), engine="vllm", engine_version="0.21.0", context=16384, usage=True, continuous=True,
    cached=True, ignore_eos=True, thinking=True, tokenize=True, metrics="/metrics",
)  # fmt: skip


def prepared_run(probed: Probed = FULL, exact: bool = True, **conditions: object) -> PreparedBench:
    known = replace(RunConditions("http://node", "m", tokenizer="/tokenize of the server"), **conditions)  # type: ignore[arg-type]
    target, counting = BenchTarget("http://node"), CountingTokenizer(exact=exact)
    return PreparedBench(NO_BENCH, target, probed, BenchRequest(WORK), *fitting_levels(WORK, probed), counting, known)


def test_what_was_found() -> None:
    """Model, engine with version, context, and where tokens and lengths come from."""
    text = found_text(prepared_run())
    for part in ("m", "vllm 0.21.0, context 16,384 tokens", "in every chunk, cached tokens too", "/tokenize"):
        assert part in text
    assert "lacking" not in text


def test_a_simulation_reports_it_first() -> None:
    """Every screen has the mark."""
    assert found_text(prepared_run(simulated=True)).startswith("SIMULATED  http://node")
    assert plan_json(prepared_run(simulated=True))["simulated"] is True


def test_what_is_lacking_and_what_it_costs() -> None:
    """One line each; on our own deployments missing provenance, too."""
    told = "\n".join(missing_features(prepared_run(Probed("http://node", "m"), exact=False, ours=True)))
    for part in (
        "only latencies",
        "--tokenizer FILE",
        "no /metrics",
        "ignore_eos",
        "recipe_hash",
        "not count as valid",
    ):
        assert part in told


def test_what_will_be_done() -> None:
    """Levels with their pace, all requests and tokens of all repeats, the bound of time, and what is left out."""
    text = plan_text(prepared_run())
    assert "poisson 2.5/s, at most 8" in text
    assert "26 requests in 2 repeats, 25,808 tokens; 1 min 50 s at most" in text
    text = plan_text(prepared_run().with_workload(replace(WORK, search=RateSearch(0.1, 32))))
    assert "26 requests in 2 repeats, 25,808 tokens for each rate that is tried; 1 min 50 s at most" in text
    text = plan_text(prepared_run(replace(FULL, context=4096)))
    assert "left out: open needs 9,064 tokens of context, and the server takes 4,096" in text
