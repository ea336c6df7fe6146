"""`trtllm-serve serve`'s options, spelled exactly as click takes them, with underscores. There are two sources:

from a wheel, the click decorators in tensorrt_llm/commands/serve.py, for releases that keep them there;
since mid 2026, upstream's own list of the command line (REFERENCE), which its CI compares with the live one
(https://github.com/NVIDIA/TensorRT-LLM/pull/15643). It is in the repository only, but has what the wheel's source
text does not show: the defaults and names that other modules compute.
"""

import ast
import re
from typing import Any

import yaml

from sparkwright.engines.wheels.lists import Lists
from sparkwright.engines.wheels.sources import Sources
from sparkwright.engines.wheels.syntax import literal, name_of

SERVE = "tensorrt_llm.commands.serve"
BUILD = ("tensorrt_llm.builder", "BuildConfig")
REPOSITORY = "https://github.com/NVIDIA/TensorRT-LLM"
REFERENCE = "tests/unittest/api_stability/references/trtllm_serve_cli.yaml"
Options = dict[str, dict[str, Any]]


def trtllm_options(sources: Sources) -> Options:
    lists = Lists(sources)
    defaults = {name: literal(node.value) for name, _, node in sources.fields(*BUILD) if node.value is not None}
    calls = [d for d in _serve(sources).decorator_list if isinstance(d, ast.Call) and name_of(d.func) == "option"]
    return dict(_option(lists, defaults, call) for call in calls)


def trtllm_env(sources: Sources) -> tuple[list[str], dict[str, str]]:
    return sorted(sources.matches(r"(?:TRTLLM|TLLM)_[A-Z0-9_]+")), {}


def _serve(sources: Sources) -> ast.FunctionDef:
    body = sources.module(SERVE).body
    return next(n for n in body if isinstance(n, ast.FunctionDef) and n.name == "serve")


def _option(lists: Lists, defaults: dict[str, Any], call: ast.Call) -> tuple[str, dict[str, Any]]:
    words = {k.arg: k.value for k in call.keywords if k.arg}
    flags = [str(literal(a)) for a in call.args]
    name, *aliases = [f for f in flags if f.startswith("-")]
    row = _kind(lists, words) | _default(defaults, words.get("default"))
    return name.removeprefix("--"), row | ({"aliases": aliases} if aliases else {})


def _kind(lists: Lists, words: dict[str, ast.expr]) -> dict[str, Any]:
    if literal(words.get("is_flag", ast.Constant(value=False))):
        return {"kind": "flag"}
    kind = words.get("type")
    row: dict[str, Any] = {"kind": "append" if "multiple" in words else "value", "type": "str"}
    if isinstance(kind, ast.Name) and kind.id in ("int", "float"):
        row["type"] = kind.id
    if isinstance(kind, ast.Call) and "Choice" in name_of(kind.func) and kind.args:
        aliases = list((literal(kind.args[1]) or {}) if len(kind.args) > 1 else {})
        if choices := lists.choices(SERVE, kind.args[0], {}):
            row["choices"] = [*choices, *aliases]
    return row


def _default(defaults: dict[str, Any], node: ast.expr | None) -> dict[str, Any]:
    """A literal, or `BuildConfig.model_fields["name"].default`."""
    found = literal(node) if node is not None else None
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Subscript):
        found = defaults.get(str(literal(node.value.slice)))
    return {"default": found} if isinstance(found, bool | int | float | str) else {}


def reference_options(text: str) -> Options:
    """The options of upstream's list; its `Choice([...])` is Python's repr. Raises KeyError on another file."""
    return dict(_listed(row) for row in yaml.safe_load(text)["commands"]["serve"]["options"].values())


def _listed(row: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    negatives = [flag for flag in row["flags"] if flag.startswith("--no-")]
    name, *aliases = [flag for flag in row["flags"] if flag not in negatives]
    extra = {
        "default": row["default"],
        "aliases": aliases,
        "negatives": negatives,
        "deprecated": (row["status"] == "deprecated") or None,
    }
    return name.removeprefix("--"), _listed_kind(row) | {k: v for k, v in extra.items() if v not in (None, [])}


def _listed_kind(row: dict[str, Any]) -> dict[str, Any]:
    if row["is_flag"]:
        return {"kind": "flag"}
    kind: dict[str, Any] = {"kind": "append" if row["multiple"] else "value", "type": "str"}
    if row["type"] in ("int", "float"):
        kind["type"] = row["type"]
    if choices := re.fullmatch(r"Choice\((\[.*\])\)", row["type"]):
        kind["choices"] = ast.literal_eval(choices[1])
    return kind
