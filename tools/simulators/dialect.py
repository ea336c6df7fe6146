"""The seam of a dialect: what an engine reports at each step of its life, and what its web server offers."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from starlette.routing import Route

from simulators.site import SimulatedSite, SiteApi
from sparkwright.simulator.link import Frame
from sparkwright.simulator.rank import SimulatedRank
from sparkwright.simulator.service import Core


class SimulatorDialect(Protocol):
    """One engine's dialect. Methods print through `rank.voices.api`; those that are async take their phase's time."""

    @property
    def notices(self) -> bool:
        """True if an idle head notices that a worker is gone; else its next step does."""
        ...

    @property
    def metrics(self) -> Mapping[str, str]:
        """The engine's name of a metric -> vLLM's, under which the simulator counts it."""
        ...

    @property
    def api(self) -> SiteApi | None:
        """The API if answers are not in vLLM's shapes."""
        ...

    def greet(self, rank: SimulatedRank) -> None: ...

    def join(self, rank: SimulatedRank) -> None:
        """Reports the state before the ranks meet: nothing more is reported while one is missing."""
        ...

    def met(self, rank: SimulatedRank, others: list[Frame]) -> None:
        """All ranks are there, each with `free`, its GiB. Raises StartFailed."""
        ...

    async def load(self, rank: SimulatedRank) -> None: ...

    async def fit(self, rank: SimulatedRank) -> None:
        """The KV pool. Raises StartFailed."""
        ...

    async def capture(self, rank: SimulatedRank) -> None: ...

    def listening(self, rank: SimulatedRank) -> None:
        """The web server takes connections."""
        ...

    def ready(self, rank: SimulatedRank) -> None: ...

    def failed(self, rank: SimulatedRank, why: str) -> None:
        """The start ends with exit code 1."""
        ...

    async def lost(self, rank: SimulatedRank) -> int:
        """A rank is gone: what is reported, after the time that it takes; the exit code. Never returns when it
        kills."""
        ...

    async def drained(self, core: Core) -> None:
        """Drains after SIGTERM, while requests run: returns when the engine ends all the same, or has none left."""
        ...

    def stopping(self, rank: SimulatedRank) -> None: ...

    def exits(self) -> int:
        """The exit code of a rank 0 that was stopped. Never returns when it kills itself."""
        ...

    def companions(self, rank: SimulatedRank) -> AbstractAsyncContextManager[None]:
        """The companions that a worker runs while it serves."""
        ...

    def routes(self, site: SimulatedSite) -> list[Route]:
        """The routes besides /v1 and those of all engines."""
        ...

    def guarded(self, path: str) -> bool:
        """True if a request there needs the key."""
        ...

    def labels(self, line: str) -> str:
        """A sample line with this engine's labels."""
        ...
