"""One builder makes the services of the command, of the console and of a supervisor; they differ in what they add."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from sparkwright import wiring
from sparkwright.app.cluster_options import ClusterOptions
from sparkwright.app.services import Services
from sparkwright.console.board import ReportBoard
from sparkwright.console.head import ShownKeys
from sparkwright.console.head import services as console_services
from sparkwright.domain.codec import to_json
from sparkwright.domain.errors import UsageError
from sparkwright.domain.live import Desired
from sparkwright.supervisor.home import Home, Log
from sparkwright.supervisor.run import _services as supervisor_services
from unit.app.scene import make_scene, recipe

SETTINGS = ("config", "control", "connect_timeout", "persist")


@pytest.fixture
def chat_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A deployment's folder on the head, with settings for ssh, below a state folder of its own."""
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("PYTHONPATH_OF_TESTS", "1")
    monkeypatch.setenv("NOTIFY_SOCKET", "/run/notify")
    path = tmp_path / "state" / "supervision" / "chat"
    (path / "ssh").mkdir(parents=True)
    (path / "ssh/config").write_text("")
    desired = Desired("chat", make_scene().services.cluster, recipe(), python="/opt/python", time_scale=0.5)
    (path / "desired.json").write_text(to_json(desired))
    return path


@asynccontextmanager
async def of_the_supervisor(home: Path) -> AsyncIterator[Services]:
    log = Log(home / "log", lambda: 0.0)
    journal = Home(home, log.write)
    async with supervisor_services(journal, log, journal.desired()) as made:
        yield made


@asynccontextmanager
async def of_the_console(home: Path, keys: ShownKeys) -> AsyncIterator[Services]:
    board = ReportBoard(home.parents[1])
    board.refresh()
    async with console_services(board.watches["chat"], "ops", keys) as made:
        yield made


def ssh_settings(made: Services) -> Any:
    """The settings of ssh; private, for nothing else shows them without a node to reach."""
    return made.hosts._settings  # type: ignore[attr-defined]


async def test_a_supervisor_works_from_its_folder(chat_home: Path) -> None:
    """Its ssh has a time limit, sockets of its own and none of systemd's variables; it may start ranks, and records no
    plans."""
    async with of_the_supervisor(chat_home) as made:
        assert made.who == f"{wiring.whoami()} (supervisor)" and made.python == "/opt/python"
        assert (ssh_settings(made).config, ssh_settings(made).connect_timeout, ssh_settings(made).persist) == (
            chat_home / "ssh/config",
            5,
            10,
        )
        assert ssh_settings(made).control.parent == Path("/tmp") and str(os.getuid()) in ssh_settings(made).control.name
        assert (
            "NOTIFY_SOCKET" not in ssh_settings(made).environ
            and "PYTHONPATH_OF_TESTS" not in ssh_settings(made).environ
        )
        assert made.launch_key and not made.keyring and not made.program and not made.history and not made.hub
        assert Path(made.save_evidence("chat", "a.txt", "x")).is_relative_to(chat_home / "evidence")
        assert made.time_scale == 1.0 and len(made.nonce) == 16


async def test_the_console_works_beside_the_supervisor(chat_home: Path) -> None:
    """It has sockets of its own, names the key in leases, and keeps the pace of the deployment."""
    keys = ShownKeys()
    async with of_the_supervisor(chat_home) as supervisor, of_the_console(chat_home, keys) as made:
        assert made.who == f"{wiring.whoami()} (console, key ops)" and made.keyring is keys
        assert ssh_settings(made).config == chat_home / "ssh/config" and ssh_settings(made).environ is None
        assert (ssh_settings(made).connect_timeout, ssh_settings(made).persist) == (10, 60)
        assert ssh_settings(made).control != ssh_settings(supervisor).control and ssh_settings(
            made
        ).control.parent == Path("/tmp")
        assert (made.python, made.time_scale, made.launch_key, made.secrets) == ("/opt/python", 0.5, None, {})
        assert Path(made.save_evidence("chat", "a.txt", "x")).is_relative_to(chat_home / "evidence")


async def test_the_command_works_from_the_users_folders(chat_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may make keys, start a supervisor, ask the hub and record plans."""
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setenv(wiring.SCALE_VARIABLE, "0.25")
    cluster, sink = make_scene().services.cluster, make_scene().services.sink
    async with wiring.services(cluster, ClusterOptions(), sink) as made:
        assert made.who == wiring.whoami() and made.python == sys.executable and made.time_scale == 0.25
        assert made.launch_key and made.keyring and made.program and made.history and made.hub and made.flags
        assert made.secrets["HF_TOKEN"].reveal() == "hf_secret" and "hf_secret" not in repr(made)
        assert ssh_settings(made).config is None and ssh_settings(made).environ["HF_TOKEN"] == "hf_secret"
        evidence = Path(made.save_evidence("chat", "a.txt", "x"))
        assert evidence.is_relative_to(wiring.places().state / "evidence")


async def test_without_settings_the_console_does_nothing(chat_home: Path) -> None:
    """Guards an operation on a deployment whose settings nobody can read."""
    (chat_home / "desired.json").write_text("{")
    with pytest.raises(UsageError, match="cannot be read"):
        async with of_the_console(chat_home, ShownKeys()):
            pass
