"""Linger that somebody disables while a deployment serves: enabled again, or named with its cure."""

import os
import pwd
from pathlib import Path

import pytest

from sparkwright.domain.command import Command, Completed
from sparkwright.supervisor.core.events import Cleared, Fault
from sparkwright.supervisor.core.state import Recovery
from sparkwright.supervisor.linger import TROUBLE, is_user_service, keep_linger
from unit.supervisor.watchtower import Tower, make_tower

USER = pwd.getpwuid(os.getuid()).pw_name
UNIT = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/sparkwright-supervisor-chat.service\n"


def enabling(it: Tower, answer: Completed) -> list[Command]:
    """The commands by which the head was asked to enable it."""
    asked: list[Command] = []

    def fits(command: Command) -> bool:
        asked.extend([command] if command.changes.startswith("enable linger") else [])
        return command.changes.startswith("enable linger")

    it.scene.nodes[0].on(fits, answer)
    return asked


async def test_linger_that_is_disabled_is_enabled_again_and_recorded(tmp_path: Path) -> None:
    """Guards a head whose services systemd would end ten seconds after the last login."""
    it = make_tower()
    asked = enabling(it, Completed(0, ""))
    (tmp_path / USER).touch()
    await keep_linger(it.bus, tmp_path)
    assert not asked and not it.events
    (tmp_path / USER).unlink()
    await keep_linger(it.bus, tmp_path)
    assert len(asked) == 1 and not it.events


async def test_linger_that_cannot_be_enabled_is_a_trouble_until_it_is(tmp_path: Path) -> None:
    """Guards `status`: it names the user, the fate and the command, and stops nothing."""
    it = make_tower()
    enabling(it, Completed(1, "", "Could not enable linger: Access denied\n"))
    await keep_linger(it.bus, tmp_path)
    (fault,) = it.events
    assert isinstance(fault, Fault) and fault.kind == TROUBLE and fault.recovery is Recovery.NONE
    assert "Access denied" in fault.what and f"loginctl enable-linger {USER}" in fault.what
    (tmp_path / USER).touch()
    await keep_linger(it.bus, tmp_path)
    (cleared,) = it.events
    assert isinstance(cleared, Cleared) and cleared.kind == TROUBLE


@pytest.mark.parametrize(
    ("text", "service"),
    [
        (UNIT, True),
        ("0::/system.slice/sparkwright-supervisor-chat.service\n", False),
        ("0::/user.slice/user-1000.slice/user@1000.service/app.slice/terminal.scope\n", False),
        ("0::/user.slice/user-1000.slice/session-4.scope\n", False),
    ],
)
def test_only_a_service_of_the_user_needs_linger(tmp_path: Path, text: str, service: bool) -> None:
    """Guards the machine of a developer: a supervisor in a terminal changes nothing there."""
    (tmp_path / "cgroup").write_text(text)
    assert is_user_service(tmp_path / "cgroup") is service
    assert not is_user_service(tmp_path / "none")
