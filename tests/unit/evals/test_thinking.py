"""The probe of reasoning, on answers without any."""

from types import SimpleNamespace
from typing import Any, cast

from sparkwright.domain.evaluation import ProbeState
from sparkwright.evals.probe import Tally
from sparkwright.evals.text import thinking


def test_an_endpoint_without_reasoning_does_not_pass() -> None:
    """A pass would claim that reasoning is kept apart, of which nothing was seen."""
    given: Any = SimpleNamespace(
        dice=lambda _: SimpleNamespace(choice=lambda words: words[0]),
        thinking=False,
        brief=False,
        chat=lambda prompt, most: SimpleNamespace(body={"prompt": prompt}),
        pinned=lambda on: {},
    )
    steps = thinking(given)
    next(steps)
    heard = SimpleNamespace(
        status=200, refused=False, trouble="", content="a place", reasoning="", finish="stop", raw=""
    )
    try:
        steps.send(cast(Any, (heard,)))
    except StopIteration as stop:
        tally: Tally = stop.value
    outcome = tally.outcome("thinking")
    assert outcome.state is ProbeState.SKIPPED and "not applicable, no reasoning seen" in outcome.detail
