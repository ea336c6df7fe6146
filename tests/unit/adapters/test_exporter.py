"""The exposition: what is reported, what is left out, and that nothing stale is reported."""

from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from sparkwright.adapters.exporter import Exporter
from sparkwright.domain.codec import to_json
from sparkwright.domain.live import DeploymentState, Live, LiveCacheTier, LiveCanary, LiveEngine, LiveNode, LiveRank
from sparkwright.report.rates import Share

NOW = 10_000.0
NODE = LiveNode(
    "spark-1", NOW, True, total=130_000, available=20_000, free=5_000, swap_used=7, swap_rate=0.5, unaccounted=900,
    pressure=12.5, per_hour=-7200.0, time_left=600.0, gpu_busy=96.0, gpu_temperature=61.0, gpu_power=14.0,
    gpu_clock=2411.0,
)  # fmt: skip
ENGINE = LiveEngine(NOW, 3.0, 1.0, 0.25, 1000.0, 500.0, 800.0, 600.0, 40.0, 30.0, 2.0)
LIVE = Live(
    at=NOW,
    deployment="twin",
    phase=DeploymentState.READY,
    since=NOW - 60,
    incidents=4,
    relaunches=3,
    troubles=(("leak", "14 MiB a request"), ("unseen:spark-2", "cannot be asked"), ("leak", "again")),
    ranks=(LiveRank(0, "spark-1", True), LiveRank(1, "spark-2", False)),
    nodes=(NODE, LiveNode("spark-2", NOW, False, total=1)),
    engine=ENGINE,
    canary=LiveCanary(NOW - 5, 0.4),
    simulated=True,
)


class Scraped:
    """Samples by name and the labels next to the fixed ones."""

    def __init__(self, home: Path, now: float = NOW) -> None:
        self.home = home
        self.exporter = Exporter(home, lambda: now)

    def __call__(self, live: Live | None) -> dict[tuple[str, ...], float]:
        if live:
            (self.home / "live.json").write_text(to_json(live))
        families = text_string_to_metric_families(self.exporter.page().decode())
        samples = [sample for family in families for sample in family.samples]
        fixed = {(s.labels.pop("deployment"), s.labels.pop("simulated")) for s in samples}
        assert fixed == {("twin", str(live.simulated).lower() if live else "unknown")}
        return {(s.name.removeprefix("sparkwright_"), *s.labels.values()): s.value for s in samples}


@pytest.fixture
def scraped(tmp_path: Path) -> Scraped:
    (tmp_path / "twin").mkdir()
    return Scraped(tmp_path / "twin")


def test_all_that_is_known_is_reported_in_base_units(scraped: Scraped) -> None:
    """Bytes, seconds, ratios, hertz: PromQL can add them without knowing where they are from."""
    told = scraped(LIVE)
    for name, value in {
        "supervisor_up": 1.0,
        "incidents_total": 4.0,
        "relaunches_total": 3.0,
        "canary_latency_seconds": 0.4,
        "canary_success": 1.0,
        "engine_requests_running": 3.0,
        "engine_kv_cache_usage_ratio": 0.25,
        "engine_prefix_cache_queried_tokens_total": 800.0,
        "engine_prefix_cache_hit_tokens_total": 600.0,
        "deployment_refusing": 0.0,
    }.items():
        assert told[(name,)] == value, name
    for name, value in {
        "memory_size_bytes": 130_000.0,
        "memory_slope_bytes_per_second": -2.0,
        "memory_time_left_seconds": 600.0,
        "memory_pressure_ratio": 0.125,
        "gpu_busy_ratio": 0.96,
        "gpu_clock_hertz": 2.411e9,
    }.items():
        assert told[(f"node_{name}", "spark-1")] == value, name
    assert told["rank_up", "spark-1", "0"] == 1.0 and told["rank_up", "spark-2", "1"] == 0.0
    assert told["deployment_trouble", "leak"] == 1.0


def test_one_state_is_1_and_all_are_there(scraped: Scraped) -> None:
    """An alert on a state must find its series before it was ever in it."""
    phases = {key[1]: value for key, value in scraped(LIVE).items() if key[0] == "deployment_phase"}
    assert set(phases) == {str(state) for state in DeploymentState} - {"running"}
    assert [name for name, value in phases.items() if value] == ["ready"]


def test_a_node_that_cannot_be_asked_has_no_figures(scraped: Scraped) -> None:
    """Its last ones would are there like the truth."""
    told = scraped(LIVE)
    assert told["node_reachable", "spark-2"] == 0.0
    assert [key for key in told if key[-1] == "spark-2" and key[0].startswith("node_")] == [
        ("node_reachable", "spark-2")
    ]


def test_what_an_engine_does_not_report_is_absent(scraped: Scraped) -> None:
    """0 drafted tokens and no drafter are two things."""
    told = scraped(replace(LIVE, engine=LiveEngine(NOW, running=1.0), canary=None, nodes=()))
    assert ("engine_draft_tokens_total",) not in told and ("engine_requests_running",) in told
    assert not any(key[0].startswith(("canary_", "node_")) for key in told)


def test_tiers_of_the_cache_have_what_the_engine_tells(scraped: Scraped) -> None:
    """Guards counters as counters, one row a tier, and that an unknown figure is absent."""
    tiers = (LiveCacheTier("host", hits=1200.0, part=0.5), LiveCacheTier("disk", hits=0.0, used=7.0))
    told = scraped(replace(LIVE, cache_tiers=tiers))
    found = {key: value for key, value in told.items() if key[0].startswith("engine_cache_tier_")}
    assert found == {
        ("engine_cache_tier_hit_tokens_total", "host"): 1200.0,
        ("engine_cache_tier_hit_tokens_total", "disk"): 0.0,
        ("engine_cache_tier_used_bytes", "disk"): 7.0,
        ("engine_cache_tier_usage_ratio", "host"): 0.5,
    }
    assert b"# TYPE sparkwright_engine_cache_tier_hit_tokens_total counter" in scraped.exporter.page()


@pytest.mark.parametrize("late", [16.0, 3600.0])
def test_of_a_supervisor_that_ended_only_that_is_reported(tmp_path: Path, late: float) -> None:
    """A dead supervisor's `ready` is the lie that all of this is against."""
    (tmp_path / "twin").mkdir()
    told = Scraped(tmp_path / "twin", NOW + late)(LIVE)
    assert told[("supervisor_up",)] == 0.0
    assert {key[0] for key in told} == {
        "supervisor_up",
        "supervisor_last_seen_timestamp_seconds",
        "incidents_total",
        "relaunches_total",
    }


@pytest.mark.parametrize("text", [None, "", "{", "[]"])
def test_without_a_readable_file_it_is_down(scraped: Scraped, text: str | None) -> None:
    """Missing, cut short, somebody else's: never a failed scrape."""
    if text is not None:
        (scraped.home / "live.json").write_text(text)
    assert scraped(None) == {("supervisor_up",): 0.0}


def test_the_hit_rate_is_of_the_last_minutes(scraped: Scraped) -> None:
    """The rate comes from the counters' gain, not from their totals: 300 of 400 tokens, although 900 of 1200 were hit
    in all."""
    assert ("engine_prefix_cache_hit_ratio",) not in scraped(LIVE)
    later = replace(ENGINE, at=NOW + 15, prefix_queries=1200.0, prefix_hits=700.0, draft_tokens=80.0)
    told = scraped(replace(LIVE, engine=later))
    assert told[("engine_prefix_cache_hit_ratio",)] == 0.25
    assert told[("engine_draft_acceptance_ratio",)] == 0.0


def test_sglang_looks_up_every_prompt_token(scraped: Scraped) -> None:
    """It counts hits and no look-ups."""
    told = scraped(replace(LIVE, engine=replace(ENGINE, prefix_queries=None)))
    assert told[("engine_prefix_cache_queried_tokens_total",)] == 1000.0


def share_after(*samples: tuple[float, float | None, float | None]) -> float | None:
    made = Share(window=300.0)
    for sample in samples:
        made.add(*sample)
    return made.value


def test_a_share_needs_a_gain() -> None:
    """One sample, no queries: nothing can be reported, and 0 would report that all missed."""
    assert share_after() is None and share_after((0, 10, 5)) is None and share_after((0, 10, 5), (15, 10, 5)) is None
    assert share_after((0, None, 5), (15, 10, None)) is None
    assert share_after((0, 10, 5), (15, 20, 5)) == 0.0


def test_a_share_begins_again_with_the_engine() -> None:
    """Counters begin at 0 after a relaunch; a difference over it would be negative."""
    assert share_after((0, 100, 90), (15, 10, 1)) is None
    assert share_after((0, 100, 90), (15, 10, 1), (30, 20, 6)) == 0.5


def test_a_share_forgets() -> None:
    """A value older than its window does not count; two scrapes far apart still give one."""
    many = [(float(at), at * 10.0, at * 10.0 if at < 500 else 5000.0) for at in range(0, 1000, 10)]
    assert share_after(*many) == 0.0
    assert share_after((0, 0, 0), (4000, 10, 5)) == 0.5


def test_the_same_sample_twice_is_one() -> None:
    """Two Prometheus servers may scrape: the figures are of the engine's time, not of theirs."""
    assert share_after((0, 10, 5), (0, 10, 5), (15, 20, 10), (15, 20, 10)) == 0.5
