"""The engine's events as metrics, and vLLM's loggers line every ten seconds while there is traffic."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from sparkwright.simulator.job import Job
from sparkwright.simulator.log import Voice
from sparkwright.simulator.metrics import Metrics

SPEC = "vllm:spec_decode_num_"


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

    async def report(self, voice: Voice, every: float, load: Callable[[], tuple[int, int, float]]) -> None:
        """For ever. `load` gives running, waiting and the share of the pool in use."""
        while True:
            await asyncio.sleep(every)
            prompt, generated = self._prompt / every, self._generated / every
            busy = bool(self._prompt or self._generated)
            self._prompt = self._generated = 0
            if busy or not self._quiet:
                self._line(voice, prompt, generated, load())
                self._speculation(voice, every)
            self._quiet = not busy

    def _line(self, voice: Voice, prompt: float, generated: float, load: tuple[int, int, float]) -> None:
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

    def _speculation(self, voice: Voice, every: float) -> None:
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
