"""The knowledge that a standby's supervisors take over from those of the head."""

import json
from pathlib import Path

from sparkwright.domain.codec import from_json, to_json
from sparkwright.domain.live import DeploymentState
from sparkwright.domain.standby import FOLDER, INHERITED, NEEDS_HEAD, PAUSED
from sparkwright.supervisor.core.state import Announce, State
from sparkwright.supervisor.successor import FIGURES, NONCE, STATE, Successors, copied_files, inherit

MEMORY = State(
    DeploymentState.BACKING_OFF, 5.0, incident=7, launches=(1.0, 2.0), owed=(Announce("closed", "x"),), attempt=2
)


def home_of(folder: Path, name: str = "chat-r2") -> Path:
    home = folder / "supervision" / name
    (home / INHERITED).mkdir(parents=True)
    (home / "desired.json").write_text("{}")
    return home


def test_it_knows_what_the_head_knew(tmp_path: Path) -> None:
    """Guards the launch guard and the leases: launches count on, the nonce is the same. Incidents have numbers of their
    own on each node."""
    home, said = home_of(tmp_path), list[str]()
    (home / "live.json").write_text("old")
    (home / INHERITED / STATE).write_text(to_json(MEMORY))
    (home / INHERITED / FIGURES).write_text(json.dumps({"started in": 9.0, "outage:door-away": 3.0, "process:door": 8}))
    (home / INHERITED / NONCE).write_text("abc")
    inherit(home, said.append)
    found = from_json(State, (home / STATE).read_bytes())
    assert (found.launches, found.attempt, found.incident, found.owed) == ((1.0, 2.0), 2, 0, ())
    assert json.loads((home / FIGURES).read_bytes()) == {"started in": 9.0}
    assert (home / NONCE).read_text() == "abc" and not (home / "live.json").exists() and not said
    (home / STATE).write_text("what it wrote since")
    inherit(home, said.append)
    assert (home / STATE).read_text() == "what it wrote since", "once"


def test_a_damaged_memory_is_left_out(tmp_path: Path) -> None:
    """Guards a copy that was cut: the supervisor goes on from what runs."""
    home, said = home_of(tmp_path), list[str]()
    for name, text in ((STATE, '{"phase":'), (FIGURES, "[1]"), (NONCE, "abc")):
        (home / INHERITED / name).write_text(text)
    inherit(home, said.append)
    assert len(said) == 2 and not (home / STATE).exists() and not (home / FIGURES).exists()
    assert (home / NONCE).read_text() == "abc"


async def test_only_what_can_do_without_the_head_is_supervised(tmp_path: Path) -> None:
    """Guards who is started: not a deployment with a rank on the head, not one that a person works on, none that was
    taken down."""
    homes = {name: home_of(tmp_path, name) for name in ("chat-r1", "chat-r2", "chat-r3")}
    (homes["chat-r1"] / NEEDS_HEAD).touch()
    (homes["chat-r3"] / PAUSED).touch()
    (tmp_path / "supervision" / FOLDER).mkdir()
    said: list[str] = []
    successors = Successors(tmp_path, ("/bin/sh", "-c", "exec sleep 60"), said.append)
    await successors.follow()
    assert said == ["chat-r2: supervised from here"] and list(successors._run) == [homes["chat-r2"]]
    (homes["chat-r3"] / PAUSED).unlink()
    (homes["chat-r2"] / "desired.json").unlink()
    await successors.follow()
    assert list(successors._run) == [homes["chat-r3"]]
    await successors.end()
    assert not successors._run


def test_what_the_head_copies(tmp_path: Path) -> None:
    """Guards the list: memory of each deployment, and the figures of earlier starts."""
    home_of(tmp_path)
    (tmp_path / "calibrations").mkdir()
    (tmp_path / "calibrations/a-b.json").touch()
    found = {there for _, there in copied_files(tmp_path, "/tree")}
    assert found == {
        *(f"/tree/supervision/chat-r2/{INHERITED}/{name}" for name in (STATE, FIGURES, NONCE)),
        "/tree/calibrations/a-b.json",
    }
