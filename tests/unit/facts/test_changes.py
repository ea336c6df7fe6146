"""The record of `check --fix` as it is written and read, and the rights of the ssh user."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkwright.domain.command import Completed
from sparkwright.domain.finding import AppliedFix, Fix, Rights
from sparkwright.domain.unknown import Unknown
from sparkwright.facts.changes import RIGHTS, record_text, recorded
from sparkwright.remote import repair
from unit.for_each import for_each

FIXES = (
    repair.sysctl_fix("spark-1", "vm.min_free_kbytes", 3145728, 67584),
    repair.persistence_fix("spark-1"),
    repair.hold_fix("spark-1", ["mlnx-fw-updater"]),
    repair.mask_fix("spark-1", ["sleep.target", "suspend.target"]),
    repair.ntp_fix("spark-1"),
    repair.mtu_fix("spark-1", "enp1s0f0np0", 9000, 1500),
    repair.mode_fix("spark-1", "/etc/netplan/40 cx7.yaml", "600", "644"),
    repair.ref_fix("spark-1", "~/hub", "models--org--big", "abc\n"),
)
FACT = recorded("~/state")


def read(content: str, code: int = 0) -> tuple[AppliedFix, ...] | Unknown:
    return FACT.read(Completed(code, content, ""))


@for_each("fix", FIXES, ids=lambda fix: fix.look.argv[-1])
def test_what_is_written_is_read_again_whole(fix: Fix) -> None:
    """Guards the way back of every kind of fix: not a word of its commands is lost, blanks and newlines included."""
    changes = (
        AppliedFix("A001", fix, "was\nthat", 1795233000.25, "anna@laptop"),
        AppliedFix("A001", fix, "", 1.0, "é", True),
    )
    assert read(record_text(changes).decode()) == changes


@for_each("fix", FIXES, ids=lambda fix: fix.look.argv[-1])
def test_every_fix_can_be_typed_and_looked_at(fix: Fix) -> None:
    """Guards what the user is shown: no script, sudo where root is needed; and that the look changes nothing."""
    for command in (*fix.do, *fix.undo):
        shown = command.typed or " ".join(command.argv)
        assert "PATH=" not in shown
        assert not command.typed or ("sudo " in command.typed) == fix.root
        assert command.changes
    assert (fix.look.changes, fix.look.stdin) == ("", None)
    assert fix.sets == fix.sets.strip() != ""


def test_no_record_is_no_change() -> None:
    """Guards a node on which nothing was ever changed."""
    assert read("") == ()


def test_another_versions_record_is_not_guessed_at() -> None:
    """Guards an older sparkwright against a newer one's record."""
    found = read(json.dumps({"version": 2, "changes": []}))
    assert found == Unknown("version 2", "another version of sparkwright wrote it")


@given(st.text() | st.recursive(st.none() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(
    st.sampled_from(["version", "changes", "fix", "do", "argv"]), x)).map(json.dumps))  # fmt: skip
def test_odd_records_are_unknown_and_never_raise(content: str) -> None:
    """Guards against a file that was edited by hand, or cut short."""
    found = read(content)
    assert isinstance(found, Unknown) or found == ()


@pytest.mark.parametrize(
    ("done", "rights"),
    [
        (Completed(0, "root\n"), Rights(root=True)),
        (Completed(0, ""), Rights()),
        (Completed(127, ""), Rights(why="sudo is not installed there")),
        (Completed(1, "", "sudo: no\n"), Rights(why="`sudo -n` failed there: sudo: no")),
        (Completed(1, ""), Rights(why="`sudo -n` failed there: exit 1")),
    ],
)
def test_rights_by_exit_code(done: Completed, rights: Rights) -> None:
    """Guards that only the exit code decides, and that the user reads sudo's own text."""
    assert RIGHTS.read(done) == rights
