"""`recipes import` held to other people's Compose files, scripts, lines of READMEs and systemd units.

The sibling of import_report.py, with its rules for what is lost and changed. The source's words are found a second time
here, by other code than the importer's: regular expressions for variables, and shlex.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from import_report import (
    MODULES,
    PER_RANK,
    PROGRAM,
    SECRET,
    ImportRow,
    compare_options,
    options_of,
    read_row,
    summary,
    whole_json,
)

from sparkwright.domain.recipe import Recipe

DEFAULT = re.compile(r"\$\{(\w+)(?::?[-=]((?:[^{}]|\{[^{}]*\})*))?\}|\$(\w+)")
ASSIGNED = re.compile(r"""(?:export\s+|Environment=)?["']?([A-Za-z_]\w*)=("[^"]*"|'[^']*'|[^\s"']*)["']?\s*(?:#.*)?""")
END = {"&&", ";", "|", "||", "&", ">", "2>&1", ">>"}


def compare_words(row: ImportRow, text: str, recipe: Recipe, notes: tuple[str, ...]) -> None:
    said = " ".join(notes).replace("_", "-")
    words, env = source_of(text, row.file)
    compare_options(row, whole_json(dict(options_of(recipe.engine.name, words))), recipe, said)
    for name, value in env.items():
        if not PER_RANK.fullmatch(name) and not SECRET.match(name) and name not in recipe.env:
            (row.left if name.replace("_", "-") in said else row.lost).append(f"env {name}={value}")


def source_of(text: str, name: str) -> tuple[list[str], dict[str, str]]:
    """Words of the engine's command, and the variables that the container gets, as far as this reader sees them."""
    if name.endswith((".yml", ".yaml")):
        return _of_compose(yaml.safe_load(text))
    lines = re.sub(r"\\\s*\n\s*", " ", text).splitlines()
    values = {m[1]: m[2].strip("\"'") for row in lines if (m := ASSIGNED.fullmatch(row.strip()))}
    for row in lines:
        row = re.sub(r"^ExecStart=-?", "", row.strip())
        if row.startswith("#"):
            continue
        with contextlib.suppress(ValueError):
            words = shlex.split(filled(row, values), comments=True)
            inner = next((w for w in words if " " in w and re.search(r"vllm serve|launch_server|llama-server", w)), "")
            for found in (words, shlex.split(inner) if inner else []):
                if engine := list(_engine_words(found)):
                    env = [w for at, w in enumerate(words) if at and words[at - 1] in ("-e", "--env") and "=" in w]
                    return engine, dict(one.partition("=")[::2] for one in env)
    return [], {}


def _of_compose(tree: Mapping[str, Any]) -> tuple[list[str], dict[str, str]]:
    for service in tree["services"].values():
        words = [*_split(service.get("entrypoint")), *_split(service.get("command"))]
        if words and re.search(r"vllm|sglang|llama|trtllm", " ".join((*words[:4], str(service.get("image"))))):
            inner = words[2] if len(words) > 2 and words[1] in ("-c", "-lc") else ""
            if inner:
                inner = re.sub(r"\\\s*\n\s*", " ", inner).replace("$$", "$")
            given = service.get("environment") or {}
            env = given if isinstance(given, dict) else dict(str(w).partition("=")[::2] for w in given)
            env = {str(k): filled(str(v), {}) for k, v in env.items() if v not in (None, "")}
            return list(_engine_words(shlex.split(inner) if inner else words)) or words, env
    return [], {}


def _split(value: Any) -> list[str]:
    if isinstance(value, list):
        return [filled(str(word), {}) for word in value]
    with contextlib.suppress(ValueError):
        return shlex.split(filled(str(value or ""), {}))
    return []


def filled(text: str, values: Mapping[str, str]) -> str:
    for _ in range(4):
        text = DEFAULT.sub(lambda m: _value(m, values), text)
    return text


def _value(match: re.Match[str], values: Mapping[str, str]) -> str:
    """A variable's own default comes before an assignment that names itself: `PORT="${PORT:-8000}"`."""
    name = match[1] or match[3]
    own = values.get(name, "")
    inner = DEFAULT.fullmatch(own)
    if inner and (inner[1] or inner[3]) == name:
        own = inner[2] or ""
    return own or match[2] or match[0]


def _engine_words(words: list[str]) -> Iterator[str]:
    for at, word in enumerate(words):
        if PROGRAM.match(word) and any(
            w in (*MODULES, "serve") or re.search(r"(?:^|/)(llama-server|trtllm-serve)$", w) for w in words[at : at + 3]
        ):
            end = next((n for n in range(at, len(words)) if words[n] in END), len(words))
            yield from (word for word in words[at:end] if not re.fullmatch(r"\$\{?\w+\}?|\$@", word))
            return


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--list", action="store_true", help="each file that is not perfect")
    given = parser.parse_args()
    rows = [read_row(path, compare_words) for path in sorted(given.folder.iterdir())]
    for row in rows if given.list else ():
        if row.state != "valid" or row.lost or row.left or row.changed:
            print(f"{row.file}: {row.state}")
            for what in ("reasons", "changed", "lost", "left"):
                for line in getattr(row, what):
                    print(f"    {what}: {line}")
    print(summary(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
