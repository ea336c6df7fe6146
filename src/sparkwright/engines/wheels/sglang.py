"""`sglang serve`'s options (the same as `python -m sglang.launch_server`'s), from the sources in SGLang's wheel.

Two ways of registering them are followed: calls of `add_argument` in `ServerArgs.add_cli_args` (all of them up to
0.5.12, a few later), and annotated fields, `name: A[type, Arg(...)]`, that `add_cli_args_from_dataclass` registers
(from 0.5.16 in ServerArgs itself, from 0.5.20 in the classes of arg_groups/fields).
"""

import ast
import re
from collections.abc import Iterator
from typing import Any

from sparkwright.engines.wheels.lists import Lists, Local
from sparkwright.engines.wheels.sources import Sources
from sparkwright.engines.wheels.syntax import first_sentence, literal, name_of

ARGS = "sglang.srt.server_args"
ENVIRON = "sglang.srt.environ"
OTHER_PROGRAMS = ("multimodal_gen", "test", "benchmark")
VARIABLES = r"SGL(?:ANG)?_[A-Z0-9_]+"
TYPES = {
    "int": "int",
    "float": "float",
    "human_readable_int": "si-int",  # 1k and 1Ki, unlike vLLM's 1k and 1K
}
JSON = ("json.loads", "json_list_type", "parse_cuda_graph_config_arg")
SAYING = ("_print_deprecated_env", "_warn_deprecated_env_to_cli_flag")
Row = dict[str, Any]
Options = dict[str, Row]
Words = dict[str | None, ast.expr]


def sglang_options(sources: Sources) -> Options:
    """Fields first, as `add_cli_args` does; an option registered by hand is after them."""
    lists = Lists(sources)
    fields = {name_of(field.target): (module, field) for module, field in _fields(sources)}
    found = [row for module, field in fields.values() for row in _field(lists, module, field)]
    defaults = {name: literal(field.value) for name, (_, field) in fields.items() if field.value is not None}
    body = _registering(sources)
    local = lists.locals(body)
    for call in (node for statement in body for node in ast.walk(statement)):
        if isinstance(call, ast.Call) and name_of(call.func) == "add_argument":
            found.append(_written(lists, local, defaults, call))
    return dict(found)


def sglang_env(sources: Sources) -> tuple[list[str], dict[str, str]]:
    """(every variable that the sources read, deprecated ones -> what to use instead, '' when nothing)."""
    fields = sources.class_node(ENVIRON, "Envs").body
    own = {name_of(node.targets[0]) for node in fields if isinstance(node, ast.Assign)}
    names = {name for name in own if re.fullmatch(VARIABLES, name)} | sources.matches(VARIABLES, OTHER_PROGRAMS)
    old = dict(_replaced(sources.module(ENVIRON)))
    return sorted(names | old.keys()), {name: old[name] for name in sorted(old)}


def _replaced(module: ast.Module) -> Iterator[tuple[str, str]]:
    """Old name and remedy, in the ways that environ.py has had to report it."""
    signatures = {n.name: [a.arg for a in n.args.args] for n in module.body if isinstance(n, ast.FunctionDef)}
    for node in ast.walk(module):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            old = {k.arg: literal(k.value) for k in node.value.keywords}.get("deprecated_name")
            yield from [(old, name_of(node.targets[0]))] if old else []
        elif isinstance(node, ast.Call) and name_of(node.func) in SAYING:
            given = dict(zip(signatures[name_of(node.func)], map(literal, node.args), strict=False))
            hint = given.get("new_name") or given.get("suggestion") or ""
            yield str(given.get("old_name") or given.get("env_name")), first_sentence(hint)
        elif isinstance(node, ast.Dict):
            yield from _registry(node)


def _registry(node: ast.Dict) -> Iterator[tuple[str, str]]:
    """`{"OLD": _DeprecatedEnv("NEW", note="...")}` and `{"OLD": "NEW"}`."""
    for key, value in zip(node.keys, node.values, strict=True):
        old, plain = str(literal(key)) if key else "", literal(value)
        if re.fullmatch(VARIABLES, old) and isinstance(plain, str) and re.fullmatch(VARIABLES, plain):
            yield old, plain
        if isinstance(value, ast.Call) and name_of(value.func) == "_DeprecatedEnv":
            words = {k.arg: literal(k.value) for k in value.keywords}
            new = literal(value.args[0]) if value.args else words.get("replacement")
            yield old, first_sentence(new or words.get("note") or "")


def _fields(sources: Sources) -> Iterator[tuple[str, ast.AnnAssign]]:
    """(module, field) of ServerArgs and of the classes it collects its fields from, with the module that knows them."""
    listed = getattr(sources.names(ARGS).get("_INPUT_NAMESPACES"), "value", None)
    namespaces = [name_of(part) for part in listed.elts] if isinstance(listed, ast.List) else []
    bodies = [(ARGS, _record(sources).body)]
    bodies += [(sources.home(ARGS, name), sources.class_node(ARGS, name).body) for name in namespaces]
    for module, body in bodies:
        yield from ((module, n) for n in body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name))


def _record(sources: Sources) -> ast.ClassDef:
    """The class as written: from 0.5.20 on its name is set again, to what is built of it."""
    body = sources.module(ARGS).body
    return next(n for n in body if isinstance(n, ast.ClassDef) and n.name == "ServerArgs")


def _registering(sources: Sources) -> list[ast.stmt]:
    body = _record(sources).body
    return next(n.body for n in body if isinstance(n, ast.FunctionDef) and n.name == "add_cli_args")


def _field(lists: Lists, module: str, field: ast.AnnAssign) -> Iterator[tuple[str, Row]]:
    """The order of questions of `add_cli_args_from_dataclass`; nothing for a field without Arg or a help text."""
    parts = _annotated(field.annotation)
    meta = next((p for p in parts[1:] if name_of(getattr(p, "func", p)) == "Arg" or literal(p)), None)
    words = {k.arg: k.value for k in meta.keywords} if isinstance(meta, ast.Call) else {}
    if meta is None or literal(words.get("no_cli", ast.Constant(value=None))):
        return
    words |= _pairs(words.get("action_kwargs"))
    name = literal(words["cli_name"]) if "cli_name" in words else "--" + name_of(field.target).replace("_", "-")
    row = _typed(parts[0], words) | _keywords(lists, module, {}, words)
    row |= _default(literal(field.value) if field.value else None)
    yield _named([name, *(literal(words["aliases"]) if "aliases" in words else [])], row)


def _pairs(node: ast.expr | None) -> Words:
    found = zip(node.keys, node.values, strict=True) if isinstance(node, ast.Dict) else ()
    return {str(literal(key)): value for key, value in found if key is not None}


def _annotated(node: ast.expr) -> list[ast.expr]:
    """`[type, Arg(...)]` of `A[type, Arg(...)]`; nothing for any other annotation."""
    named = isinstance(node, ast.Subscript) and name_of(node.value) in ("A", "Annotated")
    inside = node.slice if isinstance(node, ast.Subscript) and named else None
    return inside.elts if isinstance(inside, ast.Tuple) else []


def _typed(node: ast.expr, words: Words) -> Row:
    """The kind of value in the field's type: Optional[X] is X, List[X] takes several words, Literal lists choices."""
    node = _plain(node)
    text = ast.unparse(node)
    if text == "bool":
        return {"kind": "flag"}
    inside = node.slice if isinstance(node, ast.Subscript) else node
    outside = name_of(node.value) if isinstance(node, ast.Subscript) else ""
    if outside in ("List", "list") and "type_parser" not in words:
        return {"kind": "list", "type": TYPES.get(ast.unparse(inside), "str")}
    if outside == "Literal":
        choices = [literal(part) for part in (inside.elts if isinstance(inside, ast.Tuple) else [inside])]
        return {"kind": "value", "type": TYPES.get(type(choices[0]).__name__, "str"), "choices": choices}
    return {"kind": "value", "type": TYPES.get(text, "str")}


def _plain(node: ast.expr) -> ast.expr:
    """X of `Optional[X]` and of `X | None`."""
    if isinstance(node, ast.Subscript) and name_of(node.value) == "Optional":
        return node.slice
    return node.left if isinstance(node, ast.BinOp) and ast.unparse(node.right) == "None" else node


def _written(lists: Lists, local: Local, defaults: dict[str, Any], call: ast.Call) -> tuple[str, Row]:
    words = {k.arg: k.value for k in call.keywords}
    row = {"kind": "value", "type": "str"} | _keywords(lists, ARGS, local, words)
    row |= _default(_written_default(defaults, words.get("default")))
    return _named([str(literal(a)) for a in call.args], row)


def _written_default(defaults: dict[str, Any], node: ast.expr | None) -> Any:
    """A literal, `ServerArgs.field`, or `_declared_default("field")`."""
    if isinstance(node, ast.Attribute) and name_of(node.value) == "ServerArgs":
        return defaults.get(node.attr)
    if isinstance(node, ast.Call) and name_of(node.func) == "_declared_default":
        return defaults.get(str(literal(node.args[0])))
    return literal(node) if node is not None else None


def _default(value: Any) -> Row:
    return {"default": value} if isinstance(value, bool | int | float | str) else {}


def _keywords(lists: Lists, module: str, local: Local, words: Words) -> Row:
    """The option's facts in add_argument's keywords, or Arg's."""
    row: Row = {}
    if (kind := words.get("type") or words.get("type_parser")) is not None:
        text = ast.unparse(kind)
        row |= {"kind": "json"} if text in JSON else {"type": TYPES.get(text, "str")}
    if "choices" in words and (choices := lists.choices(module, words["choices"], local)):
        row["choices"] = choices
    if nargs := literal(words.get("nargs", ast.Constant(value=None))):
        row["kind"] = "maybe" if nargs == "?" else "list"
    return row | _action(words)


def _action(words: Words) -> Row:
    action = words.get("action")
    name = str(literal(action) or name_of(action)) if action is not None else ""
    kinds = {"store_true": "flag", "BooleanOptionalAction": "bool", "append": "append", "LoRAPathAction": "list"}
    row: Row = {"kind": kinds[name]} if name in kinds else {}
    takes_none = "nargs" not in words and name != "DeprecatedAliasStoreAction"
    if name.startswith("Deprecated") and takes_none:
        row["kind"] = "flag"
    return row | _deprecation(name, words)


def _deprecation(action: str, words: Words) -> Row:
    """deprecated: the engine's words, shortened. replaced-by: the new flag. refused: the engine stops at this flag."""
    said = {key: literal(words[key]) or "" for key in ("help", "error_message", "new_flag") if key in words}
    text = said.get("error_message") or said.get("help", "")
    if not action.startswith("Deprecated") and not re.match(r"[\[(]?deprecated", text, re.IGNORECASE):
        return {}
    new = said.get("new_flag") or next(iter(re.findall(r"(?i:use|with) '?(--[\w-]+)", text)), "")
    row: Row = {"deprecated": first_sentence(text) or "deprecated"}
    row |= {"replaced-by": new} if new else {}
    return row | ({"refused": True} if "error_message" in said else {})


def _named(flags: list[str], row: Row) -> tuple[str, Row]:
    name, *aliases = flags
    order = ("kind", "type", "choices", "default", "deprecated", "replaced-by", "refused")
    typed = row["kind"] in ("value", "list", "maybe", "append")
    kept = {key: row[key] for key in order if key in row and (typed or key != "type")}
    return name.removeprefix("--"), kept | ({"aliases": aliases} if aliases else {})
