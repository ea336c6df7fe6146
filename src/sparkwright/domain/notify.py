"""The channels by which an owner is notified, as the cluster file names them, and as the head node has them."""

from enum import StrEnum

from sparkwright.domain.values import dataclass, field

MAX_CHANNELS = 16
FOLDER, FILE = "notify", "notify.json"
"""Below the head's state folder. The folder has mode 0700 and the file 0600: its addresses hold tokens."""
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Form(StrEnum):
    """The form of a message for its receiver. webhook: the JSON document that hooks get, with `sentence`."""

    NTFY = "ntfy"
    SLACK = "slack"
    DISCORD = "discord"
    MATTERMOST = "mattermost"
    WEBHOOK = "webhook"
    MAIL = "mail"


@dataclass(frozen=True, slots=True)
class Channel:
    """One receiver. url_env, token_env: variables of the caller that hold the address and ntfy's access token.

    to, sender, program: of mail. program: the local mailer, '' for the first sendmail that the head has.
    """

    form: Form
    url_env: str = ""
    token_env: str = ""
    to: tuple[str, ...] = ()
    sender: str = ""
    program: str = ""


@dataclass(frozen=True, slots=True)
class Notify:
    """The channels and limits of notifications. after: seconds that an outage lasts before its beginning is told.
    per_hour: messages a channel, on average."""

    channels: tuple[Channel, ...] = ()
    after: float = 60.0
    per_hour: int = 20


@dataclass(frozen=True, slots=True)
class Receiver:
    """A channel with its secrets, as the head keeps it. url, token: never shown."""

    form: Form
    url: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    to: tuple[str, ...] = ()
    sender: str = ""
    program: str = ""


@dataclass(frozen=True, slots=True)
class Receivers:
    """The head's file."""

    receivers: tuple[Receiver, ...] = ()
    after: float = Notify().after
    per_hour: int = Notify().per_hour


@dataclass(frozen=True, slots=True)
class Delivery:
    """One message to one receiver. name: the form and the host or mailbox. trouble: '' when it was taken."""

    name: str
    trouble: str = ""
    seconds: float = 0.0


def is_safe_address(scheme: str, host: str) -> bool:
    """True if a token may travel there: by https, or within this machine."""
    return bool(host) and (scheme == "https" or (scheme == "http" and host in _LOOPBACK))
