"""The head's report on its supervisors and incidents, and reports that are neither."""

import json
from typing import Any

import pytest

from sparkwright.domain.codec import to_json
from sparkwright.domain.command import Completed
from sparkwright.domain.facts import Unknown
from sparkwright.domain.live import DeploymentState, Live, Supervised
from sparkwright.facts.store import parse_incidents, parse_supervised

LIVE = Live(100.0, "twin", DeploymentState.READY, 40.0)
ROW = {
    "deployment": "twin",
    "live": json.loads(to_json(LIVE)),
    "by": "me@laptop",
    "running": True,
    "unit": "",
    "endpoint": "",
    "now": 101.5,
}
INCIDENT = {"number": 3, "deployment": "twin", "kind": "frozen", "what": "", "opened_at": 5.0}


def supervised(**changed: Any) -> Supervised:
    found = parse_supervised(Completed(0, json.dumps([{**ROW, **changed}])), "spark-1", "~/state")
    assert not isinstance(found, Unknown)
    return found[0]


def test_a_supervisor_at_work_is_believed() -> None:
    """It wrote 1.5 s ago, and its process is there."""
    found = supervised()
    assert (found.current, found.age, found.trouble, found.by) == (LIVE, 1.5, "", "me@laptop")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"running": False}, "is not running; it last reported ready, 2 s ago"),
        (
            {"running": False, "live": {**ROW["live"], "left": 100.0}},  # type: ignore[dict-item]
            "is not running; it was asked to end 2 s ago, when it reported ready: nothing restarts it; the same",
        ),
        ({"now": 200.0}, "does not answer; it last reported ready, 100 s ago"),
        (
            {"now": 200.0, "unit": "u.service"},
            "systemd restarts it after 30 s of silence; at once on spark-1: `sudo sys",
        ),
        ({"now": 200.0, "unit": "u.service", "users_unit": True}, "`systemctl --user restart u.service`"),
        (
            {"now": 200.0, "unwritable": "read-only"},
            "read-only file system on spark-1: its supervisor cannot write its report",
        ),
        ({"now": 200.0, "unwritable": "owned root"}, 'on spark-1: `sudo chown -R "$USER": ~/state`'),
        ({"now": 200.0, "unwritable": "owned $(reboot)"}, "state folder owned by another user on spark-1"),
        ({"now": 200.0, "unwritable": "mode"}, "on spark-1: `chmod -R u+rwX ~/state`"),
        ({"live": None}, "does not answer: nothing ends and restarts it"),
        ({"live": {"phase": "ready"}}, "does not answer: nothing ends and restarts it"),
        ({"live": {**ROW["live"], "phase": "gone fishing"}, "running": False}, "is not running: nothing restarts it"),  # type: ignore[dict-item]
    ],
)
def test_one_that_is_not_is_not(changed: dict[str, Any], said: str) -> None:
    """A process that ended, one that hangs, a file of another version."""
    found = supervised(**changed)
    assert found.current is None and said in found.trouble


def test_a_clock_that_was_set_back_makes_nothing_stale() -> None:
    """Its age is no time to come."""
    assert supervised(now=50.0).age == 0.0


@pytest.mark.parametrize("text", ["", "{}", "[3]", '[{"deployment": "x"}]', "Traceback"])
def test_nonsense_is_unknown(text: str) -> None:
    """The parser's result carries python's report."""
    found = parse_supervised(Completed(1, text, "python3: no such file"), "spark-1")
    assert isinstance(found, Unknown) or found == ()


def test_an_incident_that_cannot_be_read_hides_no_other() -> None:
    """A field of another type, a field too many."""
    rows = [{**INCIDENT, "number": "three"}, {**INCIDENT, "later": 1}, 7]
    told = parse_incidents(Completed(0, json.dumps({"why": "", "incidents": rows})))
    assert not isinstance(told, Unknown)
    assert [incident.number for incident in told.incidents] == [3]
    assert isinstance(parse_incidents(Completed(127, "", "python3: not found")), Unknown)
