"""The reaction of a model to the few plain orders that `eval` gives: the simulator follows these, and nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from sparkwright.domain.values import dataclass

Body = dict[str, Any]
_REPEAT = re.compile(r"Reply with exactly this and nothing else: (.+)")
_CALL = re.compile(r"Call the function (\w+) with these arguments: (\{.*\})")
_KEY = re.compile(r"What is the key of (\w+)\?")
_RESULT = "Reply with exactly what the function returned."


@dataclass(frozen=True, slots=True)
class Directive:
    """text: the whole answer, '' without. calls: (function, arguments as JSON), in this order."""

    text: str = ""
    calls: tuple[tuple[str, str], ...] = ()


def directive(messages: Sequence[Body], wrong: frozenset[str]) -> Directive:
    """The order in the last message of the user, or in a result after it. wrong: faults that change the model's
    view."""
    texts = [plain_text(message.get("content")) for message in messages if isinstance(message, dict)]
    last, role = texts[-1] if texts else "", str((messages or [{}])[-1].get("role"))
    if role == "tool":
        ordered = any(_RESULT in text for text in texts)
        return Directive("none" if "results" in wrong else last) if ordered else Directive()
    if found := _REPEAT.search(last):
        return Directive(found[1])
    if found := _KEY.search(last):
        return Directive(_key(last, found[1], "window" in wrong))
    calls = tuple((name, arguments) for name, arguments in _CALL.findall(last) if _is_json(arguments))
    return Directive(calls=calls)


def plain_text(content: Any) -> str:
    """The text of a string or of parts."""
    if not isinstance(content, list):
        return str(content or "")
    return "\n".join(str(part.get("text") or "") for part in content if isinstance(part, dict))


def _key(text: str, name: str, cut: bool) -> str:
    """cut: only the last half of a long prompt is seen."""
    seen = text[len(text) // 2 :] if cut and len(text) > 12_000 else text
    found = re.search(rf"The key of {name} is (\d+)\.", seen)
    return found[1] if found else "unknown"


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False
