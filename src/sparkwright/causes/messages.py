"""The causes that messages of engines and their libraries state, as people read them (messages.txt)."""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from sparkwright.domain.values import dataclass
from sparkwright.engines.messages import Message
from sparkwright.logscan.sign import LIKELY, POSSIBLE

_FILE = Path(__file__).with_name("messages.txt")
_SURE = {"=": LIKELY, "~": POSSIBLE}


@dataclass(frozen=True, slots=True)
class StatedCause:
    """The key of a cause, and how sure a message makes of it."""

    key: str
    sure: float


def stated_by(message: Message | None) -> StatedCause | None:
    """The cause that the message states; None for a message that states none, or that nobody has read."""
    return _by_template().get(message.template) if message else None


@cache
def _by_template() -> Mapping[str, StatedCause]:
    return dict(stated_causes(_FILE.read_text(encoding="utf-8")))


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
