"""Answers that vLLM ended because they repeated themselves: a share of all is a trouble, single ones are none."""

from sparkwright.domain.live import LiveEngine
from sparkwright.supervisor.core.detect.repetition import SPAN, Repetition


def engine_at(at: float, repeating: float | None, finished: float | None) -> LiveEngine:
    return LiveEngine(at, repeating=repeating, finished=finished)


def test_a_tenth_of_all_answers_is_named_with_its_time() -> None:
    """It is over once they are older than ten minutes."""
    watched = Repetition()
    assert watched.add(engine_at(0, 0, 100)) == ""
    assert watched.add(engine_at(60, 2, 104)) == ""
    said = watched.add(engine_at(120, 3, 108))
    assert said == "3 of 8 answers of the last 2 min 00 s were ended by the engine: they repeated themselves"
    assert watched.add(engine_at(121 + SPAN, 3, 200)) == ""


def test_odd_prompts_of_a_busy_engine_are_nothing() -> None:
    watched = Repetition()
    assert watched.add(engine_at(0, 0, 0)) == ""
    assert watched.add(engine_at(300, 5, 400)) == ""


def test_another_start_begins_at_nought_and_other_engines_count_nothing() -> None:
    watched = Repetition()
    assert watched.add(engine_at(0, 50, 60)) == ""
    assert watched.add(engine_at(10, 2, 3)) == ""
    assert watched.add(engine_at(20, 4, 5)) == ""
    assert watched.add(engine_at(30, 5, 6)) != ""
    assert watched.add(engine_at(40, None, 9)) == "" and watched.add(None) == ""
