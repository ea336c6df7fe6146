"""A node's seal by its real scripts: who may change the node, and what is waited for."""

import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fakes.sh import SHELLS, Sh
from patience import wait_until
from sparkwright.domain.command import Completed, shell_command
from sparkwright.domain.standby import Seal
from sparkwright.remote.seal import REFUSED, parse_seal, raise_seal, refusal, remove_seals, show_seal, under_seal
from sparkwright.remote.votes import ask_vote
from unit.supervisor.test_seal import SealedNode

HEAD, STANDBY = Seal(3, "spark-1"), Seal(4, "spark-2")


class SealedSh:
    """A node's state folder below a folder that is its home."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.sh = folder, Sh(folder, name)

    def said(self, seal: Seal) -> str:
        done = self.sh.run(raise_seal("~/state", "lab", seal))
        assert done.ok, done.stderr
        return done.stdout.strip()

    def shown(self) -> Seal | None:
        return parse_seal(self.sh.run(show_seal("~/state", "lab")).stdout)

    def under(self, seal: Seal, text: str, *words: str) -> Completed:
        return self.sh.run(under_seal(shell_command(text, *words, changes="x"), "~/state", "lab", seal))


@pytest.fixture(params=SHELLS)
def sealed_node(request: pytest.FixtureRequest, tmp_path: Path) -> SealedSh:
    return SealedSh(tmp_path, request.param)


def test_a_seal_only_rises(sealed_node: SealedSh) -> None:
    """Guards a node against a supervisor that comes back: its seal is refused, its commands do not begin."""
    assert sealed_node.shown() == Seal()
    assert sealed_node.said(HEAD) == "sealed" and sealed_node.said(HEAD) == "sealed" and sealed_node.shown() == HEAD
    assert sealed_node.said(STANDBY) == "sealed" and sealed_node.shown() == STANDBY
    assert parse_seal(sealed_node.said(HEAD)) == STANDBY
    assert parse_seal(sealed_node.said(Seal(4, "spark-1"))) == STANDBY, "one number is one node's"
    done = sealed_node.under(HEAD, 'echo ran >"$1"', str(sealed_node.folder / "made"))
    assert (done.exit_code, refusal(done.stderr)) == (REFUSED, f"held {4:015d} spark-2")
    assert parse_seal(refusal(done.stderr)) == STANDBY and not (sealed_node.folder / "made").exists()
    assert refusal(sealed_node.under(Seal(5, "spark-2"), "true").stderr) == "behind"
    path = sealed_node.folder / "state/seals/lab"
    assert path.stat().st_mode & 0o777 == 0o600
    assert sealed_node.sh.run(ask_vote(("lab", "spark-2"), "spark-1", 12.0, "1")).ok
    assert list((sealed_node.folder / "sparkwright").iterdir())
    assert sealed_node.sh.run(remove_seals("~/state")).ok and not path.parent.exists()
    assert not list((sealed_node.folder / "sparkwright").iterdir())


def test_a_command_under_its_seal_is_the_command(sealed_node: SealedSh) -> None:
    """Guards what passes through: words, standard input, exit code and both outputs."""
    sealed_node.said(HEAD)
    command = shell_command('cat; printf "%s|" "$@"; echo no >&2; exit 7', "a b", "$c", "", changes="x", stdin=b"in ")
    done = sealed_node.sh.run(under_seal(command, "~/state", "lab", HEAD))
    assert (done.exit_code, done.stdout, done.stderr, refusal(done.stderr)) == (7, "in a b|$c||", "no\n", "")


def test_who_comes_next_waits_for_commands_under_way(sealed_node: SealedSh) -> None:
    """Guards two at once on one node: a stop that has begun ends first, and a rank that was started is no command."""
    sealed_node.said(HEAD)
    begun, gate = sealed_node.folder / "begun", sealed_node.folder / "gate"
    slow = 'sleep 300 & echo $! >"$1.pid"; : >"$1"; while [ ! -e "$2" ]; do sleep 0.05; done'
    running = sealed_node.sh.start(
        under_seal(shell_command(slow, str(begun), str(gate), changes="x"), "~/state", "lab", HEAD)
    )
    try:
        wait_until(begun.exists, "the command to begin")
        assert sealed_node.said(STANDBY) == "busy" and sealed_node.shown() == STANDBY
        assert refusal(sealed_node.under(HEAD, "true").stderr).startswith("held")
        gate.touch()
        wait_until(lambda: sealed_node.said(STANDBY) == "sealed", "the command to end")
        assert Path(f"/proc/{Path(f'{begun}.pid').read_text().strip()}").exists(), "what it has started lives on"
        assert sealed_node.under(STANDBY, "true").ok
    finally:
        sealed_node.sh.end(running)


@pytest.mark.parametrize("text", ["", "garbage", "-3 spark-1", "4 spark-1 x", "4", f"{'9' * 40} spark-1", "\0\0"])
def test_a_damaged_seal_is_none(sealed_node: SealedSh, text: str) -> None:
    """Guards a file that was cut: the next one who has most votes writes it again."""
    sealed_node.said(HEAD)
    (sealed_node.folder / "state/seals/lab").write_text(text)
    assert sealed_node.shown() == Seal()
    assert sealed_node.said(STANDBY) == "sealed" and sealed_node.shown() == STANDBY


def test_a_seal_is_renewed_in_place(sealed_node: SealedSh) -> None:
    """Guards a full disk: the file keeps its place and its size."""
    sealed_node.said(HEAD)
    path = sealed_node.folder / "state/seals/lab"
    before = path.stat()
    sealed_node.said(Seal(10**14, "s" * 63))
    after = path.stat()
    assert (before.st_ino, before.st_size) == (after.st_ino, after.st_size)
    assert sealed_node.shown() == Seal(10**14, "s" * 63)


@pytest.mark.full
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.booleans(), st.integers(1, 5), st.sampled_from(("spark-1", "spark-2"))), min_size=1, max_size=8
    )
)
def test_the_script_is_the_proven_rule(sealed_node: SealedSh, steps: list[tuple[bool, int, str]]) -> None:
    """Guards the model of the nodes in tests/unit/supervisor/test_seal.py."""
    assert sealed_node.sh.run(remove_seals("~/state")).ok
    model = SealedNode()
    for raises, number, name in steps:
        seal = Seal(number, name)
        if raises:
            assert sealed_node.said(seal).split()[0] == model.raise_to(time.monotonic(), seal)
        else:
            assert sealed_node.under(seal, "true").ok == model.command(0.0, seal, 0.0)
        assert sealed_node.shown() == model.seal
