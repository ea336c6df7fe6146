"""Signs: what in a log points to a cause; the matcher looks for those of all causes at once."""

from dataclasses import dataclass

# How sure a sign makes of its cause.
CERTAIN = 0.95  # the line itself says what is wrong, and nothing else prints it
LIKELY = 0.75  # nearly always this cause
POSSIBLE = 0.5  # one of a few causes
HINT = 0.3  # goes along with it; better than nothing

ANYWHERE = 10**12
WINDOW = 60  # lines around one; farther apart than that is anywhere


@dataclass(frozen=True, slots=True)
class Sign:
    """Regular expressions that are searched in single lines, without regard to case.

    patterns: all of them must be seen within `within` lines of one another in one source (0: in the same line).
    times: how often before it counts. unless: a line that this matches does not count.
    """

    patterns: tuple[str, ...]
    sure: float
    within: int = 0
    times: int = 1
    unless: str = ""
