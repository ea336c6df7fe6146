"""The list of runs, as wide as the terminal."""

import sys
from typing import Any

import pytest

from sparkwright.cli.runs import runs_text
from sparkwright.domain.run import RunListing

RUN = RunListing(
    "r-20261122-7f3a",
    1.0,
    2.0,
    "done",
    "agentic-quick@1",
    "a-model-with-a-very-long-name",
    "http://spark-1:8000",
    "vllm",
    "0.21.0",
    simulated=True,
    requests=1234,
    tags=("before",),
)


@pytest.mark.parametrize("width", [60, 80, 300])
def test_a_run_fits_the_terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """Two lines in a narrow one; nothing is lost; a pipe gets one line a run."""
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    text = runs_text([RUN, RUN])
    assert max(map(len, text.splitlines())) <= width
    for word in ("SIMULATED", "1234", "before", "agentic-quick@1", "vllm", " done"):
        assert text.count(word) == 2
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False, raising=False)
    assert len(runs_text([RUN, RUN]).splitlines()) == 2


def test_without_runs(monkeypatch: Any) -> None:
    """A sentence."""
    assert runs_text([]) == "no runs"
