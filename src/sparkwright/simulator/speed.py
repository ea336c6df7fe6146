"""How long things take: loading, compiling, capturing, and one step of the engine."""

from __future__ import annotations

from dataclasses import dataclass

from sparkwright.simulator.ledger import Ledger, Limits
from sparkwright.simulator.model import Model
from sparkwright.simulator.settings import Settings


@dataclass(frozen=True, slots=True)
class Speed:
    """Seconds of the simulated machine, before the time scales."""

    model: Model
    limits: Limits
    ledger: Ledger
    settings: Settings

    @property
    def load_s(self) -> float:
        return self.ledger.weights / self.settings.load_gib_s + 0.2

    @property
    def compile_s(self) -> float:
        """Captures: 10 s for 4 layers, 31 s for 36."""
        return 0.0 if self.limits.eager else 8.0 + 0.64 * self.model.layers

    @property
    def graph_s(self) -> float:
        """Seconds of one captured batch size (captures: 3 s for 30 of a tiny model, 8 s for 102 of 8B)."""
        return 0.03 + 0.0015 * self.model.layers

    def prefill_s(self, tokens: int) -> float:
        if self.settings.prefill_tps:
            return tokens / self.settings.prefill_tps
        flops = 2.0 * self.model.parameters_active * tokens / self.limits.world
        return flops / (self.settings.compute_tflops * 1e12)

    def decode_s(self, sequences: int, context: int) -> float:
        """One token for each of `sequences`, whose contexts hold `context` tokens together.

        Weights read (a batch reads more experts), KV read, two all-reduces per layer: field guide, section 5.
        """
        if sequences == 0:
            return 0.0
        if self.settings.step_ms:
            return self.settings.step_ms / 1000 * (1 + 0.02 * (sequences - 1))
        hit = 1 - (1 - self.model.chosen) ** sequences if self.model.chosen < 1 else 1.0
        read = self.model.active + self.model.experts * (hit - self.model.chosen) if self.model.experts else 0.0
        weights = (read or self.model.active) / self.limits.world
        rate = self.settings.bandwidth_gb_s * 1e9 * self.settings.efficiency
        reduces = 2 * self.model.layers * self.settings.allreduce_us * 1e-6 if self.limits.world > 1 else 0.0
        return (weights + context * self._kv_read()) / rate + reduces + 0.0005

    def step_s(self, prefill: int, sequences: int, context: int) -> float:
        """One engine step: a chunk of prompts and one token of every running sequence share it."""
        return max(self.prefill_s(prefill), 0.0) + self.decode_s(sequences, context)

    def _kv_read(self) -> float:
        """Sparse attention reads little of a long context (field guide, section 4: 2.9 ms at 980K)."""
        return 700.0 if self.model.compressed else self.ledger.per_token
