"""How patient the supervisor is. Seconds, all scaled together for drills."""

from dataclasses import dataclass, fields, replace


@dataclass(frozen=True, slots=True)
class Policy:
    """backoffs: waits before the second, third, ... launch; the first launch after a stable service waits for nothing.

    windows: (launches, seconds): so many within so long, and it gives up. stable: seconds; a launch that served for so
    long has held and does not count, and the count of attempts begins again. again: wait before a launch that found the
    lease taken, and between tries to stop ranks that cannot be verified gone (the first one after backoffs[0]);
    patience: so long, then it gives up. incident's own figures: detectors say what they use. allow_reboot: the user's
    word.
    """

    backoffs: tuple[float, ...] = (5.0, 30.0, 120.0, 600.0)
    windows: tuple[tuple[int, float], ...] = ((3, 1800.0), (6, 21600.0))
    stable: float = 300.0
    again: float = 30.0
    patience: float = 21600.0
    canary_every: float = 15.0
    canary_limit: float = 10.0
    sample_every: float = 5.0
    allow_reboot: bool = False

    def scaled(self, by: float) -> "Policy":
        """The same with every time multiplied: drills cannot wait for half an hour."""
        times = {f.name: getattr(self, f.name) * by for f in fields(self) if isinstance(getattr(self, f.name), float)}
        backoffs = tuple(wait * by for wait in self.backoffs)
        return replace(self, backoffs=backoffs, windows=tuple((n, span * by) for n, span in self.windows), **times)
