"""Answers of real starts of small models, as coherence_alarms.py recorded them: none is called garbled."""

import json
from pathlib import Path
from typing import Any

import pytest

from sparkwright.evals.coherence import Coherence, judge_answers, questions

FILE = Path(__file__).parents[2] / "data/evals/coherence-starts.json"
RECORDED: list[dict[str, Any]] = json.loads(FILE.read_text())["sets"]


@pytest.mark.parametrize("model", sorted({one["model"] for one in RECORDED}))
def test_no_healthy_start_is_called_garbled(model: str) -> None:
    """Guards the rules against a change that alarms owners of healthy models; each set is judged as it was then."""
    mine = [one for one in RECORDED if one["model"] == model]
    told = [judge_answers(list(zip(questions(), one["answers"], strict=True))) for one in mine]
    assert [judged.coherence for judged in told] == [one["judged"] for one in mine]
    assert Coherence.GARBLED not in {judged.coherence for judged in told}


def test_instruction_models_are_coherent() -> None:
    """Guards the check's use: a healthy instruction model at temperature 0 must not be `could not tell`."""
    greedy = [one for one in RECORDED if "instruct" in one["model"] and not one["temperature"]]
    assert len(greedy) > 5 and {one["judged"] for one in greedy} == {Coherence.COHERENT}
