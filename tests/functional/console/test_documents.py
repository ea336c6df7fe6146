"""Output of commands with --json, held to docs/reference/documents.schema.json, on a deployment that lost a rank."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from functional.console.desk import ConsoleCluster
from functional.test_runs import add_runs, run_of_ten

DOCS = Path(__file__).parents[3] / "docs/reference"
SCHEMA = json.loads((DOCS / "documents.schema.json").read_text())
pytestmark = pytest.mark.full
LOG = "INFO loading\nRuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n"


@pytest.fixture(scope="module")
def lost_desk(console_cluster: ConsoleCluster) -> ConsoleCluster:
    """The desk with an incident, a client's request, runs of a benchmark and a log of a failure."""
    console_cluster.wait_until(lambda live: live.phase == "ready")
    before = console_cluster.live()
    assert before
    if not before.last_incident:
        console_cluster.kill(1)
        console_cluster.wait_until(lambda live: live.phase == "ready" and live.last_incident > 0)
    add_runs(console_cluster.shell, run_of_ten(0.1, "r-20261122-7f3a"))
    (console_cluster.shell.folder / "failed.log").write_text(LOG)
    return console_cluster


def document(desk: ConsoleCluster, *words: str) -> dict[str, Any]:
    _, out, err = desk.shell.run(*words, "--json")
    assert out, err
    found: dict[str, Any] = json.loads(out)
    return found


@pytest.mark.parametrize(
    "words, filled",
    [
        (("check",), "findings"),
        (("check", "--fix", "--dry-run"), "findings"),
        (("status",), "deployments"),
        (("plan", "./twin.yaml"), "ranks"),
        (("plan", "gpt-oss-120b", "--nodes", "1"), "speeds"),
        (("plan", "deepseek-v4-flash", "--nodes", "1"), "remedies"),
        (("plan", "gpt-oss-120b", "--nodes", "1,2"), "plans"),
        (("recipes", "list"), "recipes"),
        (("recipes", "list", "--nodes", "1", "--for", "code"), "recipes"),
        (("incidents", "list"), "incidents"),
        (("incidents", "show", "1"), "incident"),
        (("keys", "list"), "keys"),
        (("runs", "list"), "runs"),
        (("diagnose", "twin"), "diagnosis"),
        (("diagnose", "failed.log"), "diagnosis"),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, tuple) else "",
)
def test_a_document_is_valid(lost_desk: ConsoleCluster, words: tuple[str, ...], filled: str) -> None:
    """Guards scripts that read it: the schema is strict about types, and the rows that it describes are there."""
    found = document(lost_desk, *words)
    jsonschema.validate(found, SCHEMA)
    assert found[filled], f"nothing in {filled}: an empty list proves little"


def test_the_schema_is_no_formality(lost_desk: ConsoleCluster) -> None:
    """A wrong type, an unknown state and a missing key are found, each in the document that it belongs to."""
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    good = document(lost_desk, "status")
    row = good["deployments"][0]
    for bad in (
        {**good, "deployments": [{**row, "state": "splendid"}]},
        {**good, "deployments": [{**row, "ranks": "two"}]},
        {**good, "deployments": [{name: value for name, value in row.items() if name != "ranks"}]},
        {name: value for name, value in good.items() if name != "deployments"},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(bad, SCHEMA)
