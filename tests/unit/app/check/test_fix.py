"""`check --fix` and `--undo` on fake nodes: what is recorded when, what is left alone, that nothing stays half done."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from fakes.clock import FakeClock
from fakes.host import Given
from fakes.rank_node import STATE, RankNode
from sparkwright.app.check.checking import check_nodes
from sparkwright.app.check.fix import (
    FixOutcome,
    Result,
    WantedFix,
    apply_fixes,
    mendable,
    undo_fixes,
    undoable,
    with_password,
)
from sparkwright.domain.command import Command, Completed, Secret
from sparkwright.domain.errors import Busy, CommandFailed, Unreachable
from sparkwright.facts import changes
from sparkwright.facts.upkeep import UPKEEP
from unit.app.scene import ClusterScene

GPU = "name, driver_version, compute_cap, memory.total\nNVIDIA GB10, 580.142, 12.1, [N/A]\n"
RECORD = f"{STATE}/fixes.json"
WANTED = "3145728"
GRANTED = Completed(0, "")
ASKS = Completed(1, "", "sudo: a password is required")
PASSWORD = Secret("s3cret")


@dataclass
class Tunable(RankNode):
    """A GB10 whose vm.min_free_kbytes is `value`. refuses_set: what sysctl reports instead of setting it. ignores:
    reports

    that it did and did not. rights: what is reported of the way to root. seen: the record as it was at each change.
    meanwhile: happens once it is set.
    """

    value: str = "67584"
    refuses_set: Completed | None = None
    ignores: bool = False
    rights: Completed = GRANTED
    accepts: Completed = GRANTED
    seen: tuple[str, ...] = ()
    meanwhile: Callable[[], object] = bool

    def _given(self, command: Command) -> Given:
        words = command.argv
        if command.changes.startswith("set vm.min_free_kbytes"):
            return self._set(words[-2])
        if command in (changes.rights(), changes.rights(PASSWORD)):
            return self.accepts if command.stdin else self.rights
        if command == changes.recorded(STATE).command:
            return self.files.get(RECORD, b"").decode()
        if "query-gpu" in " ".join(words):
            return GPU
        if command == UPKEEP.command:
            return f"@@ sysctl\nvm/min_free_kbytes:{self.value}\n"
        return f"{self.value}\n" if words[-1] == "vm/min_free_kbytes" else super()._given(command)

    def _set(self, value: str) -> Completed:
        self.seen = (*self.seen, self.files.get(RECORD, b"").decode())
        if self.refuses_set:
            return self.refuses_set
        self.value = self.value if self.ignores else value
        self.meanwhile()
        return Completed(0, "")

    @property
    def recorded(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = json.loads(self.files[RECORD])["changes"]
        return rows


@pytest.fixture
def tunable_scene() -> ClusterScene:
    clock = FakeClock()
    return ClusterScene([Tunable(f"spark-{n}", clock=clock) for n in (1, 2)], clock)


def tunable_node(here: ClusterScene, number: int = 0) -> Tunable:
    found = here.nodes[number]
    assert isinstance(found, Tunable)
    return found


async def proposed(here: ClusterScene) -> tuple[WantedFix, ...]:
    return await mendable(here.services, await check_nodes(here.services), ("MEM009",))


async def fix_proposed(here: ClusterScene) -> tuple[Result, ...]:
    results, _ = await apply_fixes(here.services, await proposed(here), seize=False)
    return results


async def undone(here: ClusterScene) -> tuple[Result, ...]:
    wanted, lost = await undoable(here.services)
    assert lost == ()
    return await undo_fixes(here.services, wanted, seize=False)


def outcomes(results: tuple[Result, ...]) -> list[FixOutcome]:
    return [result.outcome for result in results]


async def test_what_is_due_is_set_recorded_and_no_longer_found(tunable_scene: ClusterScene) -> None:
    """Guards the whole way: both nodes changed, in the log, recorded 0600, and the second check finds nothing of it."""
    results, after = await apply_fixes(tunable_scene.services, await proposed(tunable_scene), seize=False)
    assert outcomes(results) == [FixOutcome.DONE] * 2
    assert "MEM009" not in {finding.code for finding in after.findings}
    for number in (0, 1):
        assert tunable_node(tunable_scene, number).value == WANTED
        assert "set vm.min_free_kbytes = 3145728, also in /etc/sysctl.d" in tunable_node(tunable_scene, number).changes
        (row,) = tunable_node(tunable_scene, number).recorded
        assert (row["code"], row["before"], row["done"], row["who"]) == ("MEM009", "67584", True, "anna@laptop")
        assert tunable_node(tunable_scene, number).modes[RECORD] == 0o600
    assert [one.holder for one in tunable_scene.nodes] == [None, None]


async def test_the_way_back_is_recorded_before_the_change(tunable_scene: ClusterScene) -> None:
    """Guards a kill in between: when the value is set, the node already knows how to undo it."""
    await fix_proposed(tunable_scene)
    (record,) = tunable_node(tunable_scene).seen
    (row,) = json.loads(record)["changes"]
    assert (row["done"], row["fix"]["undo"][0]["argv"][-2]) == (False, "67584")


async def test_undo_restores_what_was_there_and_forgets(tunable_scene: ClusterScene) -> None:
    """Guards that the value found comes back, and that nothing is left to be taken back twice."""
    await fix_proposed(tunable_scene)
    assert outcomes(await undone(tunable_scene)) == [FixOutcome.DONE] * 2
    assert [tunable_node(tunable_scene, n).value for n in (0, 1)] == ["67584", "67584"]
    assert [tunable_node(tunable_scene, n).recorded for n in (0, 1)] == [[], []]
    assert await undone(tunable_scene) == ()


async def test_the_last_change_is_taken_back_first(tunable_scene: ClusterScene) -> None:
    """Guards two changes of one setting: each undo finds what its own fix had set."""
    await fix_proposed(tunable_scene)
    tunable_node(tunable_scene).value = "50000"
    await fix_proposed(tunable_scene)
    assert [row["before"] for row in tunable_node(tunable_scene).recorded] == ["67584", "50000"]
    tunable_node(tunable_scene, 1).files.clear()
    results = await undone(tunable_scene)
    assert outcomes(results) == [FixOutcome.DONE, FixOutcome.SKIPPED]
    assert tunable_node(tunable_scene).value == "50000"


async def test_what_others_changed_since_is_left_to_them(tunable_scene: ClusterScene) -> None:
    """Guards somebody's own setting: it stays, it is shown, and the record stays with it."""
    await fix_proposed(tunable_scene)
    tunable_node(tunable_scene).value = "5000000"
    first, second = await undone(tunable_scene)
    assert (first.outcome, second.outcome) == (FixOutcome.SKIPPED, FixOutcome.DONE)
    assert first.why == "changed since: it is 5000000, and was set to 3145728; left as it is"
    assert tunable_node(tunable_scene).value == "5000000"
    assert len(tunable_node(tunable_scene).recorded) == 1


@pytest.mark.parametrize("value", ["67584", WANTED])
async def test_a_change_that_was_cut_off_can_be_taken_back(tunable_scene: ClusterScene, value: str) -> None:
    """Guards the record of a killed call: whether or not the change was made, undo ends at what was there before."""
    await fix_proposed(tunable_scene)
    tunable_node(tunable_scene).files[RECORD] = tunable_node(tunable_scene).seen[0].encode()
    tunable_node(tunable_scene).value = value
    results = await undone(tunable_scene)
    assert outcomes(results) == [FixOutcome.DONE] * 2
    assert (tunable_node(tunable_scene).value, tunable_node(tunable_scene).recorded) == ("67584", [])


async def test_a_change_that_was_cut_off_is_taken_up_again(tunable_scene: ClusterScene) -> None:
    """Guards against two entries for one change: the next --fix finishes the one that is there."""
    await fix_proposed(tunable_scene)
    tunable_node(tunable_scene).files[RECORD] = tunable_node(tunable_scene).seen[0].encode()
    tunable_node(tunable_scene).value = "67584"
    await fix_proposed(tunable_scene)
    assert [(row["before"], row["done"]) for row in tunable_node(tunable_scene).recorded] == [("67584", True)]


async def test_what_the_node_refuses_is_reported_and_leaves_no_record(tunable_scene: ClusterScene) -> None:
    """Guards against half a change: it is taken back, forgotten, and the other node's is made."""
    tunable_node(tunable_scene).refuses_set = Completed(
        255, "", "sysctl: permission denied on key 'vm.min_free_kbytes'"
    )
    first, second = await fix_proposed(tunable_scene)
    assert (first.outcome, second.outcome) == (FixOutcome.FAILED, FixOutcome.DONE)
    assert "permission denied" in first.why
    assert first.why.endswith("nothing is changed")
    assert tunable_node(tunable_scene).recorded == []


async def test_a_success_that_changed_nothing_is_a_failure(tunable_scene: ClusterScene) -> None:
    """Guards against believing an exit code: the value is inspected afterwards."""
    tunable_node(tunable_scene).ignores = True
    first, _ = await fix_proposed(tunable_scene)
    assert (first.outcome, first.why) == (FixOutcome.FAILED, "it is 67584 afterwards; nothing is changed")


async def test_without_a_way_to_root_nothing_is_begun(tunable_scene: ClusterScene) -> None:
    """Guards that sudo with a password stops a node's changes before the first, and is reported with sudo's message."""
    tunable_node(tunable_scene).rights = Completed(1, "", "sudo: a password is required")
    tunable_node(tunable_scene, 1).rights = Completed(127, "")
    wanted = await proposed(tunable_scene)
    assert [one.by_hand for one in wanted] == [
        "sudo wants a password there (--ask-become-pass)",
        "sudo is not installed there",
    ]
    results, _ = await apply_fixes(tunable_scene.services, wanted, seize=False)
    assert outcomes(results) == [FixOutcome.BY_HAND] * 2
    assert [tunable_node(tunable_scene, n).changes for n in (0, 1)] == [[], []]


async def test_a_password_goes_to_the_nodes_whose_sudo_wants_one(tunable_scene: ClusterScene) -> None:
    """Guards that it travels on stdin only, and that a node that refuses it is left alone with the reason."""
    tunable_node(tunable_scene).rights = tunable_node(tunable_scene, 1).rights = ASKS
    tunable_node(tunable_scene, 1).accepts = Completed(
        1, "", "sudo: no password was provided\nsudo: 1 incorrect password attempt"
    )
    wanted = await with_password(tunable_scene.services, await proposed(tunable_scene), PASSWORD)
    assert [one.by_hand for one in wanted] == ["", "sudo did not accept the password"]
    results, _ = await apply_fixes(tunable_scene.services, wanted, seize=False)
    assert outcomes(results) == [FixOutcome.DONE, FixOutcome.BY_HAND]
    (made,) = [command for command in tunable_node(tunable_scene).commands if command.changes.startswith("set vm.")]
    assert made.stdin == b"s3cret\n" and "s3cret" not in f"{made} {results}"
    assert [len(tunable_node(tunable_scene, n).changes) > 0 for n in (0, 1)] == [True, False]


async def test_what_changed_since_it_was_shown_is_not_touched(tunable_scene: ClusterScene) -> None:
    """Guards the question: what is made is what the user agreed to, inspected again under the lease."""
    wanted = await proposed(tunable_scene)
    tunable_node(tunable_scene).value, tunable_node(tunable_scene, 1).value = "70000", WANTED
    results, _ = await apply_fixes(tunable_scene.services, wanted, seize=False)
    assert [(one.outcome, one.why) for one in results] == [
        (FixOutcome.SKIPPED, "somebody else changed it meanwhile: it is left as it is"),
        (FixOutcome.SKIPPED, "it is so already"),
    ]
    assert [tunable_node(tunable_scene, n).value for n in (0, 1)] == ["70000", WANTED]


async def test_nothing_is_changed_under_somebody_elses_lease(tunable_scene: ClusterScene) -> None:
    """Guards a launch on the same nodes: Busy, and no node was touched."""
    wanted = await proposed(tunable_scene)
    tunable_node(tunable_scene, 1).holder = json.dumps({"holder": "bob@desk", "why": "up", "since": 1, "nonce": "ff"})
    with pytest.raises(Busy):
        await apply_fixes(tunable_scene.services, wanted, seize=False)
    assert [tunable_node(tunable_scene, n).value for n in (0, 1)] == ["67584", "67584"]


async def test_a_record_that_cannot_be_read_is_never_overwritten(tunable_scene: ClusterScene) -> None:
    """Guards the way back of earlier changes: the node is left alone, and undo names it."""
    tunable_node(tunable_scene).files[RECORD] = b'{"version": 1, "changes": [{"co'
    first, second = await fix_proposed(tunable_scene)
    assert (first.outcome, second.outcome) == (FixOutcome.FAILED, FixOutcome.DONE)
    assert "fixes.json, the record of `check --fix`, cannot be read" in first.why
    assert (tunable_node(tunable_scene).value, tunable_node(tunable_scene).files[RECORD]) == (
        "67584",
        b'{"version": 1, "changes": [{"co',
    )
    _, lost = await undoable(tunable_scene.services)
    assert [(type(error), error.node) for error in lost] == [(CommandFailed, "spark-1")]


async def test_a_node_lost_in_between_does_not_stop_the_other(tunable_scene: ClusterScene) -> None:
    """Guards the record: what may have been set before the line broke is still there to be taken back."""

    def breaks() -> None:
        raise Unreachable("spark-1", "connection lost")

    tunable_node(tunable_scene).meanwhile = breaks
    first, second = await fix_proposed(tunable_scene)
    assert (first.outcome, first.why, second.outcome) == (
        FixOutcome.FAILED,
        "spark-1: connection lost",
        FixOutcome.DONE,
    )
    assert [row["done"] for row in tunable_node(tunable_scene).recorded] == [False]


async def test_an_interrupt_lets_the_change_under_way_end_and_begins_no_other(tunable_scene: ClusterScene) -> None:
    """Guards Ctrl-C: what is made is whole and recorded, and the leases are given back."""
    wanted = (await proposed(tunable_scene))[0]
    first = tunable_node(tunable_scene)
    first.meanwhile = lambda: task.cancel()
    task = asyncio.ensure_future(apply_fixes(tunable_scene.services, (wanted, wanted), seize=False))
    with pytest.raises(asyncio.CancelledError):
        await task
    assert first.value == WANTED
    assert [(row["code"], row["done"]) for row in first.recorded] == [("MEM009", True)]
    assert len(first.seen) == 1
    assert [one.holder for one in tunable_scene.nodes] == [None, None]
