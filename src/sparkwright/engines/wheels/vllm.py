"""`vllm serve`'s options, from the sources in vLLM's wheel.

vLLM is never imported: the rules by which vllm/engine/arg_utils.py turns config fields into argparse arguments
(`_compute_kwargs`) are followed here, and the functions that register them are read statement by statement.
"""

import ast
import re
from collections.abc import Iterator
from typing import Any

from sparkwright.engines.wheels.sources import Sources, describe, json_keys
from sparkwright.engines.wheels.syntax import first_sentence, literal, name_of

SERVE, ARGS = "vllm.entrypoints.cli.serve", "vllm.engine.arg_utils"
# Options whose values are names that a registry holds: (module, dictionaries that list them).
REGISTRIES = {
    "tool-call-parser": ("vllm.tool_parsers", ("_TOOL_PARSERS_TO_REGISTER",)),
    "reasoning-parser": ("vllm.reasoning", ("_REASONING_PARSERS_TO_REGISTER",)),
}
Options = dict[str, dict[str, Any]]


def vllm_options(sources: Sources) -> Options:
    options = Registered(sources).all()
    for option, (module, names) in REGISTRIES.items():
        known = sorted(key for name in names for key in sources.keys_of(module, name))
        if known and option in options:
            options[option]["known"] = known
    for name, text in _deprecations(sources):
        if name in options:
            options[name]["deprecated"] = text
    if "EnableDisableAction" in sources.names("vllm.utils.argparse_utils"):
        for name, row in options.items():
            _paired(name, row)
    options["speculative-config"]["keys"] = json_keys(sources, "vllm.config.speculative", "SpeculativeConfig")
    return options


def _paired(name: str, row: dict[str, Any]) -> None:
    """`--enable-x` is also negated by `--disable-x`, and the other way round."""
    for own, other in (("enable-", "disable-"), ("disable-", "enable-")):
        if row["kind"] == "bool" and name.startswith(own):
            row["negatives"] = [f"--no-{name}", f"--{other}{name.removeprefix(own)}"]


def _deprecations(sources: Sources) -> Iterator[tuple[str, str]]:
    """Option and what vLLM reports of it, from the messages at the top of arg_utils.py (0.33 has four)."""
    for name, node in sources.names(ARGS).items():
        value = getattr(node, "value", None)
        text = str(literal(value)) if isinstance(value, ast.expr) and name.endswith("_DEPRECATION_MESSAGE") else ""
        if option := re.search(r"--([a-z][\w-]+)", text):
            yield option[1], first_sentence(text)


class Registered:
    """Follows the three functions that register `vllm serve`'s arguments, statement by statement."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self.cli = sources.home(SERVE, "make_arg_parser")  # entrypoints.openai, .launchers, .common: it has moved twice
        self.options: Options = {}
        self.kwargs: dict[str, Options] = {}  # local variable -> field -> description
        self.single: dict[str, dict[str, Any]] = {}  # local variable -> one field's description

    def all(self) -> Options:
        self._walk(self.cli, self._function(self.cli, None, "make_arg_parser"))
        self._frontend("FrontendArgs")
        self._walk(ARGS, self._function(ARGS, "EngineArgs", "add_cli_args"))
        self._walk(ARGS, self._function(ARGS, "AsyncEngineArgs", "add_cli_args"))
        return self.options

    def _function(self, module: str, cls: str | None, name: str) -> list[ast.stmt]:
        body = self.sources.class_node(module, cls).body if cls else self.sources.module(module).body
        return next((n.body for n in body if isinstance(n, ast.FunctionDef) and n.name == name), [])

    def _frontend(self, cls: str) -> None:
        """Every field becomes an option, after what `_customize_cli_kwargs` changes; base class first."""
        fields = self._class_kwargs(self.cli, cls)
        for part in [*self.sources.bases(self.cli, cls), cls]:
            self.kwargs["frontend_kwargs"] = fields
            self._walk(self.cli, self._function(self.cli, part, "_customize_cli_kwargs"))
        for name, row in fields.items():
            self._put([f"--{name.replace('_', '-')}"], row)

    def _class_kwargs(self, module: str, cls: str) -> Options:
        owner = self.sources.home(module, cls)
        found = self.sources.fields(owner, cls)
        return {name: describe(self.sources, where, name, node) for name, where, node in found}

    def _walk(self, module: str, body: list[ast.stmt]) -> None:
        for statement in body:
            if isinstance(statement, ast.If):
                self._walk(module, statement.body)
            elif isinstance(statement, ast.Assign):
                self._assign(module, statement.targets[0], statement.value)
            elif isinstance(statement, ast.AugAssign):
                self._widen(statement.target)
            elif isinstance(statement, ast.Delete):
                self._delete(statement.targets[0])
            elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
                self._call(statement.value)

    def _assign(self, module: str, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name) and isinstance(value, ast.Call) and name_of(value.func) == "get_kwargs":
            self.kwargs[target.id] = self._class_kwargs(module, name_of(value.args[0]))
        elif isinstance(target, ast.Name) and isinstance(value, ast.Subscript):
            self.single[target.id] = self._field(value) or {}
        elif isinstance(target, ast.Subscript):
            row, key = self._row_and_key(target)
            if row is not None:
                _override(row, key, value)

    def _widen(self, target: ast.expr) -> None:
        """`kwargs["field"]["choices"] += ...`: what is listed is no longer all."""
        row, key = self._row_and_key(target)
        if row is not None and key == "choices":
            row["known"] = row.pop("choices")

    def _delete(self, target: ast.expr) -> None:
        row, key = self._row_and_key(target)
        if row is not None and key == "nargs" and row.get("kind") == "list":
            row["kind"] = "value"

    def _row_and_key(self, target: ast.expr) -> tuple[dict[str, Any] | None, str]:
        """(`kwargs["field"]`, "type") of `kwargs["field"]["type"]`, also through a local variable."""
        if not isinstance(target, ast.Subscript) or not isinstance(target.slice, ast.Constant):
            return None, ""
        return self._row(target.value), str(target.slice.value)

    def _row(self, node: ast.expr) -> dict[str, Any] | None:
        if isinstance(node, ast.Name):
            return self.single.get(node.id)
        return self._field(node) if isinstance(node, ast.Subscript) else None

    def _field(self, node: ast.Subscript) -> dict[str, Any] | None:
        key = node.slice.value if isinstance(node.slice, ast.Constant) else None
        return self.kwargs.get(name_of(node.value), {}).get(str(key))

    def _call(self, call: ast.Call) -> None:
        flags = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        if isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument" and flags[:1] != ["model_tag"]:
            row: dict[str, Any] = {"kind": "value", "type": "str"}
            for keyword in call.keywords:
                self._keyword(row, keyword)
            self._put(flags, row)
        elif isinstance(call.func, ast.Attribute) and call.func.attr == "remove":
            self._take_out(call.func.value, call.args[0])

    def _take_out(self, target: ast.expr, value: ast.expr) -> None:
        """`kwargs["field"]["choices"].remove(CONSTANT)`."""
        row, key = self._row_and_key(target)
        if row is not None and key == "choices" and isinstance(value, ast.Name):
            found = self.sources.names(self.sources.home(ARGS, value.id)).get(value.id)
            gone = literal(getattr(found, "value", value))
            row["choices"] = [one for one in row["choices"] if one != gone]

    def _keyword(self, row: dict[str, Any], keyword: ast.keyword) -> None:
        if keyword.arg:
            _override(row, keyword.arg, keyword.value)
        elif isinstance(keyword.value, ast.Dict):  # {**kwargs["field"], "default": None}
            for key, value in zip(keyword.value.keys, keyword.value.values, strict=True):
                row.update(self._row(value) or {}) if key is None else _override(row, str(literal(key)), value)
        else:
            row.update(self._row(keyword.value) or {})

    def _put(self, flags: list[str], row: dict[str, Any]) -> None:
        name, *aliases = sorted(flags, key=lambda flag: not flag.startswith("--"))
        typed = row["kind"] not in ("flag", "bool", "json")
        kept = {key: value for key, value in row.items() if value not in (None, [], {}) and (typed or key != "type")}
        self.options[name.removeprefix("--")] = kept | ({"aliases": aliases} if aliases else {})


def _override(row: dict[str, Any], key: str, value: ast.expr) -> None:
    """One keyword of add_argument, or one later change to it."""
    if key == "action":
        action = literal(value) or name_of(value)
        kinds = {"store_true": "flag", "append": "append", "BooleanOptionalAction": "bool"}
        row["kind"] = kinds.get(action, row["kind"])
    elif key == "type":
        _set_type(row, value)
    elif key in ("default", "choices", "deprecated", "nargs"):
        _set_plain(row, key, literal(value))


def _set_type(row: dict[str, Any], value: ast.expr) -> None:
    text = ast.unparse(value)
    if "json.loads" in text:
        row["kind"] = "json"
    elif text in ("int", "float", "str"):
        row["type"] = text
    elif "lower()" in text and "choices" in row:
        row["folded"] = True  # case and dashes do not matter


def _set_plain(row: dict[str, Any], key: str, value: Any) -> None:
    if key == "nargs":
        row["kind"] = "maybe" if value == "?" else "list"
    elif key != "default" or value is not None:
        row[key] = value
    else:
        row.pop("default", None)


def vllm_env(sources: Sources) -> tuple[list[str], dict[str, str]]:
    """envs.py lists nearly all, some modules read their own. vLLM has no list of variables on their way out."""
    return sorted(sources.matches(r"VLLM_[A-Z0-9_]+")), {}
