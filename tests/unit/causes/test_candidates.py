"""Kinds of lines: a line that is skipped because it lacks a word would not match the pattern either."""

from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import pytest

from sparkwright.causes.candidates import is_line, line_pattern
from sparkwright.causes.load import families

DATA = Path(__file__).resolve().parents[2] / "data"
KINDS = ("bad", "said", "ends", "goes_on", "follows", "fatal", "engine", "gone", "passed", "signal")


def differing(lines: Iterable[str]) -> list[tuple[str, str]]:
    return [
        (kind, line)
        for line in lines
        for kind in KINDS
        if is_line(kind, line) != (line_pattern(kind).search(line) is not None)
    ]


def examples() -> list[str]:
    """All lines of the causes' own examples."""
    causes = chain.from_iterable(families().values())
    return [line for cause in causes for text in (*cause.fires, *cause.silent) for line in text.split("\n")]


def test_a_line_is_of_a_kind_if_its_pattern_is_found() -> None:
    """Guards the words by which most lines are skipped, in every thirtieth line of the causes' examples."""
    lines = examples()[::30]
    assert differing(lines) == []
    assert {kind for line in lines for kind in KINDS if is_line(kind, line)} >= {"bad", "said", "ends", "follows"}


@pytest.mark.full
def test_no_line_of_a_recording_is_skipped_wrongly() -> None:
    """The same in all examples, and in the recorded logs of failures and healthy starts, also in capitals."""
    folders = ("failures-fresh/*", "healthy", "captures_logs")
    logs = [log for folder in folders for log in DATA.glob(f"{folder}/*.log")]
    recorded = {line for log in logs for line in log.read_text(errors="replace").split("\n")}
    lines = {*recorded, *examples()}
    assert len(lines) > 5_000
    assert differing((*lines, *(line.upper() for line in lines if len(line) < 200))) == []
