"""Sessions: a cookie that names a key, and is worth as much as its key still is."""

from pathlib import Path

import pytest

from sparkwright.console.sessions import Sessions
from sparkwright.gateway.keys import Key, Keys, Role, digest

OPERATOR, VIEWER, CLIENT, OTHER = "sk-sw-o", "sk-sw-v", "sk-sw-c", "sk-sw-other"
KEYS = Keys(
    (
        Key("me", digest(OPERATOR), role=Role.OPERATOR),
        Key("wall", digest(VIEWER), role=Role.VIEWER),
        Key("agent", digest(CLIENT)),
        Key("theirs", digest(OTHER), deployment="other", role=Role.OPERATOR),
    )
)


class SessionSetup:
    def __init__(self, folder: Path) -> None:
        self.keys, self.now = KEYS, 1000.0
        self.sessions = Sessions(folder, "chat", lambda: self.keys, lambda: self.now)

    def begin(self, key: str = OPERATOR) -> str:
        return self.sessions.begin(key)[0]


@pytest.fixture
def session_setup(tmp_path: Path) -> SessionSetup:
    return SessionSetup(tmp_path)


def test_a_session_is_its_key(session_setup: SessionSetup) -> None:
    """Guards who operates and who only sees; a client's key opens no page, a deployment's the page of that one."""
    operator, viewer = (
        session_setup.sessions.visitor(session_setup.begin()),
        session_setup.sessions.visitor(session_setup.begin(VIEWER)),
    )
    assert operator and operator.operates and viewer and not viewer.operates
    assert "API only" in session_setup.sessions.begin(CLIENT)[1]
    assert (theirs := session_setup.sessions.visitor(session_setup.begin(OTHER))) and theirs.key.deployment == "other"
    assert not session_setup.begin("") and not session_setup.begin(digest(OPERATOR))


def test_a_revoked_key_and_an_old_session_are_nobody(session_setup: SessionSetup) -> None:
    """Guards that revoking ends sessions at once, and that a stolen cookie does not last for ever."""
    cookie = session_setup.begin()
    session_setup.now += 8 * 24 * 3600
    assert session_setup.sessions.visitor(cookie) is None
    cookie = session_setup.begin()
    session_setup.keys = Keys(KEYS.keys[1:])
    assert session_setup.sessions.visitor(cookie) is None


def test_only_what_was_signed_here_counts(session_setup: SessionSetup, tmp_path: Path) -> None:
    """Guards against cookies that were made up, changed, or lifted to another role; the secret survives a restart."""
    cookie = session_setup.begin(VIEWER)
    named, until, number, signature = cookie.split(".")
    forged = (
        f"{digest(OPERATOR)[:16]}.{until}.{number}.{signature}",
        f"{named}.9{until}.{number}.{signature}",
        f"{named}.{until}.{signature}",
        f"{named}.{until}.{number}0.{signature}",
        cookie[:-1],
        "",
        "..",
        "ü.1.x",
    )
    assert [session_setup.sessions.visitor(one) for one in forged] == [None] * len(forged)
    assert SessionSetup(tmp_path).sessions.visitor(cookie)
    assert (tmp_path / "console.secret").stat().st_mode & 0o777 == 0o600
    tokens = {
        visitor.token
        for key in (OPERATOR, VIEWER)
        if (visitor := session_setup.sessions.visitor(session_setup.begin(key)))
    }
    assert len(tokens) == 2 and not tokens & {cookie, signature}


def test_signing_out_ends_this_session_and_no_other(session_setup: SessionSetup, tmp_path: Path) -> None:
    """Guards a cookie that somebody copied: it opens nothing after "Sign out", also after a restart."""
    one, other = session_setup.begin(), session_setup.begin()
    assert one != other, "two sessions of a key within a second"
    session_setup.sessions.end(one)
    for sessions in (session_setup.sessions, SessionSetup(tmp_path).sessions):
        assert sessions.visitor(one) is None and sessions.visitor(other)
    assert (tmp_path / "console.ended").stat().st_mode & 0o777 == 0o600
    session_setup.now += 8 * 24 * 3600
    session_setup.sessions.end(again := session_setup.begin())
    assert (tmp_path / "console.ended").read_text().count(":") == 1, "those that are over are not kept"
    assert session_setup.sessions.visitor(again) is None
