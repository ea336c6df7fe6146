"""A supervised deployment as Prometheus metrics, from what its supervisor wrote last.

Nothing stale is shown: of a supervisor that ended, only that it ended. Every sample is marked if it is simulated.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from sparkwright.domain.codec import Unreadable, from_json
from sparkwright.domain.live import DeploymentState, Live, LiveEngine
from sparkwright.report.rates import Share

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_STALE = 15.0
# (name, help, field of LiveNode, factor to base units)
_NODE = (
    ("memory_size_bytes", "Unified memory that CPU and GPU share.", "total", 1.0),
    ("memory_available_bytes", "MemAvailable: what a new allocation may take.", "available", 1.0),
    ("memory_free_bytes", "MemFree: in use by nothing, not even the page cache.", "free", 1.0),
    ("memory_unaccounted_bytes", "Pages that no counter of the kernel explains: the driver's.", "unaccounted", 1.0),
    ("memory_slope_bytes_per_second", "Robust slope of MemAvailable; negative: it shrinks.", "per_hour", 1 / 3600),
    ("memory_time_left_seconds", "Until the floor at this slope; absent while it does not shrink.", "time_left", 1.0),
    ("memory_pressure_ratio", "Share of time in which all waited for memory (PSI full avg10).", "pressure", 0.01),
    ("swap_used_bytes", "Swap in use.", "swap_used", 1.0),
    ("swap_traffic_pages_per_second", "Pages swapped in and out.", "swap_rate", 1.0),
    ("gpu_busy_ratio", "SM utilization.", "gpu_busy", 0.01),
    ("gpu_temperature_celsius", "GPU temperature.", "gpu_temperature", 1.0),
    ("gpu_power_watts", "GPU power draw.", "gpu_power", 1.0),
    ("gpu_clock_hertz", "SM clock.", "gpu_clock", 1e6),
)
# (name, help, field of LiveEngine)
_ENGINE = (
    ("requests_running", "Requests that the engine works on.", "running"),
    ("requests_waiting", "Requests in its queue.", "waiting"),
    ("kv_cache_usage_ratio", "Used part of the KV cache.", "kv_usage"),
    ("requests_finished_total", "Requests that ended in any way.", "finished"),
    ("prompt_tokens_total", "Prompt tokens, counted when their prefill ends.", "prompt_tokens"),
    ("generation_tokens_total", "Generated tokens.", "generation_tokens"),
    ("prefix_cache_queried_tokens_total", "Prompt tokens looked up in the prefix cache.", "prefix_queries"),
    ("prefix_cache_hit_tokens_total", "Prompt tokens found there.", "prefix_hits"),
    ("draft_tokens_total", "Tokens that the drafter proposed.", "draft_tokens"),
    ("accepted_tokens_total", "Proposed tokens that the model accepted.", "accepted_tokens"),
    ("preemptions_total", "Preempted requests.", "preemptions"),
)
# (name, help, field of LiveCacheTier)
_TIER = (
    ("hit_tokens_total", "Prompt tokens found in this tier of the engine's KV cache.", "hits"),
    ("written_bytes_total", "Bytes moved into it.", "written"),
    ("read_bytes_total", "Bytes moved out of it.", "read"),
    ("used_bytes", "Bytes in it.", "used"),
    ("usage_ratio", "Used part of it.", "part"),
)


class Exporter:
    """The exposition of one deployment over many scrapes. home: the supervisor's folder."""

    def __init__(self, home: Path, now: Callable[[], float] = time.time) -> None:
        self._home = home
        self._now = now
        self._hits = Share()
        self._accepted = Share()

    def page(self) -> bytes:
        """The exposition, of CONTENT_TYPE."""
        return generate_latest(self)

    def collect(self) -> Iterator[Metric]:
        live = self._live()
        made = _Families(self._home.name if live is None else live.deployment, live)
        fresh = live is not None and self._now() - live.at < _STALE
        yield made.gauge("supervisor_up", "1 if the supervisor reported within the last 15 s.", float(fresh))
        if live is None:
            return
        yield made.gauge("supervisor_last_seen_timestamp_seconds", "When it last reported.", live.at)
        yield made.counter("incidents_total", "Incidents that are remembered.", live.incidents)
        yield made.counter("relaunches_total", "Launches by the supervisor since `up`.", live.relaunches)
        if fresh:
            states = [state for state in DeploymentState if state is not DeploymentState.RUNNING]
            phases = [((str(state),), float(state is live.phase)) for state in states]
            yield made.rows("deployment_phase", "1 for the state that it is in.", ("phase",), phases)
            yield made.gauge("deployment_phase_start_timestamp_seconds", "Since when.", live.since)
            said = "1 while new requests get 503 at the gateway."
            yield made.gauge("deployment_refusing", said, float(live.refusing))
            yield made.gauge("deployment_incident_open", "1 while an incident is open.", float(bool(live.incident)))
            troubles = [((kind,), 1.0) for kind in sorted({kind for kind, _ in live.troubles})]
            said = "1 for what is wrong and does not stop it from serving."
            yield made.rows("deployment_trouble", said, ("kind",), troubles)
            ranks = [((str(rank.rank), rank.node), float(rank.running)) for rank in live.ranks]
            yield made.rows("rank_up", "1 while the rank runs.", ("rank", "node"), ranks)
            yield from _canary(made, live)
            yield from _nodes(made, live)
            if live.engine:
                yield from self._engine(made, live.engine)
                yield from _tiers(made, live)

    def _live(self) -> Live | None:
        try:
            return from_json(Live, (self._home / "live.json").read_bytes())
        except (OSError, Unreadable):
            return None

    def _engine(self, made: "_Families", engine: LiveEngine) -> Iterator[Metric]:
        if engine.prefix_hits is not None and engine.prefix_queries is None:
            # SGLang counts no look-ups: there every prompt token is one
            engine = replace(engine, prefix_queries=engine.prompt_tokens)
        self._hits.add(engine.at, engine.prefix_queries, engine.prefix_hits)
        self._accepted.add(engine.at, engine.draft_tokens, engine.accepted_tokens)
        for name, told, field in _ENGINE:
            make = made.counter if name.endswith("_total") else made.gauge
            yield from _known(make, f"engine_{name}", told, getattr(engine, field))
        said = "Part of the queried prompt tokens that were in the prefix cache, over 5 min."
        yield from _known(made.gauge, "engine_prefix_cache_hit_ratio", said, self._hits.value)
        said = "Part of the drafted tokens that were accepted, over 5 min."
        yield from _known(made.gauge, "engine_draft_acceptance_ratio", said, self._accepted.value)


class Exporters:
    """The exposition of several deployments on one page."""

    def __init__(self) -> None:
        self._of: dict[Path, Exporter] = {}
        self._homes: Sequence[Path] = ()

    def page(self, homes: Sequence[Path]) -> bytes:
        """The exposition, of CONTENT_TYPE."""
        self._homes = homes
        return generate_latest(self)

    def collect(self) -> Iterator[Metric]:
        self._of = {home: self._of.get(home) or Exporter(home) for home in self._homes}
        families: dict[str, Metric] = {}
        for exporter in self._of.values():
            for metric in exporter.collect():
                families.setdefault(metric.name, metric)
                if families[metric.name] is not metric:
                    families[metric.name].samples.extend(metric.samples)
        yield from families.values()


class _Families:
    """Metrics of ours with the labels that all of them have."""

    def __init__(self, deployment: str, live: Live | None) -> None:
        simulated = "unknown" if live is None else str(live.simulated).lower()
        self._fixed = {"deployment": deployment, "simulated": simulated}

    def counter(self, name: str, told: str, value: float) -> Metric:
        family = CounterMetricFamily(f"sparkwright_{name}", told, labels=list(self._fixed))
        family.add_metric(list(self._fixed.values()), value)
        return family

    def gauge(self, name: str, told: str, value: float) -> Metric:
        return self.rows(name, told, (), [((), value)])

    def rows(
        self, name: str, told: str, labels: tuple[str, ...], rows: Sequence[tuple[tuple[str, ...], float]]
    ) -> Metric:
        make = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
        family = make(f"sparkwright_{name}", told, labels=[*self._fixed, *labels])
        for values, value in rows:
            family.add_metric([*self._fixed.values(), *values], value)
        return family


def _known(make: Callable[[str, str, float], Metric], name: str, told: str, value: float | None) -> Iterator[Metric]:
    """The metric if its value is known; one that the engine does not report is absent, never 0."""
    if value is not None:
        yield make(name, told, value)


def _canary(made: _Families, live: Live) -> Iterator[Metric]:
    """Skipped while real requests prove that it lives: then its age grows and means nothing bad."""
    if live.canary is None:
        return
    came = live.canary.seconds is not None
    yield made.gauge("canary_success", "1 when the last question got a real token.", float(came))
    yield made.gauge("canary_timestamp_seconds", "When it was asked.", live.canary.at)
    yield from _known(made.gauge, "canary_latency_seconds", "Until the token was there.", live.canary.seconds)


def _tiers(made: _Families, live: Live) -> Iterator[Metric]:
    for name, told, field in _TIER:
        rows = [((one.tier,), found) for one in live.cache_tiers if (found := getattr(one, field)) is not None]
        if rows:
            yield made.rows(f"engine_cache_tier_{name}", told, ("tier",), rows)


def _nodes(made: _Families, live: Live) -> Iterator[Metric]:
    reached = [((node.node,), float(node.reached)) for node in live.nodes]
    yield made.rows("node_reachable", "1 when the node answered last time.", ("node",), reached)
    seen = [node for node in live.nodes if node.reached]
    for name, told, field, factor in _NODE:
        rows = [((node.node,), found * factor) for node in seen if (found := getattr(node, field)) is not None]
        if rows:
            yield made.rows(f"node_{name}", told, ("node",), rows)
