"""Commands as values: built below, run above."""

from collections.abc import Mapping

from sparkwright.domain.values import dataclass, field

TIMED_OUT = 124
"""Exit code of a command that was killed at its timeout."""


@dataclass(frozen=True, slots=True)
class Secret:
    """A value that never shows: repr, str and JSON give a mask. `reveal` is for the adapter that must send it."""

    _value: str

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return "Secret(***)"

    __str__ = __repr__


@dataclass(frozen=True, slots=True)
class Command:
    """One program call on a node.

    argv: unquoted words; the adapter quotes once.
    env: extra environment for this call (no secrets: these are visible in listings; use stdin or a 0600 file).
    stdin: bytes given to the program. timeout: seconds. changes: what it changes on the node, for the audit log;
    empty for a command that only reads. forward_agent: the program may use the user's ssh agent (node to node copies).
    typed: how a person would type it, with sudo where root is needed; empty where that is argv.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict, hash=False)
    stdin: bytes | None = field(default=None, repr=False)  # may be a token
    timeout: float = 30.0
    changes: str = ""
    forward_agent: bool = False
    typed: str = ""


@dataclass(frozen=True, slots=True)
class Completed:
    """The result of a command. exit_code 124: killed at its timeout; 127: no such program."""

    exit_code: int
    stdout: str
    stderr: str = ""

    @property
    def ok(self) -> bool:
        return self.exit_code == 0


def shell_command(
    script: str, *args: str, timeout: float = 30.0, changes: str = "", stdin: bytes | None = None
) -> Command:
    """A POSIX sh script with positional parameters $1, $2 ...; nothing is interpolated into the text."""
    return Command(("sh", "-c", script, "sparkwright", *args), timeout=timeout, changes=changes, stdin=stdin)
