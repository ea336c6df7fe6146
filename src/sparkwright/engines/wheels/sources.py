"""Config fields of a wheel's sources as argparse descriptions, without importing anything of the wheel.

The rules are those of vLLM's `_compute_kwargs` (vllm/engine/arg_utils.py, the same from 0.19 to 0.33 in what matters).
"""

import ast
import re
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from sparkwright.engines.wheels.syntax import literal

HUMAN_INT = (
    "max_model_len",
    "max_num_batched_tokens",
    "max_num_scheduled_tokens",
    "max_num_queued_tokens",
    "kv_cache_memory_bytes",
    "safetensors_prefetch_block_size",
)
MOST_BYTES, MOST_BYTES_OF_FILE = 400 << 20, 8 << 20
BOUNDS = ("ge", "gt", "le", "lt")
SEQUENCES = ("list", "tuple", "set", "List", "Sequence")


class Sources:
    """The parsed modules of a wheel and what their names mean, followed through imports.

    A wheel may come from anybody: it is read in bounds, and nothing of it is run.
    """

    def __init__(self, wheel: Path) -> None:
        """Raises OSError, or zipfile.BadZipFile for what is no wheel."""
        self._zip = zipfile.ZipFile(wheel)
        self._left = MOST_BYTES
        self._files = frozenset(self._zip.namelist())
        self.module = cache(self._module)
        self.names = cache(self._names)
        self.only_checked = cache(self._only_checked)

    def _module(self, name: str) -> ast.Module:
        base = name.replace(".", "/")
        path = next((p for p in (f"{base}.py", f"{base}/__init__.py") if p in self._files), "")
        return ast.parse(self.read(path)) if path else ast.Module([], [])

    def read(self, path: str) -> str:
        """One file's text. Raises KeyError for a file that is not there, ValueError past the bounds."""
        about = self._zip.getinfo(path)
        self._left -= about.file_size
        if about.file_size > MOST_BYTES_OF_FILE or self._left < 0:
            raise ValueError(f"{path[:200]}: larger than the sources of any engine")
        with self._zip.open(about) as file:
            return file.read(MOST_BYTES_OF_FILE).decode(errors="replace")

    def ends_with(self, suffix: str) -> list[str]:
        """Files of the wheel with this end of their path."""
        return sorted(name for name in self._files if name.endswith(suffix))

    def matches(self, pattern: str, besides: tuple[str, ...] = ()) -> set[str]:
        """Names in quotes anywhere in the Python sources, but for folders of another program.

        A few are no variables. That costs less than a name that a helper function reads and nobody finds.
        """
        quoted = re.compile(rf"""["']({pattern})["']""")
        names = (n for n in self._files if n.endswith(".py") and not any(f"/{part}/" in n for part in besides))
        return {word for name in names for word in quoted.findall(self.read(name))}

    def _names(self, module: str) -> dict[str, ast.AST]:
        """Top-level names. What is under TYPE_CHECKING reports more than what replaces it at run time (`_is_any`)."""
        found: dict[str, ast.AST] = {}
        for node in _flat(self.module(module).body):
            for name in _defined(node):
                known = found.get(name)
                if not (isinstance(known, ast.ImportFrom | ast.Assign) and _is_any(node)):
                    found[name] = node
        return found

    def _only_checked(self, module: str) -> frozenset[str]:
        """Names that exist for type checkers only: at run time something else is in for them."""
        blocks = [
            n for n in self.module(module).body if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.unparse(n.test)
        ]
        return frozenset(name for block in blocks for node in block.body for name in _defined(node))

    def resolve(self, module: str, name: str) -> tuple[str, ast.AST | None]:
        """(module, node) where a name is really defined; (module, None) outside the wheel."""
        node = self.names(module).get(name)
        if node is None:
            return next((r for r in self._starred(module, name) if r[1] is not None), (module, None))
        if isinstance(node, ast.ImportFrom):
            original = next(a.name for a in node.names if (a.asname or a.name) == name)
            return self.resolve(self._source(module, node), original)
        return module, node

    def _starred(self, module: str, name: str) -> Iterator[tuple[str, ast.AST | None]]:
        """The meanings of the name in modules imported as a whole (`from .types import *`)."""
        for node in self.module(module).body:
            if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
                yield self.resolve(self._source(module, node), name)

    def _source(self, module: str, node: ast.ImportFrom) -> str:
        is_package = f"{module.replace('.', '/')}/__init__.py" in self._files
        parents = module.split(".")[: len(module.split(".")) - node.level + (1 if is_package else 0)]
        return ".".join([*parents, *([node.module] if node.module else [])]) if node.level else node.module or ""

    def home(self, module: str, cls: str) -> str:
        return self.resolve(module, cls)[0]

    def class_node(self, module: str, name: str) -> ast.ClassDef:
        node = self.resolve(module, name)[1]
        return node if isinstance(node, ast.ClassDef) else ast.ClassDef(name, [], [], [], [])

    def bases(self, module: str, cls: str) -> list[str]:
        return [b.id for b in self.class_node(module, cls).bases if isinstance(b, ast.Name)]

    def fields(self, module: str, cls: str) -> Iterator[tuple[str, str, ast.AnnAssign]]:
        """(name, module to resolve in, node) of a dataclass's fields, inherited ones first."""
        for base in self.bases(module, cls):
            if base in self.names(module):
                yield from self.fields(self.home(module, base), base)
        for node in self.class_node(module, cls).body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and not _class_var(node):
                yield node.target.id, module, node

    def keys_of(self, module: str, name: str) -> list[str]:
        """String keys of a module-level dictionary."""
        node = self.resolve(module, name)[1]
        value = getattr(node, "value", None)
        keys = value.keys if isinstance(value, ast.Dict) else []
        return [k.value for k in keys if isinstance(k, ast.Constant) and isinstance(k.value, str)]


def describe(sources: Sources, module: str, name: str, node: ast.AnnAssign) -> dict[str, Any]:
    """kind (bool, value, list, json, maybe) with type, choices, known, keys, range and default as far as they apply."""
    hints = list(_hints(sources, module, node.annotation))
    row = _kind(sources, name, hints)
    row |= _default(sources, module, node.value)
    return row


def _kind(sources: Sources, name: str, hints: list[tuple[str, Any]]) -> dict[str, Any]:
    """The same order of questions as `_compute_kwargs`."""
    of = dict(hints)
    if "class" in of:
        return {"kind": "json", "keys": json_keys(sources, *of["class"])}
    if {"bool", "str", "None"} == set(of):
        return {"kind": "maybe", "type": "str"}
    if "bool" in of:
        return {"kind": "bool"}
    if "literal" in of:
        kind = type(of["literal"][0]).__name__
        return {"kind": "value", "type": kind, "known" if "str" in of else "choices": of["literal"]}
    if "sequence" in of:
        return {"kind": "list", **_elements(dict(of["sequence"]))}
    return _scalar(name, of)


def json_keys(sources: Sources, module: str, cls: str) -> dict[str, Any]:
    """Keys that a JSON option takes, with the values that a key is limited to (null: not limited)."""
    found = [f for f in sources.fields(module, cls) if not f[0].startswith("_")]
    return {name: _limited(list(_hints(sources, where, node.annotation))) for name, where, node in found}


def _limited(hints: list[tuple[str, Any]]) -> list[Any] | None:
    of = dict(hints)
    return of["literal"] if "literal" in of and set(of) <= {"literal", "None"} else None


def _scalar(name: str, of: dict[str, Any]) -> dict[str, Any]:
    for kind in ("int", "float"):
        if kind in of:
            return {"kind": "value", "type": "human-int" if name in HUMAN_INT else kind}
    if "dict" in of:
        return {"kind": "value", "type": "json-or-str"} if {"str", "other"} & set(of) else {"kind": "json"}
    return {"kind": "value", "type": "str", **({"known": of["enum"]} if "enum" in of else {})}


def _elements(of: dict[str, Any]) -> dict[str, Any]:
    if "literal" in of and "str" not in of:
        return {"type": type(of["literal"][0]).__name__, "choices": of["literal"]}
    return {"type": next((kind for kind in ("str", "int", "float") if kind in of), "str")}


def _hints(sources: Sources, module: str, node: ast.expr) -> Iterator[tuple[str, Any]]:
    """The members of a type: ("int", None), ("literal", values), ("sequence", hints), ("class", where) ..."""
    if isinstance(node, ast.Constant):
        yield from _constant(sources, module, node.value)
    elif isinstance(node, ast.BinOp):
        yield from _hints(sources, module, node.left)
        yield from _hints(sources, module, node.right)
    elif isinstance(node, ast.Subscript):
        yield from _subscript(sources, module, node)
    elif isinstance(node, ast.Name):
        yield from _named(sources, module, node.id)
    else:
        yield "other", None


def _constant(sources: Sources, module: str, value: object) -> Iterator[tuple[str, Any]]:
    if isinstance(value, str):  # a forward reference
        yield from _hints(sources, module, ast.parse(value, mode="eval").body)
    else:
        yield "None", None


def _subscript(sources: Sources, module: str, node: ast.Subscript) -> Iterator[tuple[str, Any]]:
    origin = node.value.id if isinstance(node.value, ast.Name) else getattr(node.value, "attr", "")
    inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if origin == "Literal":
        values = {v for part in inner for v in _literals(sources, module, part)}
        yield "literal", sorted(values, key=lambda v: (isinstance(v, str), v))
    elif origin in SEQUENCES:
        yield "sequence", list(_hints(sources, module, inner[0]))
    elif origin in ("Annotated", "SkipValidation"):
        yield from _hints(sources, module, inner[0])
    elif origin in ("Union", "Optional"):
        for part in inner:
            yield from _hints(sources, module, part)
        yield from [("None", None)] if origin == "Optional" else []
    else:
        yield ("dict", None) if origin in ("dict", "Mapping") else ("other", None)


def _literals(sources: Sources, module: str, node: ast.expr) -> list[Any]:
    """Values inside Literal[...]; an alias of another Literal is followed."""
    if isinstance(node, ast.Constant):
        return [node.value]
    found = dict(_hints(sources, module, node))
    return list(found.get("literal", []))


def _named(sources: Sources, module: str, name: str) -> Iterator[tuple[str, Any]]:
    if name in ("bool", "str", "int", "float"):
        yield name, None
        return
    if name in ("dict", "list", "set", "tuple"):
        yield ("dict", None) if name == "dict" else ("sequence", [("str", None)])
        return
    where, target = sources.resolve(module, name)
    if isinstance(target, ast.ClassDef):
        yield ("other", None) if name in sources.only_checked(module) else _class(where, target)
    elif isinstance(target, ast.Assign | ast.AnnAssign) and target.value is not None:
        yield from _hints(sources, where, target.value)
    else:
        yield "other", None


def _class(where: str, node: ast.ClassDef) -> tuple[str, Any]:
    bases = [ast.unparse(base) for base in node.bases]
    if any(base.startswith("dict[") for base in bases):
        return "dict", None
    if "IntEnum" in bases:
        return "enum", [
            s.value.value for s in node.body if isinstance(s, ast.Assign) and isinstance(s.value, ast.Constant)
        ]
    if any("Enum" in base for base in bases):
        members = [t.id for s in node.body if isinstance(s, ast.Assign) for t in s.targets if isinstance(t, ast.Name)]
        return "enum", [m for m in members if not m.startswith("_")]
    decorated = any("config" in ast.unparse(d) or "dataclass" in ast.unparse(d) for d in node.decorator_list)
    return ("class", (where, node.name)) if decorated else ("other", None)


def _default(sources: Sources, module: str, value: ast.expr | None) -> dict[str, Any]:
    """{"default": ...} where it is a literal or a literal's name, and {"range": ...} of a pydantic Field."""
    if isinstance(value, ast.Call):
        words = {k.arg: k.value for k in value.keywords}
        first = words.get("default") or (value.args[0] if value.args else None)
        bounds = {b: v for b in BOUNDS if b in words and (v := _value(sources, module, words[b])) is not None}
        return (_default(sources, module, first) if first else {}) | ({"range": bounds} if bounds else {})
    found = _value(sources, module, value)
    return {} if found is None else {"default": found}


def _value(sources: Sources, module: str, node: ast.expr | None) -> Any:
    if isinstance(node, ast.Name):
        where, target = sources.resolve(module, node.id)
        inner = getattr(target, "value", None)
        return _value(sources, where, inner) if inner is not None else None
    found = literal(node) if node is not None else None
    return found if isinstance(found, bool | int | float | str) else None


def _flat(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        if isinstance(node, ast.If | ast.Try):
            yield from _flat(node.body)
            yield from _flat(node.orelse)
        else:
            yield node


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [a.asname or a.name for a in node.names]
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [t.id for t in targets if isinstance(t, ast.Name)]


def _is_any(node: ast.stmt) -> bool:
    """`Any`, `object` or, in vLLM 0.27.1 and later, `str` in place of a list of names."""
    return isinstance(node, ast.Assign) and ast.unparse(node.value) in ("Any", "object", "str")


def _class_var(node: ast.AnnAssign) -> bool:
    return "ClassVar" in ast.unparse(node.annotation) or "init=False" in ast.unparse(node)
