"""A state folder that our user cannot write, read by the real scripts as another user than root."""

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from functional.facts.shell import run
from sparkwright.domain.live import Supervised
from sparkwright.domain.unknown import Unknown
from sparkwright.facts import sample
from sparkwright.facts.sample import Samples
from sparkwright.facts.store import CLOSED, supervised_fact

NOBODY = 65534

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")


@pytest.fixture
def state_folder() -> Iterator[Path]:
    """Temporary folder below one that everybody may enter, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        made = Path(folder) / "state"
        home = made / "supervision" / "chat"
        home.mkdir(parents=True)
        (home / "desired.json").write_text(json.dumps({"by": "me@laptop"}))
        for path in (made, made / "supervision", home, home / "desired.json"):
            os.chown(path, NOBODY, NOBODY)
        yield made


def supervised(state_folder: Path) -> object:
    fact = supervised_fact("spark-1", str(state_folder))
    return fact.read(run(fact.command, user=NOBODY))


def sampled(state_folder: Path) -> str:
    argv = sample.follow(0.5, folder=str(state_folder)).argv
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, user=NOBODY, start_new_session=True) as process:
        assert process.stdout
        samples = Samples()
        found = next(one for line in process.stdout if (one := samples.feed(line.rstrip("\n"))))
        os.killpg(process.pid, signal.SIGKILL)
    return found.unwritable


def only_supervised(found: object) -> Supervised:
    assert isinstance(found, tuple) and len(found) == 1, found
    assert isinstance(found[0], Supervised)
    return found[0]


def test_a_folder_of_ours_is_no_trouble(state_folder: Path) -> None:
    assert (only_supervised(supervised(state_folder)).unwritable, sampled(state_folder)) == ("", "")


def test_a_folder_that_somebodys_sudo_took_is_named_with_its_owner(state_folder: Path) -> None:
    """Guards that it is neither called a read-only file system nor a supervisor that is silent."""
    for path in (state_folder, state_folder / "supervision", state_folder / "supervision" / "chat"):
        os.chown(path, 0, 0)
        path.chmod(0o755)
    found = only_supervised(supervised(state_folder))
    assert found.unwritable == sampled(state_folder) == "state folder owned by root"
    assert f'on spark-1: `sudo chown -R "$USER": {state_folder}`' in found.trouble


def test_a_folder_that_cannot_be_entered_is_no_node_without_deployments(state_folder: Path) -> None:
    """Guards `status`, which would say that nothing runs there."""
    os.chown(state_folder, 0, 0)
    state_folder.chmod(0o700)
    found = supervised(state_folder)
    assert isinstance(found, Unknown) and found.why == CLOSED
    assert found.raw == f'state folder owned by root; on spark-1: `sudo chown -R "$USER": {state_folder}`'


def test_a_folder_of_ours_without_permission_to_write(state_folder: Path) -> None:
    for path in (state_folder, state_folder / "supervision" / "chat"):
        path.chmod(0o500)
    assert (
        only_supervised(supervised(state_folder)).unwritable
        == sampled(state_folder)
        == "state folder without permission to write"
    )
