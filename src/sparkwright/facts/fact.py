"""One fact: the command that asks a node, and the parser that understands the answer or returns Unknown."""

import re
from collections.abc import Callable, Iterator
from enum import Enum
from ipaddress import ip_address
from typing import Generic, TypeVar

from sparkwright.domain.command import TIMED_OUT, Command, Completed
from sparkwright.domain.facts import Unknown
from sparkwright.domain.foreign_json import read_json
from sparkwright.domain.values import dataclass

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

NO_SUCH_PROGRAM = 127
_SHOWN = 200
_MARK = "@@ "


class Plain(Enum):
    """The allowed forms of a node's text that becomes part of a command, an ssh configuration, a unit or a variable.

    A node is not trusted with more than itself: none of these can be read as an option, a second line or an expansion.
    """

    USER = r"[A-Za-z_][A-Za-z0-9_.-]{0,31}\$?"
    HOST = r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,252}[A-Za-z0-9_])?"
    DEVICE = r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,63}"
    NAME = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,254}"
    FOLDER = r"/[^\x00-\x1f\x7f]{0,4095}"
    IMAGE_ID = r"(?:sha256:)?[0-9a-f]{1,64}"
    BIND = r"[0-9a-fA-F.:]{2,45}"
    GID = r"[0-9a-zA-Z:.]{2,64}"
    IMAGE = r"[A-Za-z0-9][A-Za-z0-9._/:@-]{0,511}"
    HOST_KEY = r"(?:ssh|ecdsa|sk)-[a-z0-9@.-]{1,63} [A-Za-z0-9+/]{1,8192}={0,2}"
    VALUE = r"[^\x00-\x1f\x7f]{0,16384}"
    VERSION = r"[A-Za-z0-9][A-Za-z0-9 .:+/=_-]{0,199}"
    NUMBERS = r"[0-9]{1,10}:[0-9]{1,10}"

    def fits(self, text: object) -> bool:
        return isinstance(text, str) and re.fullmatch(self.value, text) is not None

    def only(self, text: str) -> str:
        """The text, or '' for any other."""
        return text if self.fits(text) else ""


def address(text: object) -> str:
    """An IPv4 or IPv6 address as others may use it, in its usual spelling; '' for anything else, zones included."""
    try:
        found = ip_address(text) if isinstance(text, str) and "%" not in text else None
    except ValueError:
        return ""
    usable = found is not None and not (found.is_loopback or found.is_link_local or found.is_multicast)
    return str(found) if usable and int(found or 0) else ""


@dataclass(frozen=True, slots=True)
class Fact(Generic[T_co]):
    """`command` asks, `parse` understands. A parser never raises, whatever the text, and never guesses."""

    command: Command
    parse: Callable[[Completed], T_co | Unknown]

    def read(self, done: Completed) -> T_co | Unknown:
        """Parses the answer; Unknown for a command that was killed at its timeout: half an answer is none."""
        if done.exit_code == TIMED_OUT:
            return Unknown(first_line(done), f"no answer within {self.command.timeout:g} s")
        return self.parse(done)


def first_line(done: Completed) -> str:
    """The program's first line, stderr before stdout, short enough to show."""
    lines = (line.strip() for line in f"{done.stderr}\n{done.stdout}".splitlines())
    return next((line[:_SHOWN] for line in lines if line and not line.startswith(_MARK)), "")


def not_understood(done: Completed, program: str) -> Unknown:
    """Unknown, with the program's own first line and what the exit code shows."""
    if done.exit_code == NO_SUCH_PROGRAM:
        return Unknown(first_line(done), f"{program} is not installed")
    why = f"{program} exited {done.exit_code}" if done.exit_code else f"{program} gave no answer that can be read"
    return Unknown(first_line(done), why)


def sections(text: str) -> dict[str, str]:
    """Parts of an answer by their `@@ name` lines (`show`); a name that comes twice keeps the last part."""
    parts: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith(_MARK):
            lines = parts[line[len(_MARK) :].strip()] = []
        else:
            lines.append(line)
    return {name: "\n".join(found).strip() for name, found in parts.items()}


def parsed_json(text: str) -> object:
    """None for what is no JSON."""
    try:
        return read_json(text)
    except ValueError:
        return None


def found_or(value: T | None, raw: str, why: str) -> T | Unknown:
    """The value, or Unknown with that reason where there is none."""
    return Unknown(raw, why) if value is None else value


def whole_number(text: str) -> int | None:
    """A whole number written in ASCII digits, or None."""
    return int(text) if re.fullmatch(r"-?[0-9]{1,30}", text) else None


def decimal(text: str) -> float | None:
    """A decimal number as the tools print it (`12.61`), or None; no `nan`, `inf` or exponent."""
    return float(text) if re.fullmatch(r"-?[0-9]{1,30}(\.[0-9]{1,30})?", text) else None


def assignments(text: str) -> Iterator[tuple[str, str]]:
    """(name, value) of `NAME=value` lines, with or without quotes around the value, in the order of the file."""
    for line in text.splitlines():
        name, equals, value = line.strip().partition("=")
        if equals and not name.startswith("#"):
            yield name.strip(), value.strip().strip("\"'")
