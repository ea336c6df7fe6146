"""Garbage output against answers that merely differ."""

from sparkwright.evals.coherence import babble
from sparkwright.supervisor.core.detect.canary import Garbage, foreign
from sparkwright.supervisor.core.state import Recovery
from unit.for_each import for_each

RECORDED = ["two three four five six", "Two, three, four, five, six,"]


def judged(said: list[str], recorded: list[str]) -> str:
    garbage = Garbage()
    for one in recorded:
        garbage.record(one)
    found = [garbage.answer(one, 1.0) for one in said]
    assert all(one is None or one.recovery is Recovery.RELAUNCH for one in found)
    return "".join(one.kind for one in found if one)


@for_each("said", ["!!!!!!", "!!!!!!!!", "the the the the", "????? ?", "nan nan nan nan", "\ufffd\ufffd a"])
def test_babble_is_garbage_twice_in_a_row(said: str) -> None:
    """No language repeats one sign, whatever was recorded, and one answer is not enough."""
    assert judged([said], RECORDED) == ""
    assert judged([said, said], RECORDED) == "garbage"
    assert judged([said, said], []) == "garbage"
    assert judged([said, RECORDED[0], said], RECORDED) == ""


@for_each(
    "said",
    [
        "two three four five six",
        "three, four, five",
        "Sure: two, three",
        "2, two",
        "  two",
        "TWO THREE",
        "ha ha two two",
    ],
)
def test_another_wording_is_none(said: str) -> None:
    """Greedy answers differ between boots and batches; a word in common is enough."""
    assert judged([said] * 5, RECORDED) == ""


def test_words_never_seen_are_foreign() -> None:
    """Word salad where the recorded answers agree with each other."""
    assert judged(["Кот lampada xyz", "vertex qua 17"], RECORDED) == "garbage"
    assert judged(["", ""], RECORDED) == "garbage"


def test_answers_that_never_agreed_measure_nothing() -> None:
    """A model that answers noise (dummy weights) or hides its answer in reasoning cannot be judged by words."""
    assert judged(["delta", "epsilon"], ["alpha", "beta", "gamma"]) == ""
    assert judged(["delta", "epsilon"], ["so alpha says", "so beta did", "gamma is so"]) == ""
    assert judged(["", "anything"], ["", ""]) == ""
    assert judged(["anything", "else"], ["alpha"]) == ""


def test_scripts_without_spaces_are_compared_by_pairs() -> None:
    """One Chinese sentence is a single word to a space; two signs in common are enough."""
    assert foreign("三四五六七", ["二三四五六", "二、三四五"]) == ""
    assert foreign("蓝天白云", ["二三四五六", "二、三四五"])


def test_the_evidence_shows_both() -> None:
    """A person must be able to judge it, too."""
    garbage = Garbage()
    garbage.record(RECORDED[0])
    garbage.answer("!!!!!!!!", 1.0)
    fault = garbage.answer("!!!!!!!!", 2.0)
    assert fault is not None
    assert fault.evidence == ("now '!!!!!!!!'", "now '!!!!!!!!'", "recorded 'two three four five six'")
    assert "'!' over and over" in fault.what


@for_each("said", ["", "7", "OK", "....", "aaa", "no no", "1 2 3 4 5 6 7 8"])
def test_short_text_is_no_babble(said: str) -> None:
    """Too little to report anything."""
    assert babble(said) == ""


def test_a_model_that_answers_garbage_from_the_start_is_reported_and_not_launched_again() -> None:
    """Guards random weights, which llama.cpp serves: a relaunch cannot fix what it causes, and it is over
    with
    the first answer that is language; garbage that comes later is a fault as ever."""
    garbage = Garbage()
    garbage.record("!!!!!!!!")
    found = [garbage.answer(said, 1.0) for said in ("!!!!!!!!", "aaaaaaaa", "one two")]
    assert [one and one.recovery for one in found] == [Recovery.NONE, Recovery.NONE, None]
    assert found[0] and "since its start: '!' over and over; a restart does not change that" in found[0].what
    garbage = Garbage()
    garbage.record(RECORDED[0])
    assert garbage.answer("!!!!!!!!", 2.0) is None
    again = garbage.answer("!!!!!!!!", 3.0)
    assert again and again.recovery is Recovery.RELAUNCH
