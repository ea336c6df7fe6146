"""Changes to a recipe file that keep everything else of it: comments, order, quotes, anchors, numbers as written.

Only `tune` writes into a user's file. ruamel.yaml is imported when it does: it costs 60 ms, and reading stays with
PyYAML (ADR 21).
"""

import re
from collections.abc import Mapping
from io import StringIO
from typing import Any

from sparkwright.recipes.problems import overlay

_WIDTH = 1 << 20  # characters: a long line of the user's stays one line
_KEY = r"^( *)[^\s#-][^\n]*:[ \t]*(?:#[^\n]*)?\n(?:[ \t]*(?:#[^\n]*)?\n)*"  # with nothing behind it, then comments
_LIST_UNDER_KEY = re.compile(_KEY + r"( *)- ", re.MULTILINE)
_KEY_UNDER_KEY = re.compile(_KEY + r"(?=\1 )( *)[^\s#-]", re.MULTILINE)


def add_profile(text: str, name: str, base: str, changes: Mapping[str, Any]) -> str:
    """The recipe file with one profile more: `changes` on top of the profile `base` ('' for the recipe itself).

    text: a recipe that was read before, so its size and aliases are within bounds.
    """
    from ruamel.yaml import YAML

    yaml = YAML(typ="rt", pure=True)
    yaml.preserve_quotes, yaml.width = True, _WIDTH
    keys, lists = indents(text)
    yaml.indent(mapping=keys, sequence=lists + 2, offset=lists)
    tree = yaml.load(text)
    if not tree.get("profiles"):
        tree["profiles"] = {}
    tree["profiles"][name] = overlay(plain_values(tree["profiles"].get(base) or {}), changes)
    written = StringIO()
    yaml.dump(tree, written)
    return written.getvalue()


def indents(text: str) -> tuple[int, int]:
    """Spaces by which the file's first nested key, and its first list, stand further right than the key above."""
    key, item = _KEY_UNDER_KEY.search(text), _LIST_UNDER_KEY.search(text)
    return len(key[2]) - len(key[1]) if key else 2, max(len(item[2]) - len(item[1]), 0) if item else 2


def plain_values(tree: Any) -> Any:
    """A copy without comments and anchors, which belong to the place they were written at."""
    if isinstance(tree, Mapping):
        return {key: plain_values(value) for key, value in tree.items()}
    return [plain_values(value) for value in tree] if isinstance(tree, list) else tree
