"""A log as a story, whatever the dialect."""

from sparkwright.domain.deployment import LogEvent, Phase
from sparkwright.facts.engine_log import read_log, root_error


def dialect(line: str) -> LogEvent | None:
    words = line.split()
    if "boom" in words:
        return LogEvent(Phase.START, line, error=True)
    if "alive" in words:
        return LogEvent(Phase.GRAPHS, alive=True)
    known = {phase.value: phase for phase in Phase}
    phase = next((known[word] for word in words if word in known), None)
    return LogEvent(phase, line, facts=(("last", line),), ready="ready" in words) if phase else None


def test_phases_only_go_forward() -> None:
    """A line that belongs to an earlier phase does not take a rank back, and a sign of life is no phase."""
    log = ["I 11-21 04:00:00 start", "11-21 04:00:10 load", "start", "alive", "11-21 04:01:00 server ready"]
    told = read_log(log, dialect)
    assert told.phases == ((Phase.START, 0.0), (Phase.LOAD, 10.0), (Phase.SERVER, 60.0))
    assert told.ready_after == 60.0


def test_time_never_runs_back() -> None:
    """Ranks write side by side into one log: an earlier stamp later on changes nothing."""
    told = read_log(["11-21 04:00:10 start", "11-21 04:00:05 load", "11-21 04:00:20 server"], dialect)
    assert told.phases == ((Phase.START, 0.0), (Phase.LOAD, 0.0), (Phase.SERVER, 10.0))


def test_the_root_is_the_first_that_is_no_consequence() -> None:
    """The first of the consequences is better than nothing, if there are only consequences."""
    later = "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue"
    assert root_error([later, "ValueError: boom"]) == "ValueError: boom"
    assert root_error([later]) == later
    assert root_error([]) == ""
