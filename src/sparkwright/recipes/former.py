"""Names in recipes that were others before 0.2.0: `serving.door` (the gateway's settings), the engine `twin`."""

from collections.abc import Mapping
from typing import Any

from sparkwright.recipes.yaml_lines import Document, Path, Problem

FORMER: Mapping[Path, str] = {("serving", "door"): "gateway"}
"""Path of the key as it was -> what it is called today."""
FORMER_VALUES: Mapping[Path, Mapping[Any, str]] = {("engine", "name"): {"twin": "simulator"}}
"""Path of a key -> a value as it was -> the value today."""


def with_names_of_today(document: Document) -> Document:
    """Rename former keys and values, also in profiles; a key beside its new name is a problem of the file."""
    tree, lines, problems = document.value, dict(document.lines), list(document.problems)
    profiles = tree.get("profiles") if isinstance(tree, Mapping) else None
    places: list[Path] = [(), *(("profiles", name) for name in (profiles if isinstance(profiles, Mapping) else ()))]
    for place in places:
        for path, values in FORMER_VALUES.items():
            tree = _with_value(tree, (*place, *path), values)
        for path, name in FORMER.items():
            former = (*place, *path)
            if not _holds(tree, former):
                continue
            today = (*former[:-1], name)
            if _holds(tree, today):
                said = f"`{_dotted(path)}` is the former name of `{_dotted((*path[:-1], name))}`: one of both, please"
                problems.append(Problem(document.line(former), said))
                continue
            tree = _renamed(tree, former, name)
            lines = {_moved(at, former, today): line for at, line in lines.items()}
    return Document(tree, lines, tuple(problems))


def _holds(tree: Any, path: Path) -> bool:
    for step in path:
        if not isinstance(tree, Mapping) or step not in tree:
            return False
        tree = tree[step]
    return True


def _renamed(tree: Any, path: Path, name: str) -> Any:
    """A copy of the tree in which the last key of the path has another name, at the same place."""
    if len(path) == 1:
        return {name if key == path[0] else key: value for key, value in tree.items()}
    return {key: _renamed(value, path[1:], name) if key == path[0] else value for key, value in tree.items()}


def _with_value(tree: Any, path: Path, today: Mapping[Any, str]) -> Any:
    """A copy of the tree with the value of today; the tree itself where there is nothing to change."""
    if not isinstance(tree, Mapping) or path[0] not in tree:
        return tree
    value = tree[path[0]]
    if len(path) > 1:
        changed = _with_value(value, path[1:], today)
    else:
        changed = today.get(value, value) if isinstance(value, str) else value
    return {**tree, path[0]: changed} if changed is not value else tree


def _dotted(path: Path) -> str:
    return ".".join(str(step) for step in path)


def _moved(at: Path, former: Path, today: Path) -> Path:
    return (*today, *at[len(former) :]) if at[: len(former)] == former else at
