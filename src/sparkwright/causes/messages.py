"""The causes that messages of engines and their libraries state, as people read them (messages.txt)."""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path

from sparkwright.domain.values import dataclass
from sparkwright.engines.messages import Message, message_of
from sparkwright.logscan.sign import LIKELY, POSSIBLE

_FILE = Path(__file__).with_name("messages.txt")
_SURE = {"=": LIKELY, "~": POSSIBLE}
_WRAPPED, _SHORTEST = 4, 16  # messages in one line, each after the other's colon; characters
_ANYBODY = 34  # characters: shorter messages of one program are also another's


@dataclass(frozen=True, slots=True)
class StatedCause:
    """The key of a cause, and how sure a message makes of it."""

    key: str
    sure: float


def stated_by(message: Message | None) -> StatedCause | None:
    """The cause that the message states; None for a message that states none, or that nobody has read."""
    return _by_template().get(message.template) if message else None


def stated_in(body: str, message: Message | None, log: Callable[[], str]) -> StatedCause | None:
    """The cause that a line states: its message, or one that the message repeats behind a colon (`X failed: Y`).

    log: the whole log in lower case. A short message may be anybody's: it counts where the log names its program.
    """
    stated, inner = _counting(message, log), body
    for _ in range(_WRAPPED):
        inner = inner.partition(": ")[2]
        if stated or len(inner) < _SHORTEST:
            break
        stated = _counting(message_of(inner), log)
    return stated


def _counting(message: Message | None, log: Callable[[], str]) -> StatedCause | None:
    stated = stated_by(message)
    if stated and message and message.own < _ANYBODY and message.program.partition("-")[0] not in log():
        return None
    return stated


def all_stated() -> Iterator[tuple[str, StatedCause]]:
    """Template and cause of each message that states one."""
    return stated_causes(_FILE.read_text(encoding="utf-8"))


@cache
def _by_template() -> Mapping[str, StatedCause]:
    return dict(all_stated())


def stated_causes(text: str) -> Iterator[tuple[str, StatedCause]]:
    """Template and cause of each line. Raises ValueError for a line of another form."""
    key = ""
    for number, line in enumerate(text.splitlines(), 1):
        mark, _, template = line.partition(" ")
        if mark in _SURE and key and template:
            yield template, StatedCause(key, _SURE[mark])
        elif line.startswith("[") and line.endswith("]"):
            key = line[1:-1]
        elif line and mark != "#":
            raise ValueError(f"messages.txt:{number}: expected [KEY], = TEMPLATE or ~ TEMPLATE: {line[:60]}")
