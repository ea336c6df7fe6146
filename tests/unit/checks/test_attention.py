"""The findings that still need attention."""

from dataclasses import replace

import pytest

from sparkwright.checks.attention import attention
from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.unknown import Unknown
from unit.checks.samples import healthy

FACTS = {"spark-1": healthy("spark-1")}
KILLED = Finding("MEM013", Severity.WARN, "spark-1", "programs were killed", "/proc/vmstat: oom_kill 1 since boot")
STATE = Finding("MEM009", Severity.INFO, "spark-1", "little is kept free", "vm.min_free_kbytes = 1")
XID = Finding("GPU004", Severity.OVERRIDE, "spark-1", "Xid 79", "kernel log: Xid 79")


def test_an_event_is_a_finding_once() -> None:
    """Guards a healthy node that was never good again after one killed program: the next check lists it as old."""
    first = attention([KILLED, STATE], FACTS, now=5.0)
    assert first.findings == (KILLED, STATE) and list(first.events.values()) == [5.0]
    again = attention([KILLED, STATE], FACTS, seen=first.events, now=9.0)
    assert (again.findings, again.old, again.events) == ((STATE,), ((KILLED, 5.0),), first.events)


def rebooted() -> dict[str, NodeFacts]:
    there = FACTS["spark-1"]
    assert not isinstance(there.identity, Unknown)
    return {"spark-1": replace(there, identity=replace(there.identity, boot_id="another"))}


@pytest.mark.parametrize(
    ("found", "facts"),
    [(replace(KILLED, evidence="/proc/vmstat: oom_kill 2 since boot"), FACTS), (KILLED, rebooted())],
    ids=["one more", "the same count after a reboot"],
)
def test_a_new_event_is_a_finding_again(found: Finding, facts: dict[str, NodeFacts]) -> None:
    """Guards the second killed program, which looks much like the first."""
    seen = attention([KILLED], FACTS, now=5.0).events
    assert attention([found], facts, seen=seen).findings == (found,)


def test_what_is_ignored_is_counted_and_what_stops_a_start_never_is() -> None:
    """Guards `up` from a GPU that is off the bus, whatever the owner's file reports, and however often it was shown."""
    seen = {f"GPU004 spark-1 {boot} {XID.evidence}": 1.0 for boot in ("b", "another")}
    found = attention([XID, STATE], FACTS, ("GPU004", "MEM009"), seen)
    assert (found.findings, found.ignored, found.old) == ((XID,), (STATE,), ())


def test_a_code_that_is_gone_is_still_ignored() -> None:
    """Guards a cluster file with `ignore: [FILE001]`: the check that covers the defect since is ignored."""
    found = attention([Finding("MODEL004", Severity.INFO, "spark-1", "t")], {}, ignore=("FILE001",))
    assert found.findings == () and len(found.ignored) == 1
