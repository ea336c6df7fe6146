"""Programs of ours that run on a node without a login: services, and what a gateway was installed with."""

from enum import StrEnum

from sparkwright.domain.values import dataclass


class Manager(StrEnum):
    """The manager that keeps services running. user: the user's own systemd, with linger. none: nobody, after a
    reboot."""

    USER = "user"
    SYSTEM = "system"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Service:
    """name: of the unit. argv: absolute program first. env: nothing secret, units are readable.

    cwd: '' for the supervisor's folder. private: what it writes is for its user only. watchdog: it sends signs of life
    to systemd (adapters/watchdog.py), which ends and restarts it when they stay away.
    """

    name: str
    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()
    cwd: str = ""
    private: bool = True
    watchdog: bool = False


@dataclass(frozen=True, slots=True)
class ServiceHost:
    """A node's means to run services. manager: who can keep them; lingers: True if that holds without a login already.

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
    """The ways to reach a node. addresses: its own, the one first at which it was reached now; port: sshd's.

    keys: its public host keys, as `TYPE BASE64`.
    """

    user: str
    addresses: tuple[str, ...]
    port: int
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Installation:
    """The place of a supervisor. home, state, runtime: absolute folders on `node`; python: the program that runs it."""

    node: str
    home: str
    state: str
    python: str
    runtime: str

    def argv(self, verb: str) -> tuple[str, ...]:
        """One of our programs there. Nothing of it is in the environment, which the ranks that it starts inherit."""
        return (self.python, "-I", "-S", self.runtime, verb, "--home", self.home)


class PairTrouble(StrEnum):
    """The reason why a certificate and its key cannot serve."""

    NO_CERTIFICATE = "no-certificate"
    NO_KEY = "no-key"
    BAD_CERTIFICATE = "bad-certificate"
    BAD_KEY = "bad-key"
    DIFFERS = "differs"
    EXPIRED = "expired"
    EARLY = "early"


@dataclass(frozen=True, slots=True)
class CertificatePair:
    """Certificate and key as the node sees them. until: its end as openssl prints it, '' when not known.

    trouble: None when nothing is known against it. soon: it ends within 14 days. key_mode: octal, as `stat` prints it.
    """

    certificate: str
    key: str
    trouble: PairTrouble | None = None
    until: str = ""
    soon: bool = False
    key_mode: str = ""


@dataclass(frozen=True, slots=True)
class GatewayFacts:
    """caddy: absolute path of the program, '' for none; version as it prints it. image: id of caddy:2 on that node.

    keys: text of the keys file, None without one; keys_mode: octal; keys_wrong: why it cannot be read. port: the one
    that was asked for; holder: who listens there already ('' nobody, `?` somebody unknown), ours: it is our gateway.
    front: what that was made with, as text; behind: deployments that it leads to; kept, asked: how open it is, and how
    this deployment's is to be.
    addresses: its own, without link-local ones. called: its address as the machine that asks reaches it. user:
    `uid:gid` of the ssh user.
    """

    node: str
    port: int
    caddy: str = ""
    version: str = ""
    image: str = ""
    keys: str | None = None
    keys_file: str = ""
    keys_mode: str = ""
    keys_wrong: str = ""
    holder: str = ""
    ours: bool = False
    hostname: str = ""
    addresses: tuple[str, ...] = ()
    user: str = ""
    pair: CertificatePair | None = None
    front: str = ""
    behind: tuple[str, ...] = ()
    kept: str = ""
    asked: str = ""
    called: str = ""
