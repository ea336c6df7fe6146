"""The way to a machine that this one has never logged in to: a real sshd, ssh-keyscan and ssh-keygen."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.sshd import MISSING, Sshd
from sparkwright.adapters.first_login import FirstLogin, fingerprints
from sparkwright.domain.errors import Unreachable, UsageError


@pytest.fixture
def ssh_server() -> Iterator[Sshd]:
    if MISSING:
        pytest.skip(MISSING)
    server = Sshd()
    try:
        server.start().known_hosts.write_text("")
        yield server
    finally:
        server.stop()


def test_host_key_shown_once_and_the_users_own_configuration_taken_in(ssh_server: Sshd, tmp_path: Path) -> None:
    """Guards the first step without a password: unknown until trusted, then opened by the user's key through ours, and
    gone without a trace."""
    login = FirstLogin(tmp_path, ssh_server.config)
    assert not login.works(ssh_server.name)
    way = login.way(ssh_server.name)
    assert (way.host, way.port, way.name) == ("127.0.0.1", str(ssh_server.port), f"[127.0.0.1]:{ssh_server.port}")
    assert not login.knows(way)
    keys = login.host_keys(ssh_server.name, way)
    assert " ".join(ssh_server.host_key.with_suffix(".pub").read_text().split()[:2]) in keys
    assert all(digest.startswith("SHA256:") for _, digest in fingerprints(keys))
    login.trust(way, keys)
    login.prepare(ssh_server.name, way)
    assert login.knows(way) and login.works(ssh_server.name)
    assert login.current == login.config
    assert FirstLogin(tmp_path, None).works(ssh_server.name)  # by what other commands use from now on
    assert oct(login.folder.stat().st_mode)[-3:] == "700"
    assert login.public_key().startswith("ssh-ed25519 ")
    login.forget(ssh_server.name)
    assert not login.folder.exists() and login.current == ssh_server.config


def test_a_changed_host_key_is_never_accepted(ssh_server: Sshd, tmp_path: Path) -> None:
    """Guards against another machine at the address: known, and yet not opened, with the reason."""
    login = FirstLogin(tmp_path, ssh_server.config)
    way = login.way(ssh_server.name)
    login.trust(way, ["ssh-ed25519 " + ssh_server.key.with_suffix(".pub").read_text().split()[1]])
    login.prepare(ssh_server.name, way)
    assert login.knows(way) and not login.works(ssh_server.name)
    assert "has CHANGED" in login.refusal("a", ssh_server.name).message


def test_a_name_without_an_address_is_told_how_to_name_one(tmp_path: Path) -> None:
    """Guards `init` on a machine that knows no cluster file yet: the hint is a command of `init`."""
    error = FirstLogin(tmp_path, None).refusal("spark-1", "no-such-host.invalid")
    assert (error.message, error.hint) == (
        "spark-1: no such host name (no-such-host.invalid)",
        "name its address: sparkwright init NAME=IP",
    )


def test_nobody_there(ssh_server: Sshd, tmp_path: Path) -> None:
    """Guards an address without an sshd, and a destination that ssh would take for an option."""
    login = FirstLogin(tmp_path, None)
    silent = login.way("ssh://nobody@127.0.0.1:9")
    with pytest.raises(Unreachable, match=r"no answer of sshd at 127\.0\.0\.1 port 9"):
        login.host_keys("127.0.0.1", silent)
    with pytest.raises(UsageError, match="does not take"):
        login.way("-oProxyCommand=x")
