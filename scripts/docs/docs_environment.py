"""docs/reference/environment.md: variables, files and folders that the code names, with docs_environment.toml's words.

Raises AssertionError for a name in the code without words, and for words without a name.
"""

import re
import tomllib
from dataclasses import fields
from functools import cache
from pathlib import Path

from sparkwright.adapters.files import Places
from sparkwright.adapters.sqlite.runs import RUNS
from sparkwright.app.setup.init import PEERS
from sparkwright.domain.cluster import NodePaths

_SOURCE = Path(__file__).resolve().parents[2] / "src"
_WORDS = Path(__file__).with_suffix(".toml")
_VARIABLE = re.compile(r"\b(?:_?SPARKWRIGHT_[A-Z_]*|XDG_[A-Z]+_HOME|HF_(?:ENDPOINT|TOKEN|HUB_OFFLINE)|NO_COLOR)\b")
# `places().state / "keys"` and `access.state / ...` in the code.
_PLACE = re.compile(r"(?:places(?:\(\))?|access)\.(state|config|cache) / (?:f?\"([^\"{]+)\"|(RUNS))")
HEAD = """# Environment variables, files and folders

{made}
## Variables that you set

| variable | for | effect |
| -- | -- | -- |
{yours}

## Variables that sparkwright sets

For programs that it starts; you can read them, setting them has no effect.

| variable | where |
| -- | -- |
{ours}

## On your machine

Each command asks for a file or folder only when it needs it. `XDG_CONFIG_HOME`, `XDG_STATE_HOME` and `XDG_CACHE_HOME`
move them.

| path | holds |
| -- | -- |
{machine}

## On the nodes

The cluster file's `paths` change the first four; the name in brackets is the key.

| path | holds |
| -- | -- |
{nodes}
| `~/{peers}` | the key that `init` gives a node for its peers |
| `/run/lock/sparkwright-UID` | the lease of who changes the node now |

Exit codes: [exit codes](exit-codes.md). Completion with Tab: [shell](../guides/shell.md).
"""


def environment_page(made: str) -> str:
    words = tomllib.loads(_WORDS.read_text())
    told = {**words["yours"], **words["ours"]}
    compare_names("variables", variables(), set(told))
    compare_names("folders", machine_paths(), set(words["machine"]))
    compare_names("folders of nodes", {one.name for one in fields(NodePaths)}, set(words["nodes"]))
    kinds = {"config": "~/.config/sparkwright", "state": "~/.local/state/sparkwright", "cache": "~/.cache/sparkwright"}
    yours = [f"| `{variable_text(name)}` | {use} | {effect} |" for name, (use, effect) in words["yours"].items()]
    ours = [f"| `{variable_text(name)}` | {text} |" for name, text in words["ours"].items()]
    machine = []
    for path, text in words["machine"].items():
        kind, _, rest = path.partition("/")
        machine.append(f"| `{kinds[kind]}/{rest}` | {text} |")
    nodes = [f"| `{getattr(NodePaths(), name)}` (`{name}`) | {text} |" for name, text in words["nodes"].items()]
    tables = {"yours": yours, "ours": ours, "machine": machine, "nodes": nodes}
    return HEAD.format(made=made, peers=PEERS, **{name: "\n".join(rows) for name, rows in tables.items()})


def compare_names(kind: str, code: set[str], words: set[str]) -> None:
    assert code == words, f"{kind}: without words {sorted(code - words)}, no longer in the code {sorted(words - code)}"


@cache
def variables() -> set[str]:
    source = [path for kind in ("*.py", "*.sh") for path in _SOURCE.rglob(kind)]
    return {name for path in source for name in _VARIABLE.findall(path.read_text())}


@cache
def machine_paths() -> set[str]:
    """`state/keys` for each place that the code makes from `Places`."""
    text = "\n".join(path.read_text() for path in _SOURCE.rglob("*.py"))
    found = {f"{kind}/{name or RUNS}" for kind, name, _ in _PLACE.findall(text)}
    at = Places(Path("/cwd"), Path("/home"))
    for path in (at.recipes, at.sources, at.workloads, at.clusters[1]):
        kind = next(one for one in ("config", "state", "cache") if path.is_relative_to(getattr(at, one)))
        found.add(f"{kind}/{path.relative_to(getattr(at, kind))}")
    return found


def variable_text(name: str) -> str:
    """A beginning of names ends with dots."""
    return f"{name}..." if name.endswith("_") else name
