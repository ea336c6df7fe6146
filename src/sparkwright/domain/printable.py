"""Text from outside without what controls a terminal."""

import re

_ESCAPE = r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|[@-Z\\-_])"
_ESCAPES, _ESCAPES_IN_BYTES = re.compile(_ESCAPE), re.compile(_ESCAPE.encode())
# Also those that terminals take as an escape sequence in one character, and those that turn text round,
# and lone surrogates, which cannot be encoded.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]+")


def printable(text: str) -> str:
    """The text without escape sequences and control characters; tabs and line feeds stay."""
    return text if text.isprintable() else without_controls(_ESCAPES.sub("", text))


def without_controls(text: str) -> str:
    return _CONTROL.sub(" ", text)


def without_escapes(raw: bytes) -> bytes:
    return _ESCAPES_IN_BYTES.sub(b"", raw) if b"\x1b" in raw else raw
