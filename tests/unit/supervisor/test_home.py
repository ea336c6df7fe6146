"""The supervisor's folder: what is broken there costs memory of the past, never what serves."""

import errno
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sparkwright.adapters.artifacts import write
from sparkwright.domain.codec import to_json
from sparkwright.domain.errors import Busy, UsageError
from sparkwright.domain.live import VERSION, Ask, DeploymentState, Desired, Live, Request
from sparkwright.supervisor.core.state import State
from sparkwright.supervisor.home import Home
from unit.app.scene import cluster, recipe

DESIRED = Desired("twin", cluster(), recipe(), by="anna@laptop", at=1.0)
STATE = State(DeploymentState.READY, 5.0, launches=(1.0, 2.0))


@pytest.fixture
def printed() -> list[str]:
    return []


@pytest.fixture
def supervisor_home(tmp_path: Path, printed: list[str]) -> Home:
    (tmp_path / "desired.json").write_text(to_json(DESIRED))
    return Home(tmp_path, printed.append)


def test_what_is_wanted_is_read_as_it_was_written(supervisor_home: Home, printed: list[str]) -> None:
    """A recipe with all that it holds survives the way to the head."""
    assert supervisor_home.desired() == DESIRED and printed == []


def test_a_broken_desired_state_falls_back_to_the_one_before(supervisor_home: Home, printed: list[str]) -> None:
    """One clear line, and the deployment goes on being kept alive."""
    (supervisor_home.path / "desired.json").write_text("{ torn")
    (supervisor_home.path / "desired.json.bak").write_text(to_json(replace(DESIRED, by="bob@desk")))
    assert supervisor_home.desired().by == "bob@desk"
    assert len(printed) == 1 and "desired.json cannot be read" in printed[0]
    (told,) = supervisor_home.wrong().values()
    assert (
        f"{supervisor_home.path}/desired.json cannot be read" in told
        and "another recipe" in told
        and "sparkwright up" in told
    )


def test_without_any_it_states_what_to_do(supervisor_home: Home) -> None:
    """It rests then: nothing that serves is touched for a file that cannot be read."""
    (supervisor_home.path / "desired.json").write_text("null")
    with pytest.raises(UsageError) as caught:
        supervisor_home.desired()
    assert "nothing is changed" in caught.value.message and "sparkwright up" in caught.value.hint


def test_a_newer_one_is_not_guessed_at(supervisor_home: Home) -> None:
    """Half-understood requests start wrong engines."""
    (supervisor_home.path / "desired.json").write_text(to_json(replace(DESIRED, version=VERSION + 1)))
    with pytest.raises(UsageError, match="newer sparkwright"):
        supervisor_home.desired()


def test_the_state_is_kept_and_read_again(supervisor_home: Home) -> None:
    """The last supervisor's decisions are known to the next one."""
    assert supervisor_home.load() is None
    assert supervisor_home.save(STATE) == "" and supervisor_home.load() == STATE


def test_a_broken_state_is_put_aside(supervisor_home: Home, printed: list[str]) -> None:
    """Reported once; the evidence stays next to it, and the loop goes on from what the nodes report."""
    (supervisor_home.path / "state.json").write_bytes(b"\x00" * 30)
    assert supervisor_home.load() is None and supervisor_home.load() is None
    assert len(printed) == 1 and (supervisor_home.path / "state.json.bad").exists()
    assert "The old file is state.json.bad." in supervisor_home.wrong()["state-file"]
    (supervisor_home.path / "state.json.bad").unlink()
    assert supervisor_home.wrong() == {}


def test_secrets_that_cannot_be_read_or_that_others_could_are_reported(
    supervisor_home: Home, printed: list[str]
) -> None:
    """The mode is fixed at once; what somebody has read by then is for a person to judge."""
    (supervisor_home.path / "secrets.json").write_text('{"VLLM_API_KEY": "k"}')
    (supervisor_home.path / "secrets.json").chmod(0o644)
    assert supervisor_home.secrets()["VLLM_API_KEY"].reveal() == "k"
    assert (supervisor_home.path / "secrets.json").stat().st_mode & 0o777 == 0o600
    assert "think about new keys" in supervisor_home.wrong()["secrets-file"]
    (supervisor_home.path / "secrets.json").write_text("{ torn")
    assert supervisor_home.secrets() == {}
    assert (
        "cannot be read" in supervisor_home.wrong()["secrets-file"]
        and "sparkwright up" in supervisor_home.wrong()["secrets-file"]
    )
    assert len(printed) == 2


def test_a_full_disk_is_written_on_and_else_reported(supervisor_home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """An existing file keeps its place on the disk and is written over; there is no room for a new one, which is
    reported."""
    supervisor_home.save(STATE)
    real = os.open

    def full(path: Any, flags: int, *more: Any) -> int:
        if flags & os.O_CREAT:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(path, flags, *more)

    monkeypatch.setattr(os, "open", full)
    later = replace(STATE, since=9.0)
    assert supervisor_home.save(later) == "" and supervisor_home.load() == later
    (supervisor_home.path / "state.json").unlink()
    assert "No space left" in supervisor_home.save(STATE)


def test_nothing_comes_back_after_down(supervisor_home: Home) -> None:
    """A supervisor that is slow to end must not make the folder again."""
    for path in supervisor_home.path.iterdir():
        path.unlink()
    supervisor_home.path.rmdir()
    supervisor_home.show(Live(1.0, "twin", DeploymentState.READY, 1.0))
    assert supervisor_home.save(STATE) and not supervisor_home.wanted() and not supervisor_home.path.exists()


def test_another_desired_state_is_noticed(supervisor_home: Home) -> None:
    """A state with the same words is another one: somebody has called `up` since."""
    assert supervisor_home.wanted()
    (supervisor_home.path / "new").write_text(to_json(DESIRED))
    (supervisor_home.path / "new").rename(supervisor_home.path / "desired.json")
    assert not supervisor_home.wanted()


def test_what_is_shown_names_its_process(supervisor_home: Home) -> None:
    """A reader can distinguish a running supervisor from the traces of a dead one."""
    supervisor_home.show(Live(1.0, "twin", DeploymentState.READY, 1.0))
    assert json.loads((supervisor_home.path / "live.json").read_text())["pid"] == os.getpid()


def test_one_supervisor_at_most(supervisor_home: Home) -> None:
    """The second one is refused, and the holder is named; after the first has gone it may."""
    with supervisor_home.locked(), pytest.raises(Busy, match=f"process {os.getpid()}"), supervisor_home.locked():
        pass
    with supervisor_home.locked():
        pass


def test_leases_outlive_a_killed_supervisor(supervisor_home: Home) -> None:
    """The same nonce for the next one: what it holds is its own."""
    assert supervisor_home.nonce("abc") == "abc" and supervisor_home.nonce("def") == "abc"


def test_secrets_that_others_could_read_are_closed(supervisor_home: Home, printed: list[str]) -> None:
    """A wrong mode is fixed and reported; the values never show."""
    path = supervisor_home.path / "secrets.json"
    path.write_text('{"KEY": "s3cr3t"}')
    path.chmod(0o644)
    found = supervisor_home.secrets()
    assert found["KEY"].reveal() == "s3cr3t" and path.stat().st_mode & 0o777 == 0o600
    assert "could read" in printed[0] and "s3cr3t" not in f"{printed}{found}"


@pytest.mark.parametrize("content", [None, "", "[]", "{"])
def test_missing_secrets_do_not_end_it(supervisor_home: Home, printed: list[str], content: str | None) -> None:
    """An engine without a key needs none."""
    if content is not None:
        write(supervisor_home.path / "secrets.json", content.encode())
    assert supervisor_home.secrets() == {} and len(printed) == 1


def test_figures_are_remembered(supervisor_home: Home) -> None:
    """The memory before the start is known to the supervisor after the next."""
    assert supervisor_home.recall() == {}
    supervisor_home.remember({"available:spark-1": 5e9})
    assert supervisor_home.recall() == {"available:spark-1": 5e9}


def test_a_request_is_never_overwritten_and_never_removed_for_another(supervisor_home: Home) -> None:
    """Two who ask at the same time: what is there stays, and the answer to one takes away that one only."""
    other = Home(supervisor_home.path.parent / "other", lambda text: None)
    other.path.mkdir()
    first, second = Request(Ask.HALT, "ann", "a", "n1"), Request(Ask.YIELD, "bob", "b", "n2")
    supervisor_home.ask("other", first)
    supervisor_home.ask("other", second)
    found = other.request()
    assert found and found.nonce == "n1"
    other.answered("n2")
    assert (found := other.request()) and found.nonce == "n1"
    other.answered("n1")
    assert other.request() is None and list(other.path.iterdir()) == []
