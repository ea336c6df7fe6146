"""What the head node says about all that its gateway needs."""

from dataclasses import dataclass
from enum import StrEnum


class PairTrouble(StrEnum):
    """Why a certificate and its key cannot serve."""

    NO_CERTIFICATE = "no-certificate"
    NO_KEY = "no-key"
    BAD_CERTIFICATE = "bad-certificate"
    BAD_KEY = "bad-key"
    DIFFERS = "differs"
    EXPIRED = "expired"
    EARLY = "early"


@dataclass(frozen=True, slots=True)
class Pair:
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
    that was asked for; holder: who listens there already ('' nobody, `?` somebody whose name is not told), ours: it is
    this deployment's own gateway.
    addresses: its own, without link-local ones. user: `uid:gid` of the ssh user.
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
    pair: Pair | None = None
