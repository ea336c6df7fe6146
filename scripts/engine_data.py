"""Reads an engine's command-line options out of its published wheel and writes src/sparkwright/engines/data/.

    python scripts/engine_data.py vllm 0.21.0 [--wheel FILE]
    python scripts/engine_data.py llama-cpp            (the server inside the installed xllamacpp wheel)

vLLM is never imported: its sources are parsed, and the rules by which vllm/engine/arg_utils.py turns config fields into
argparse arguments (`_compute_kwargs`) are followed here. llama.cpp's options come from the compiled parser's own help.
"""

import argparse
import ast
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from engine_data_llama import llama_options
from engine_data_types import Sources, describe, json_keys

DATA = Path(__file__).parent.parent / "src/sparkwright/engines/data"
PLATFORMS = ("manylinux_2_24_x86_64", "manylinux_2_28_x86_64", "manylinux_2_31_x86_64", "manylinux_2_35_x86_64")
CLI, ARGS = "vllm.entrypoints.openai.cli_args", "vllm.engine.arg_utils"
# Options whose values are names that a registry holds: (module, dictionaries that list them).
REGISTRIES = {
    "tool-call-parser": ("vllm.tool_parsers", ("_TOOL_PARSERS_TO_REGISTER",)),
    "reasoning-parser": ("vllm.reasoning", ("_REASONING_PARSERS_TO_REGISTER",)),
}
Options = dict[str, dict[str, Any]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", choices=["vllm", "llama-cpp"])
    parser.add_argument("version", nargs="?", default="")
    parser.add_argument("--wheel", type=Path, help="a wheel that is here already")
    parser.add_argument("--out", type=Path, default=DATA, help="folder to write to")
    asked = parser.parse_args()
    found = _vllm(asked.version, asked.wheel) if asked.engine == "vllm" else _llama()
    target = asked.out / f"{found['engine']}-{found['version']}.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(_layout(found), encoding="utf-8")
    print(f"{target}: {len(found['options'])} options, {len(found['env'])} environment variables")


def _layout(found: dict[str, Any]) -> str:
    """JSON with one option a line, so that two versions can be compared by eye."""
    rows = [f"  {json.dumps(name)}: {json.dumps(row, ensure_ascii=False)}" for name, row in found["options"].items()]
    head = {key: value for key, value in found.items() if key not in ("options", "env")}
    lines = [f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}," for key, value in head.items()]
    env = json.dumps(found["env"])
    return "\n".join(["{", *lines, ' "options": {', ",\n".join(rows), " },", f' "env": {env}', "}"]) + "\n"


def _llama() -> dict[str, Any]:
    version, wheel, sha256, options, env = llama_options()
    head = {"engine": "llama-cpp", "version": version, "wheel": wheel, "sha256": sha256}
    return {**head, "options": options, "env": env}


def _vllm(version: str, wheel: Path | None) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = wheel or _download(version, Path(folder))
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        sources = Sources(path)
        options = Registered(sources).all()
        _registries(sources, options)
        options["speculative-config"]["keys"] = json_keys(sources, "vllm.config.speculative", "SpeculativeConfig")
        env = sorted(sources.keys_of("vllm.envs", "environment_variables"))
    head = {"engine": "vllm", "version": version or path.name.split("-")[1], "wheel": path.name, "sha256": digest}
    return {**head, "options": options, "env": env}


def _download(version: str, folder: Path) -> Path:
    pip = shutil.which("pip") or sys.exit("pip is not on the PATH; download the wheel yourself and give --wheel")
    words = [pip, "download", "--no-deps", "--only-binary", ":all:", "--dest", str(folder)]
    words += [word for name in PLATFORMS for word in ("--platform", name)]
    subprocess.run([*words, "--python-version", "3.12", f"vllm=={version}"], check=True)
    return next(folder.glob("*.whl"))


def _registries(sources: Sources, options: Options) -> None:
    for option, (module, names) in REGISTRIES.items():
        known = sorted(key for name in names for key in sources.keys_of(module, name))
        if known and option in options:
            options[option]["known"] = known


class Registered:
    """Follows the three functions that register `vllm serve`'s arguments, statement by statement."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self.options: Options = {}
        self.kwargs: dict[str, Options] = {}  # local variable -> field -> description
        self.single: dict[str, dict[str, Any]] = {}  # local variable -> one field's description

    def all(self) -> Options:
        self._walk(CLI, self._function(CLI, None, "make_arg_parser"))
        self._frontend("FrontendArgs")
        self._walk(ARGS, self._function(ARGS, "EngineArgs", "add_cli_args"))
        self._walk(ARGS, self._function(ARGS, "AsyncEngineArgs", "add_cli_args"))
        return self.options

    def _function(self, module: str, cls: str | None, name: str) -> list[ast.stmt]:
        body = self.sources.class_node(module, cls).body if cls else self.sources.module(module).body
        return next((n.body for n in body if isinstance(n, ast.FunctionDef) and n.name == name), [])

    def _frontend(self, cls: str) -> None:
        """Every field becomes an option, after what `_customize_cli_kwargs` changes; base class first."""
        fields = self._class_kwargs(CLI, cls)
        for part in [*self.sources.bases(CLI, cls), cls]:
            self.kwargs["frontend_kwargs"] = fields
            self._walk(CLI, self._function(CLI, part, "_customize_cli_kwargs"))
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
        if isinstance(target, ast.Name) and isinstance(value, ast.Call) and _name(value.func) == "get_kwargs":
            self.kwargs[target.id] = self._class_kwargs(module, _name(value.args[0]))
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
        return self.kwargs.get(_name(node.value), {}).get(str(key))

    def _call(self, call: ast.Call) -> None:
        flags = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        if isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument" and flags[:1] != ["model_tag"]:
            row: dict[str, Any] = {"kind": "value", "type": "str"}
            for keyword in call.keywords:
                self._keyword(row, keyword)
            self._put(flags, row)

    def _keyword(self, row: dict[str, Any], keyword: ast.keyword) -> None:
        if keyword.arg:
            _override(row, keyword.arg, keyword.value)
        elif isinstance(keyword.value, ast.Dict):  # {**kwargs["field"], "default": None}
            for key, value in zip(keyword.value.keys, keyword.value.values, strict=True):
                row.update(self._row(value) or {}) if key is None else _override(row, str(_literal(key)), value)
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
        action = _literal(value) or _name(value)
        kinds = {"store_true": "flag", "append": "append", "BooleanOptionalAction": "bool"}
        row["kind"] = kinds.get(action, row["kind"])
    elif key == "type":
        _set_type(row, value)
    elif key in ("default", "choices", "deprecated", "nargs"):
        _set_plain(row, key, _literal(value))


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
        row["kind"] = "list"
    elif key != "default" or value is not None:
        row[key] = value
    else:
        row.pop("default", None)


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return None


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


if __name__ == "__main__":
    main()
