"""Changes to a user's file that keep everything else of it: comments, order, quotes, anchors, numbers as written.

`tune` writes into a recipe, `init` into a cluster file. ruamel.yaml is imported when they do: it costs 60 ms, and
reading stays with PyYAML (ADR 21).
"""

import re
from collections.abc import Mapping
from io import StringIO
from typing import TYPE_CHECKING, Any

from sparkwright.recipes.problems import overlay

if TYPE_CHECKING:
    from ruamel.yaml import YAML

WAKE_MARK = "by init"
_OUR_WAKE = re.compile(rf'^ +wake: "[0-9A-Fa-f:]{{17}}" +# {WAKE_MARK}\n', re.MULTILINE)
_WIDTH = 1 << 20  # characters: a long line of the user's stays one line
_KEY = r"^( *)[^\s#-][^\n]*:[ \t]*(?:#[^\n]*)?\n(?:[ \t]*(?:#[^\n]*)?\n)*"  # with nothing behind it, then comments
_LIST_UNDER_KEY = re.compile(_KEY + r"( *)- ", re.MULTILINE)
_KEY_UNDER_KEY = re.compile(_KEY + r"(?=\1 )( *)[^\s#-]", re.MULTILINE)


def add_profile(text: str, name: str, base: str, changes: Mapping[str, Any]) -> str:
    """The recipe file with one profile more: `changes` on top of the profile `base` ('' for the recipe itself).

    text: a recipe that was read before, so its size and aliases are within bounds.
    """
    yaml = _editor(text)
    tree = yaml.load(text)
    if not tree.get("profiles"):
        tree["profiles"] = {}
    tree["profiles"][name] = overlay(plain_values(tree["profiles"].get(base) or {}), changes)
    written = StringIO()
    yaml.dump(tree, written)
    return written.getvalue()


def add_wake(text: str, macs: Mapping[str, str]) -> str:
    """The cluster file with `wake` for these nodes (name -> MAC address), marked as ours."""
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString

    yaml = _editor(text)
    tree = yaml.load(text)
    for node in tree["nodes"]:
        if mac := macs.get(node["name"], ""):
            node["wake"] = DoubleQuotedScalarString(mac)
            node.yaml_add_eol_comment(WAKE_MARK, "wake")
    written = StringIO()
    yaml.dump(tree, written)
    return written.getvalue()


def remove_wake(text: str) -> str:
    """The cluster file without the lines of `add_wake`; one that a person wrote or changed stays."""
    return _OUR_WAKE.sub("", text)


def _editor(text: str) -> "YAML":
    from ruamel.yaml import YAML

    yaml = YAML(typ="rt", pure=True)
    yaml.preserve_quotes, yaml.width = True, _WIDTH
    keys, lists = indents(text)
    yaml.indent(mapping=keys, sequence=lists + 2, offset=lists)
    return yaml


def indents(text: str) -> tuple[int, int]:
    """Spaces by which the file's first nested key, and its first list, stand further right than the key above."""
    key, item = _KEY_UNDER_KEY.search(text), _LIST_UNDER_KEY.search(text)
    return len(key[2]) - len(key[1]) if key else 2, max(len(item[2]) - len(item[1]), 0) if item else 2


def plain_values(tree: Any) -> Any:
    """A copy without comments and anchors, which belong to the place they were written at."""
    if isinstance(tree, Mapping):
        return {key: plain_values(value) for key, value in tree.items()}
    return [plain_values(value) for value in tree] if isinstance(tree, list) else tree
