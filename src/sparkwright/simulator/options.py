"""vLLM 0.21.0's command line: its real flags and its real way of refusing them. `add_options` gives other engines
theirs.

The flags are the data that recipes are checked against (engines/data/vllm.json). As in vLLM, `_` and `-` mean
the same in a flag, booleans have a `--no-` form, and JSON flags take dotted keys (`--speculative-config.method ngram`).
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping
from errno import ENOENT
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn

import yaml

from sparkwright.engines.flag_data import raw_data, versions

USAGE = "vllm serve [model_tag] [options]"
MAIN_USAGE = "main.py [-h] [-v] {chat,complete,serve,launch,bench,collect-env,run-batch} ..."
OWN = "0.21.0"
"""The version whose log and API the simulator has, whichever version's flags it takes."""
PLAIN_DEFAULTS: dict[str, Any] = {"enable_lora": None, "hf_overrides": {}, "override_generation_config": {}}


class VllmParser(argparse.ArgumentParser):
    """Refuses with exit code 2 and vLLM's two lines (capture f-bad-flag)."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"usage: {USAGE}\nmain.py serve: error: {message}\n")


def parse(argv: list[str], version: str = OWN) -> argparse.Namespace:
    """Arguments after `serve`, as a version with data takes them.

    The result also has `given`: what differs from vLLM's defaults, in vLLM's order.
    """
    parser, defaults, kinds = _parser(version)
    args, unknown = parser.parse_known_args(_plain(_from_file(argv), kinds))
    if unknown:
        # The subcommand leaves what it does not know to the main parser, whose name and usage the message carries.
        parser.exit(2, f"usage: {MAIN_USAGE}\nmain.py: error: unrecognized arguments: {' '.join(unknown)}\n")
    if args.model_tag:
        args.model = args.model_tag
    for name, value in (_parser(OWN)[1] if version != OWN else {}).items():
        vars(args).setdefault(name, value)
    values = {name: getattr(args, name) for name in ("model_tag", *defaults)}
    args.given = {name: value for name, value in values.items() if value != defaults.get(name)}
    return args


@lru_cache(maxsize=4)
def _parser(version: str) -> tuple[VllmParser, dict[str, Any], dict[str, str]]:
    """The parser of a version, the defaults, and the kind of each flag."""
    rows = rows_of(f"vllm-{version}")
    parser = VllmParser(prog="main.py serve", usage=USAGE, add_help=True)
    parser.add_argument("model_tag", nargs="?")
    return parser, add_options(parser, rows), {flag: row["kind"] for row in rows for flag in row["flags"]}


def rows_of(data: str) -> list[dict[str, Any]]:
    """A row per option, in the engine's order: flags, kind (of TYPES or an argparse action), nargs, default, choices.

    data: engine and version, `vllm-0.21.0`. Raises FileNotFoundError when that version has no data.
    """
    engine, _, version = data.rpartition("-")
    if version not in versions(engine):
        raise FileNotFoundError(ENOENT, f"no flag data of {engine} {version}", data)
    return [_row(name, option) for name, option in raw_data(engine, version)["options"].items()]


def _row(name: str, option: Mapping[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {key: option[key] for key in ("default", "choices", "negatives") if key in option}
    row |= {"flags": [f"--{name}", *option.get("aliases", ())], "kind": option["kind"]}
    if option["kind"] in ("value", "list"):
        row["kind"] = option["type"]
    return row | ({"nargs": "+"} if option["kind"] == "list" else {})


def add_options(parser: argparse.ArgumentParser, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Adds the options, each under its first flag's name; gives the defaults."""
    defaults: dict[str, Any] = {}
    for row in rows:
        dest = row["flags"][0].removeprefix("--").replace("-", "_")
        defaults[dest] = row.get("default", PLAIN_DEFAULTS.get(dest, False if row["kind"] == "flag" else None))
        parser.add_argument(*row["flags"], dest=dest, default=defaults[dest], **_keywords(row))
        if row.get("negatives"):
            parser.add_argument(*row["negatives"], dest=dest, action="store_false")
    return defaults


def _keywords(row: dict[str, Any]) -> dict[str, Any]:
    kind = "flag" if row["kind"] == "bool" and row.get("negatives") else row["kind"]
    if kind in TYPES:
        return {"type": TYPES[kind], **{k: row[k] for k in ("choices", "nargs") if k in row}}
    return ACTIONS[kind]


def _human(text: str) -> int:
    """`1k` is 1,000, `1K` is 1,024, `25.6k` is 25,600 (vLLM's human_readable_int)."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([kKmMgGtT])", text.strip())
    if not found:
        return int(text)
    number, suffix = found.groups()
    power = "kmgt".index(suffix.lower()) + 1
    if suffix.isupper():
        return int(number) << (10 * power)
    return int(float(number) * 1000**power)


def _human_or_auto(text: str) -> int:
    return -1 if text.strip().lower() in ("-1", "auto") else _human(text)


def _json(text: str) -> Any:
    return None if text in ("", "None") else json.loads(text)


def _json_or_text(text: str) -> Any:
    return json.loads(text) if text.strip().startswith("{") else text


def _from_file(argv: list[str]) -> list[str]:
    """`--config FILE`: the file's keys take the place of the flag, so later flags win."""
    if "--config" not in argv:
        return argv
    at = argv.index("--config")
    loaded = yaml.safe_load(Path(argv[at + 1]).read_text(encoding="utf-8")) or {}
    extra = [word for key, value in loaded.items() for word in _words(str(key), value)]
    model = [extra.pop(extra.index("--model") + 1)] if "--model" in extra else []
    extra = [word for word in extra if word != "--model"]
    return [*model, *extra, *argv[:at], *argv[at + 2 :]]


def _words(key: str, value: Any) -> list[str]:
    if isinstance(value, bool):
        return [f"--{key}"] if value else [f"--no-{key}"]
    if isinstance(value, list):
        return [f"--{key}", *map(str, value)]
    return [f"--{key}", json.dumps(value) if isinstance(value, dict) else str(value)]


def _plain(argv: list[str], kinds: dict[str, str]) -> list[str]:
    """Underscores in flags become dashes; dotted keys of JSON flags are gathered into one JSON value each."""
    out: list[str] = []
    nested: dict[str, dict[str, Any]] = {}
    words = iter(argv)
    for word in words:
        flag, eq, value = word.partition("=")
        name, dot, path = flag.partition(".")
        name = name.replace("_", "-") if name.startswith("--") else name
        if not word.startswith("-") or not (dot or eq or word.startswith("--")):
            out.append(word)
        elif dot and kinds.get(name, "").startswith("json"):
            _put(nested.setdefault(name, {}), path, value if eq else next(words, ""))
        else:
            out.append(f"{name}{dot}{path}{eq}{value}")
    return [*out, *(w for name, tree in nested.items() for w in (name, json.dumps(tree)))]


def _put(tree: dict[str, Any], path: str, text: str) -> None:
    *parents, leaf = path.split(".")
    for key in parents:
        tree = tree.setdefault(key, {})
    try:
        tree[leaf] = json.loads(text)
    except json.JSONDecodeError:
        tree[leaf] = text


ACTIONS: dict[str, dict[str, Any]] = {
    "flag": {"action": "store_true"},
    "bool": {"action": argparse.BooleanOptionalAction},
    "append": {"action": "append"},
    "maybe": {"nargs": "?", "const": True},
}
TYPES: dict[str, Any] = {
    "str": str,
    "int": int,
    "float": float,
    "number": float,
    "si-int": _human_or_auto,
    "human-int": _human_or_auto,
    "json": _json,
    "json-or-str": _json_or_text,
}
