"""The engine's events as `/metrics` in vLLM 0.21.0's names (data: `metrics-0.21.0.json`), and its loggers line."""

from __future__ import annotations

import asyncio
import bisect
import gc
import json
import platform
import resource
import time
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from sparkwright.simulator.job import Job
from sparkwright.simulator.log import LogVoice

MARK = (
    "# HELP sparkwright_simulated 1: these figures come from sparkwright's simulator of vLLM 0.21.0, no model runs.\n"
    "# TYPE sparkwright_simulated gauge\nsparkwright_simulated 1.0\n"
)
Labels = tuple[tuple[str, str], ...]
BORN = time.time()
SPEC = "vllm:spec_decode_num_"


class MetricSeries:
    """One label set of a family: a value, or counts per bucket and a sum."""

    __slots__ = ("born", "counts", "total", "value")

    def __init__(self, buckets: int) -> None:
        self.value = 0.0
        self.counts = [0] * (buckets + 1)
        self.total = 0.0
        self.born = time.time()


class MetricFamily:
    def __init__(self, row: dict[str, Any], fixed: dict[str, str]) -> None:
        self.name: str = row["name"]
        self.kind: str = row["type"]
        self.help: str = row["help"]
        self.created: bool = row["created"]
        self.bounds = [float(b) for b in row.get("buckets", ())]
        self.names: list[str] = row.get("buckets", [])
        self.fixed = {k: v for k, v in fixed.items() if k in row["labels"]}
        self.series: dict[Labels, MetricSeries] = {}
        first = row.get("series", [{}] if set(row["labels"]) <= set(fixed) else [])
        for labels in first:
            self.at(labels)

    def at(self, labels: dict[str, str]) -> MetricSeries:
        key = tuple(sorted({**self.fixed, **labels}.items()))
        if key not in self.series:
            self.series[key] = MetricSeries(len(self.bounds))
        return self.series[key]

    def lines(self) -> Iterator[str]:
        yield f"# HELP {self.name} {self.help}"
        yield f"# TYPE {self.name} {self.kind}"
        for key, series in self.series.items():
            yield from self._samples(key, series)
        if self.created and self.series:
            base = self.name.removesuffix("_total") if self.kind == "counter" else self.name
            yield f"# HELP {base}_created {self.help}"
            yield f"# TYPE {base}_created gauge"
            yield from (f"{base}_created{_braces(k)} {number(s.born)}" for k, s in self.series.items())

    def _samples(self, key: Labels, series: MetricSeries) -> Iterator[str]:
        if self.kind == "histogram":
            running = 0
            for name, count in zip([*self.names, "+Inf"], series.counts, strict=True):
                running += count
                yield f"{self.name}_bucket{_braces((*key, ('le', name)))} {number(running)}"
        if self.kind in ("histogram", "summary"):
            yield f"{self.name}_count{_braces(key)} {number(sum(series.counts))}"
            yield f"{self.name}_sum{_braces(key)} {number(series.total)}"
        else:
            yield f"{self.name}{_braces(key)} {number(series.value)}"


class Metrics:
    """All families. Counters and histograms keep what they are given; gauges may be asked for at each scrape."""

    def __init__(self, model: str, speculating: bool) -> None:
        text = (files(__package__ or "sparkwright.simulator") / "metrics-0.21.0.json").read_text(encoding="utf-8")
        fixed = {"engine": "0", "model_name": model}
        rows = [r for r in json.loads(text)["families"] if speculating or not r.get("spec")]
        self.families = {row["name"]: MetricFamily(row, fixed) for row in rows}
        self.set("vllm:engine_sleep_state", 1.0, sleep_state="awake")
        self._before: list[Callable[[], None]] = [self._process]

    def before_scrape(self, update: Callable[[], None]) -> None:
        self._before.append(update)

    def add(self, name: str, value: float = 1.0, **labels: str) -> None:
        self.families[name].at(labels).value += value

    def set(self, name: str, value: float, **labels: str) -> None:
        self.families[name].at(labels).value = value

    def get(self, name: str, **labels: str) -> float:
        return self.families[name].at(labels).value

    def observe(self, name: str, value: float, **labels: str) -> None:
        family = self.families[name]
        series = family.at(labels)
        series.counts[bisect.bisect_left(family.bounds, value)] += 1
        series.total += value

    def refresh(self) -> None:
        """Updates the values that are computed only at a scrape."""
        for update in self._before:
            update()

    def render(self) -> str:
        self.refresh()
        return MARK + "".join(f"{line}\n" for family in self.families.values() for line in family.lines())

    def _process(self) -> None:
        for generation, found in enumerate(gc.get_stats()):
            self.set("python_gc_objects_collected_total", found["collected"], generation=str(generation))
            self.set("python_gc_objects_uncollectable_total", found["uncollectable"], generation=str(generation))
            self.set("python_gc_collections_total", found["collections"], generation=str(generation))
        major, minor, patch = platform.python_version_tuple()
        version = {"major": major, "minor": minor, "patchlevel": patch, "version": platform.python_version()}
        self.set("python_info", 1.0, implementation=platform.python_implementation(), **version)
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[:2]
        size, resident = (int(count) * resource.getpagesize() for count in pages)
        self.set("process_virtual_memory_bytes", size)
        self.set("process_resident_memory_bytes", resident)
        self.set("process_start_time_seconds", BORN)
        self.set("process_cpu_seconds_total", round(time.process_time(), 2))
        self.set("process_open_fds", len(list(Path("/proc/self/fd").iterdir())))
        self.set("process_max_fds", resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def _braces(labels: Labels) -> str:
    if not labels:
        return ""
    inner = ",".join(f'{k}="{v}"' for k, v in sorted(labels))
    return "{" + inner + "}"


def number(value: float) -> str:
    """The number as the Prometheus client prints it: `13790.0`, `1.4264918016e+10`."""
    text = repr(float(value))
    dot = text.find(".")
    if value > 0 and dot > 6:
        mantissa = f"{text[0]}.{text[1:dot]}{text[dot + 1 :]}".rstrip("0.")
        return f"{mantissa}e+{dot - 1:02d}"
    return text


class Stats:
    def __init__(self, metrics: Metrics) -> None:
        self.metrics = metrics
        self.preemptions = 0
        self._prompt = self._generated = 0
        self._queries = self._hits = 0
        self._drafts: list[tuple[int, int]] = []
        self._quiet = True

    def admitted(self, job: Job) -> None:
        m = self.metrics
        m.add("vllm:prefix_cache_queries_total", len(job.prompt))
        m.add("vllm:prefix_cache_hits_total", job.cached)
        self._queries += len(job.prompt)
        self._hits += job.cached

    def preempted(self) -> None:
        self.preemptions += 1
        self.metrics.add("vllm:num_preemptions_total")

    def drafted(self, count: int, accepted: int) -> None:
        m = self.metrics
        m.add(SPEC + "drafts_total")
        m.add(SPEC + "draft_tokens_total", count)
        m.add(SPEC + "accepted_tokens_total", accepted)
        for position in range(count):
            m.add(SPEC + "accepted_tokens_per_pos_total", float(position < accepted), position=str(position))
        self._drafts.append((count, accepted))

    def tokens(self, job: Job, count: int, now: float) -> None:
        m = self.metrics
        if not job.first_token:
            job.first_token = now
            self._prefilled(job, now)
        else:
            m.observe("vllm:inter_token_latency_seconds", now - job.last_token)
        job.last_token = now
        m.add("vllm:generation_tokens_total", count)
        self._generated += count

    def _prefilled(self, job: Job, now: float) -> None:
        m = self.metrics
        fresh = len(job.prompt) - job.cached
        m.add("vllm:prompt_tokens_total", len(job.prompt))
        m.add("vllm:prompt_tokens_by_source_total", fresh, source="local_compute")
        m.add("vllm:prompt_tokens_by_source_total", job.cached, source="local_cache_hit")
        m.add("vllm:prompt_tokens_cached_total", job.cached)
        m.observe("vllm:time_to_first_token_seconds", now - job.arrived)
        self._prompt += len(job.prompt)

    def step(self, prompts: int, made: int) -> None:
        """Whole prompts with their first token. vLLM counts no step without a token: chunks of a prompt are none."""
        if made:
            self.metrics.observe("vllm:iteration_tokens_total", prompts + made)

    def finished(self, job: Job, reason: str) -> None:
        m = self.metrics
        m.add("vllm:request_success_total", finished_reason=reason)
        if reason == "abort":
            return
        made = len(job.made)
        m.observe("vllm:request_prompt_tokens", len(job.prompt))
        m.observe("vllm:request_generation_tokens", made)
        m.observe("vllm:request_max_num_generation_tokens", made)
        m.observe("vllm:request_params_n", 1)
        m.observe("vllm:request_params_max_tokens", job.max_tokens)
        m.observe("vllm:request_prefill_kv_computed_tokens", len(job.prompt) - job.cached)
        if made > 1:
            m.observe("vllm:request_time_per_output_token_seconds", (job.last_token - job.first_token) / (made - 1))
        m.observe("vllm:e2e_request_latency_seconds", job.last_token - job.arrived)
        m.observe("vllm:request_queue_time_seconds", job.started - job.arrived)
        m.observe("vllm:request_inference_time_seconds", job.last_token - job.started)
        m.observe("vllm:request_prefill_time_seconds", job.first_token - job.started)
        m.observe("vllm:request_decode_time_seconds", job.last_token - job.first_token)

    async def report(self, voice: LogVoice, every: float, load: Callable[[], tuple[int, int, float]]) -> None:
        """Reports for ever. `load` gives running, waiting and the share of the pool in use."""
        while True:
            await asyncio.sleep(every)
            prompt, generated = self._prompt / every, self._generated / every
            busy = bool(self._prompt or self._generated)
            self._prompt = self._generated = 0
            if busy or not self._quiet:
                self._line(voice, prompt, generated, load())
                self._speculation(voice, every)
            self._quiet = not busy

    def _line(self, voice: LogVoice, prompt: float, generated: float, load: tuple[int, int, float]) -> None:
        running, waiting, usage = load
        hits = 100 * self._hits / self._queries if self._queries else 0.0
        lost = f"Preemptions: {self.preemptions}, " if self.preemptions else ""
        voice.line(
            "loggers.py:271",
            prompt=prompt,
            generated=generated,
            running=running,
            waiting=waiting,
            lost=lost,
            usage=100 * usage,
            hits=hits,
        )

    def _speculation(self, voice: LogVoice, every: float) -> None:
        drafts, self._drafts = self._drafts, []
        if not drafts:
            return
        count, good = len(drafts), sum(a for _, a in drafts)
        drafted = sum(d for d, _ in drafts)
        rates = ", ".join(f"{sum(a > p for _, a in drafts) / count:.3f}" for p in range(drafts[0][0]))
        voice.line(
            "metrics.py:101",
            good=1 + good / count,
            good_2=good / every,
            drafted=drafted / every,
            good_3=good,
            drafted_2=drafted,
            rates=rates,
            drafted_3=100 * good / drafted,
        )
