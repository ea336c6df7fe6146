"""Lists of names as a module's statements build them, evaluated without running anything."""

import ast
from collections.abc import Sequence
from typing import Any

from sparkwright.engines.wheels.sources import Sources
from sparkwright.engines.wheels.syntax import literal, name_of

Local = dict[str, ast.expr]


class Lists:
    """choices= of an option: literals, names, sums, `list(x)`, `x.keys()`, class attributes, members of an enum."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources

    def locals(self, body: Sequence[ast.stmt]) -> Local:
        """A function's own names and what they were set to."""
        assigns = [n for n in body if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name)]
        return {name_of(n.targets[0]): n.value for n in assigns}

    def choices(self, module: str, node: ast.expr, local: Local) -> list[str | int]:
        """The values, or an empty list when they cannot be reported. Sets are sorted: their order is nobody's."""
        found = self._value(module, node, local)
        if not found or not all(isinstance(v, str | int) for v in found):
            return []
        return list(dict.fromkeys(found))

    def _value(self, module: str, node: ast.expr, local: Local) -> list[Any] | None:
        if (plain := literal(node)) is not None:
            return sorted(plain) if isinstance(plain, set) else list(plain)
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            return [v for part in node.elts for v in self._element(module, part, local)]
        if isinstance(node, ast.Dict):
            return [literal(key) for key in node.keys if key is not None]
        if isinstance(node, ast.BinOp):
            left, right = self._value(module, node.left, local), self._value(module, node.right, local)
            return None if left is None or right is None else left + right
        if isinstance(node, ast.ListComp):
            members = self._members(module, node.generators[0].iter, local)
            return [m.lower() for m in members] if ".name.lower()" in ast.unparse(node.elt) else None
        return self._named(module, node, local)

    def _element(self, module: str, node: ast.expr, local: Local) -> list[Any]:
        if isinstance(node, ast.Starred):
            return self._value(module, node.value, local) or [None]
        node = local.get(name_of(node), node)
        return [v] if (v := literal(node)) is not None else [self._constant(module, node)]

    def _constant(self, module: str, node: ast.expr) -> Any:
        """The value of a module's name; a class's name that is only mentioned is not followed."""
        found = self.sources.resolve(module, name_of(node))[1]
        value = getattr(found, "value", None)
        return literal(value) if isinstance(value, ast.expr) else None

    def _named(self, module: str, node: ast.expr, local: Local) -> list[Any] | None:
        if isinstance(node, ast.Name):
            return self._value(module, local[node.id], local) if node.id in local else self._global(module, node.id)
        if isinstance(node, ast.Attribute):
            return self._attribute(module, node)
        if isinstance(node, ast.Call):
            return self._called(module, node, local)
        return None

    def _called(self, module: str, node: ast.Call, local: Local) -> list[Any] | None:
        """`list(x)`, `set(x)`, `sorted(x)`, `x.keys()`, and functions without arguments: their last `return`."""
        if isinstance(node.func, ast.Attribute) and node.func.attr == "keys":
            return self._value(module, node.func.value, local)
        if name_of(node.func) in ("list", "set", "frozenset", "sorted", "tuple") and node.args:
            return self._value(module, node.args[0], local)
        result, inside = self._returned(*self.sources.resolve(module, name_of(node.func)))
        return self._value(inside, result, {}) if result is not None else None

    def _returned(self, module: str, function: ast.AST | None) -> tuple[ast.expr | None, str]:
        """(last returned expression, module in which its name is known: a function may import it itself)."""
        if not isinstance(function, ast.FunctionDef) or not isinstance(function.body[-1], ast.Return):
            return None, module
        imports = [n for n in function.body if isinstance(n, ast.ImportFrom)]
        return function.body[-1].value, (imports[-1].module or module) if imports else module

    def _global(self, module: str, name: str) -> list[Any] | None:
        """A module's list with what the module itself adds to it afterwards."""
        where, node = self.sources.resolve(module, name)
        value = getattr(node, "value", None)
        found = self._value(where, value, {}) if isinstance(value, ast.expr) else None
        return None if found is None else found + self._added(where, name)

    def _added(self, module: str, name: str) -> list[Any]:
        found: list[Any] = []
        for node in self.sources.module(module).body:
            call = node.value if isinstance(node, ast.Expr) else None
            if isinstance(node, ast.AugAssign) and name_of(node.target) == name:
                found += self._value(module, node.value, {}) or []
            elif (
                isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and name_of(call.func.value) == name
            ):
                single = call.func.attr == "append"
                found += [literal(call.args[0])] if single else self._value(module, call.args[0], {}) or []
        return found

    def _attribute(self, module: str, node: ast.Attribute) -> list[Any] | None:
        """`Class.NAMES`: what the class's body sets it to, in terms of its other names."""
        owner = name_of(node.value)
        body = self.sources.class_node(module, owner).body
        own = self.locals(body) | {name_of(n.target): n.value for n in body if isinstance(n, ast.AnnAssign) and n.value}
        return self._value(self.sources.home(module, owner), own[node.attr], own) if node.attr in own else None

    def _members(self, module: str, node: ast.expr, local: Local) -> list[str]:
        """Names of an enum, given itself, as `list(Enum)`, or by a function that returns that."""
        if isinstance(node, ast.Call) and node.args:
            return self._members(module, node.args[0], local)
        if isinstance(node, ast.Call):
            result, inside = self._returned(*self.sources.resolve(module, name_of(node.func)))
            return self._members(inside, result, {}) if result is not None else []
        return list(self.locals(self.sources.class_node(module, name_of(node)).body))
