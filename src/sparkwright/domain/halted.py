"""A process that has not ended and does not run."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Halt:
    """pid: on its node; name: as the kernel has it. paused: with its whole container (docker pause)."""

    pid: int
    name: str = ""
    paused: bool = False

    def __str__(self) -> str:
        if self.paused:
            return f"its container is paused (docker pause), its first process is {self.pid}"
        return f"process {self.pid} ({self.name}) is stopped (state T: SIGSTOP)"
