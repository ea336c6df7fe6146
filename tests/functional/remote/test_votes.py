"""A node's vote by its real script, with the clock and the boot of a fixture tree."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fakes.sh import SHELLS, Sh
from sparkwright.domain.command import Command
from sparkwright.remote import votes
from unit.supervisor.test_term import Voter

PLACE, TERM = ("lab", "spark-2"), 12.0


class VoterNode:
    """A node whose time since boot is a file."""

    def __init__(self, folder: Path, shell: str) -> None:
        self.folder, self.sh = folder, Sh(folder, shell)
        self.boot("boot-1")
        self.at(100.0)

    def boot(self, name: str) -> None:
        path = self.folder / "root/proc/sys/kernel/random/boot_id"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{name}\n")

    def at(self, seconds: float) -> None:
        (self.folder / "root/proc/uptime").write_text(f"{seconds:.2f} 1.00\n")

    def said(self, command: Command) -> str:
        done = self.sh.run(command)
        assert done.ok, done.stderr
        return done.stdout.strip()

    def ask(self, candidate: str, nonce: str) -> str:
        return self.said(votes.ask_vote(PLACE, candidate, TERM, nonce))


@pytest.fixture(params=SHELLS)
def voter_node(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> VoterNode:
    monkeypatch.setattr(Sh, "environ", {**Sh(tmp_path).environ, "SPARKWRIGHT_SYSROOT": str(tmp_path / "root")})
    return VoterNode(tmp_path, request.param)


def test_one_promise_at_a_time(voter_node: VoterNode) -> None:
    """Guards a vote: nobody gets a new voter's for a term; then one candidate has it until it does not renew."""
    assert voter_node.ask("head", "1") == "held -"
    voter_node.at(112.9)
    assert voter_node.ask("head", "2") == "held -", "a full term, by whole seconds"
    voter_node.at(113.0)
    assert voter_node.ask("head", "3") == "granted"
    assert voter_node.ask("standby", "4") == "held head"
    voter_node.at(124.0)
    assert voter_node.ask("head", "5") == "granted"
    voter_node.at(136.9)
    assert (voter_node.said(votes.look_up(PLACE, TERM)), voter_node.ask("standby", "6")) == ("held head", "held head")
    voter_node.at(137.0)
    assert (voter_node.said(votes.look_up(PLACE, TERM)), voter_node.ask("standby", "7")) == ("free", "granted")
    assert voter_node.ask("head", "8") == "held standby"


def test_a_reboot_forgets_no_promise_too_early(voter_node: VoterNode) -> None:
    """Guards a voter that boots while its promise holds: it has lost it, and waits a term."""
    voter_node.at(200.0)
    voter_node.ask("head", "1")
    voter_node.at(213.0)
    assert voter_node.ask("head", "2") == "granted"
    voter_node.boot("boot-2")
    voter_node.at(3.0)
    assert voter_node.ask("standby", "3") == "held -"
    voter_node.at(16.0)
    assert voter_node.ask("standby", "4") == "granted"


def test_a_late_release_frees_no_later_promise(voter_node: VoterNode) -> None:
    """Guards a message that was on its way for long."""
    voter_node.ask("standby", "1")
    voter_node.at(113.0)
    assert voter_node.ask("standby", "2") == "granted"
    voter_node.said(votes.release(PLACE, TERM, "1"))
    assert voter_node.ask("head", "3") == "held standby"
    voter_node.said(votes.release(PLACE, TERM, "2"))
    assert voter_node.ask("head", "4") == "granted"


@pytest.mark.parametrize("text", ["", "garbage", "boot-1 head soon x", "boot-1 head -5 x", "\0\0\0"])
def test_a_damaged_file_is_no_promise(voter_node: VoterNode, text: str) -> None:
    """Guards a file that was cut: nobody gets the vote for a term."""
    voter_node.ask("head", "1")
    (found,) = (path for path in (voter_node.folder / "sparkwright").glob("vote-*") if path.suffix != ".lock")
    found.write_text(text)
    assert voter_node.ask("standby", "2") == "held -"
    voter_node.at(113.0)
    assert voter_node.ask("standby", "3") == "granted"


@pytest.mark.full
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from(("head", "standby", "release", "boot"))), max_size=12))
def test_the_script_is_the_proven_rule(voter_node: VoterNode, steps: list[tuple[int, str]]) -> None:
    """Guards the model of the voters in tests/unit/supervisor/test_term.py."""
    for path in (voter_node.folder / "sparkwright").glob("vote-*"):
        path.unlink()
    voter, at, since = Voter(), 1000.0, 1000.0
    voter_node.boot("boot-0")
    for number, (seconds, what) in enumerate(steps):
        at += seconds
        if what == "boot":
            voter_node.boot(f"boot-{number + 1}")
            voter.reboot(at)
            since = at
            continue
        voter_node.at(at - since if voter.offset else at)
        if what == "release":
            voter_node.said(votes.release(PLACE, TERM, str(number - 1)))
            voter.release(at, str(number - 1))
        else:
            assert (voter_node.ask(what, str(number)) == "granted") == voter.ask(at, what, str(number))
