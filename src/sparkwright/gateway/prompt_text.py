"""The text of a prompt in OpenAI's and Anthropic's requests, in the order in which chat templates put it."""

import json
from collections.abc import Mapping
from typing import Any

BEFORE = ("tools", "functions", "system", "instructions", "documents")
"""What templates put before the messages, wherever it is in the body."""
ITEMS = ("messages", "input", "prompt")


def items_of(tree: Mapping[str, Any]) -> Any:
    """The messages, or the text in their place; '' without either."""
    return next((tree[name] for name in ITEMS if tree.get(name)), "")


def pieces_of(tree: Mapping[str, Any]) -> tuple[list[bytes], list[bytes]]:
    """The texts before the messages, and one for each message: the same bytes for the same values."""
    items = items_of(tree)
    before = [encoded(tree[name]) for name in BEFORE if tree.get(name)]
    return before, [encoded(one) for one in (items if isinstance(items, list) else [items])]


def encoded(piece: Any) -> bytes:
    """A text as it is, anything else as JSON. The program on the head has no faster encoder."""
    text = piece if isinstance(piece, str) else json.dumps(piece, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")
