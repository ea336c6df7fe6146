"""What a supervisor tells: lines with their time in a file of its own, of bounded size."""

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from sparkwright.domain.progress import Happening, Notice, RankPhase, StepDone, StepStarted

MOST = 1 << 20


class Log:
    """Implements ports.Sink. Also kept: the one before, `log.1`. Of what a rank tells, only the first of a phase."""

    def __init__(self, path: Path, now: Callable[[], float], most: int = MOST) -> None:
        self._path, self._now, self._most = path, now, most
        self._phases: dict[int, RankPhase] = {}

    def say(self, text: str) -> None:
        """Never fails: a full disk is no reason to serve nobody."""
        stamp = datetime.fromtimestamp(self._now(), UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
        with suppress(OSError):
            if self._path.exists() and self._path.stat().st_size > self._most:
                self._path.replace(self._path.with_name(f"{self._path.name}.1"))
            with self._path.open("a", encoding="utf-8", errors="replace") as file:
                file.write(f"{stamp}Z {' '.join(text.split())}\n")

    def tell(self, happening: Happening) -> None:
        if isinstance(happening, RankPhase):
            before = self._phases.get(happening.rank)
            self._phases[happening.rank] = happening
            if before and before.phase == happening.phase:
                return
        if text := line(happening):
            self.say(text)


def line(happening: Happening) -> str:
    """'' for what only a screen wants: progress."""
    if isinstance(happening, Notice):
        return f"{'warning: ' if happening.warning else ''}{happening.text}"
    if isinstance(happening, StepStarted):
        return f"{happening.step} {happening.detail}"
    if isinstance(happening, StepDone):
        return f"{happening.step} done in {happening.seconds:.1f} s {happening.detail}"
    if isinstance(happening, RankPhase):
        return f"rank {happening.rank} on {happening.node}: {happening.phase} {happening.text}"
    return ""
