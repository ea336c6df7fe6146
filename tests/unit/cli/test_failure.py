"""The failures in a form for programs."""

import json
from typing import Any

import click
import pytest

from sparkwright.cli import main as cli
from sparkwright.cli.failure import failure_json
from sparkwright.domain import errors
from sparkwright.domain.finding import Finding, Severity

FINDING = Finding("MEM001", Severity.BLOCK, "spark-1", "does not fit", "119.7 GiB", "too large", "take @256k")


def printed(error: BaseException, *known: errors.SparkwrightError, code: int = 1) -> Any:
    text = failure_json(error, known, code)
    assert "\n" not in text, "it may follow lines that are documents, each of its own"
    return json.loads(text)


def test_a_refusal_carries_its_findings() -> None:
    """Guards `up --json`: why it was refused must not be prose on stderr alone."""
    error = errors.Refused("not started", (FINDING,), "fix")
    (only,) = printed(error, error)["errors"]
    assert (only["kind"], only["message"], only["hint"], only["cure"]) == ("Refused", "not started", "fix", "fix")
    assert [(f["code"], f["severity"], f["remedy"]) for f in only["findings"]] == [("MEM001", "block", "take @256k")]
    assert only["remedies"] == []


def test_a_failed_start_carries_the_ranks_last_lines() -> None:
    """Guards the evidence, and where more of it is."""
    error = errors.NotReady("exited", "look", ("l1", "l2"), "/evidence")
    (only,) = printed(error, error)["errors"]
    assert (only["tail"], only["logs"], only["causes"]) == (["l1", "l2"], "/evidence", [])


def test_several_nodes_trouble_is_several_errors() -> None:
    """Guards a group: each node is named."""
    both = errors.Unreachable("a", "gone"), errors.Unreachable("b", "gone")
    found = printed(ExceptionGroup("g", both), *both, code=3)
    assert found["exit_code"] == 3
    assert [(one["kind"], one["node"]) for one in found["errors"]] == [("Unreachable", "a"), ("Unreachable", "b")]


@pytest.mark.parametrize(
    ("error", "kind"), [(click.UsageError("no such option"), "UsageError"), (RuntimeError("oh"), "RuntimeError")]
)
def test_whatever_else_goes_wrong_is_reported_too(error: Exception, kind: str) -> None:
    """Guards wrong arguments and our own bugs."""
    (only,) = printed(error)["errors"]
    assert (only["kind"], only["message"]) == (kind, "no such option" if kind == "UsageError" else "oh")


def test_it_is_on_stdout_only_where_json_was_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    """Guards pipes: a program reads one document whatever happens, people read stderr."""
    assert cli.run(["status", "--nonsense", "--json"]) == 2
    said = capsys.readouterr()
    assert json.loads(said.out)["exit_code"] == 2 and said.err.startswith("error: ")
    assert cli.run(["status", "--nonsense"]) == 2
    assert capsys.readouterr().out == ""
