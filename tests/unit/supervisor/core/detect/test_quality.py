"""The times at which a short probe of the answers is due, and the failures that are reported."""

from random import Random

from sparkwright.app.bench.parsers import parser_probes
from sparkwright.domain.recipe import Parsers
from sparkwright.supervisor.core.detect.quality import AGAIN, EVERY, STRIKES, Quality

NAMES = ("tool-call", "thinking", "length")


def judge_next(quality: Quality, why: str | None = "") -> str:
    """The next probe, answered so."""
    quality.answered = EVERY
    name = quality.due()
    quality.judge(name, why)
    return name


def test_which_probes_parsers_need() -> None:
    """A recipe without parsers is never asked."""
    assert parser_probes(Parsers(tool="hermes", reasoning="qwen3")) == NAMES
    assert parser_probes(Parsers(reasoning="qwen3")) == ("thinking", "length")
    assert parser_probes(Parsers()) == ()
    assert Quality((), answered=1000).due() == ""


def test_they_take_turns() -> None:
    """Each has its turn after so many canaries, whatever was judged."""
    quality = Quality(NAMES)
    quality.answered = EVERY - 1
    assert quality.due() == ""
    assert [judge_next(quality, why) for why in ("", None, "", "")] == [*NAMES, "tool-call"]
    assert quality.wrong == {}


def test_what_fails_is_asked_again_soon_and_reported_once_it_is_sure() -> None:
    """One failure is chance; a row of them has the first reason; a pass ends it."""
    quality = Quality(NAMES)
    for strike in range(STRIKES):
        assert quality.wrong == {}
        assert judge_next(quality, f"text, not a call ({strike})") == "tool-call"
        assert quality.answered == 0
    assert quality.wrong == {"tool-call": "text, not a call (0)"}
    quality.answered = AGAIN
    assert judge_next(quality) == "thinking"
    assert judge_next(quality, None) == "length"
    assert judge_next(quality) == "tool-call"
    assert quality.wrong == {}


def test_no_answer_is_no_pass() -> None:
    """A busy engine neither clears nor adds to what was seen."""
    quality = Quality(("length",))
    for why in ("short", None, "short", None, "short"):
        judge_next(quality, why)
    assert quality.wrong == {"length": "short"}


def test_healthy_models_raise_nothing() -> None:
    """200 runs of 33 hours in which 1 % of probes fails by chance raise nothing."""
    for run in range(200):
        dice, quality = Random(run), Quality(NAMES)
        for _ in range(400):
            judge_next(quality, "chance" if dice.random() < 0.01 else "")
            assert quality.wrong == {}
