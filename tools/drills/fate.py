"""The fate of one request, judged by its client's view."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Fate(StrEnum):
    """lost is what must never be: the client cannot know that its answer is not coming, or not whole."""

    ANSWERED = "answered"
    REFUSED = "refused"
    BROKEN = "broken"
    LOST = "lost"


class RequestEnd(StrEnum):
    """The end of a connection: in order, by an error that the client saw, or not before its patience."""

    CLOSED = "closed"
    CUT = "cut"
    SILENT = "silent"


@dataclass(frozen=True, slots=True)
class SentRequest:
    """Seconds since the epoch; first: of the first piece of an answer, 0 when none came. retry: Retry-After, if any."""

    sent: float
    ended: float
    fate: Fate
    status: int = 0
    first: float = 0.0
    shaped: bool = False
    retry: str = ""
    said: str = ""


def judged(status: int, events: Sequence[str], end: RequestEnd) -> Fate:
    """events: the `data` of the stream's events, or the one body of an answer that is no stream."""
    if end is RequestEnd.SILENT:
        return Fate.LOST
    if status == 0 or end is RequestEnd.CUT:
        return Fate.BROKEN
    if status >= 400:
        return Fate.REFUSED
    if any(error_of(event) for event in events):
        return Fate.BROKEN
    if "abort" in map(finished, events):
        return Fate.BROKEN
    return Fate.ANSWERED if "[DONE]" in events and any(map(finished, events)) else Fate.LOST


def error_of(text: str) -> dict[str, Any]:
    """The error object of a body or an event in OpenAI's shape; empty when there is none."""
    try:
        tree = json.loads(text)
    except ValueError:
        return {}
    error = tree.get("error") if isinstance(tree, dict) else None
    return error if isinstance(error, dict) and isinstance(error.get("message"), str) else {}


def finished(text: str) -> str:
    """The reason that a piece gives for the end of its answer; `abort` is that of an engine that ends before it."""
    try:
        choices = json.loads(text).get("choices") or []
    except (ValueError, AttributeError):
        return ""
    return next((str(choice["finish_reason"]) for choice in choices if choice.get("finish_reason")), "")
