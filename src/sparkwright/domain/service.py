"""Programs of ours that go on running on a node when nobody is logged in there."""

from dataclasses import dataclass
from enum import StrEnum


class Manager(StrEnum):
    """Who keeps services running. user: the user's own systemd, with linger. none: nobody, after a reboot."""

    USER = "user"
    SYSTEM = "system"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Service:
    """name: `supervisor`, `door`, `caddy`. argv: absolute program first. env: nothing secret, units are readable.

    cwd: '' for the supervisor's folder. private: what it writes is for its user only.
    """

    name: str
    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()
    cwd: str = ""
    private: bool = True


@dataclass(frozen=True, slots=True)
class Seat:
    """What a node has for services. manager: who could keep them; lingers: whether that holds without a login already.

    why: in the way of the user's own systemd, '' for nothing. python: absolute path of a Python >= 3.11, '' for none;
    seen: what was found instead. addresses: the node's own, without loopback. state: absolute folder. user: of ssh.
    env: where an ssh session finds programs and their libraries; a service would not know.
    """

    manager: Manager
    lingers: bool
    why: str
    python: str
    seen: str
    addresses: tuple[str, ...]
    state: str
    user: str
    runtimes: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Reach:
    """How a node is reached from others. addresses: its own, the one first at which it was reached now; port: sshd's.

    keys: its public host keys, as `TYPE BASE64`.
    """

    user: str
    addresses: tuple[str, ...]
    port: int
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Where:
    """Where a supervisor lives. home, state, runtime: absolute folders on `node`; python: the program that runs it."""

    node: str
    home: str
    state: str
    python: str
    runtime: str

    def argv(self, verb: str) -> tuple[str, ...]:
        """One of our programs there. Nothing of it is in the environment, which the ranks that it starts inherit."""
        return (self.python, "-I", "-S", self.runtime, verb, "--home", self.home)
