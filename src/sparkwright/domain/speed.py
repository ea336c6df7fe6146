"""How fast a plan will be: estimates that say how sure they are."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Estimate:
    """value with the interval low..high that nine of ten measurements should fall into. why: the arithmetic.

    value 0 with a why: it cannot be estimated, and for which reason.
    """

    value: float
    low: float = 0.0
    high: float = 0.0
    why: tuple[str, ...] = ()

    @property
    def known(self) -> bool:
        return self.value > 0


@dataclass(frozen=True, slots=True)
class Load:
    """What is asked of the endpoint. depth: tokens before; prompt: tokens of each request; cached: how many of them."""

    depth: int = 0
    concurrency: int = 1
    prompt: int = 0
    cached: int = 0


@dataclass(frozen=True, slots=True)
class Speed:
    """decode: tokens/s of one stream; decode_all: of all together. prefill: tokens/s. ttft, loading: seconds."""

    load: Load
    decode: Estimate
    decode_all: Estimate
    prefill: Estimate
    ttft: Estimate
    loading: Estimate
