"""`@dataclass(frozen=True, slots=True)` at a fraction of its start-up cost.

The standard library compiles six functions for each such class when it is defined: of the CPU time that a program of
ours needed before its first line ran, that was half (some 400 classes, Python 3.11). Here five are shared, and
`__init__` is compiled when a class gets its first instance. Every other form of `dataclass` is the standard library's.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError
from dataclasses import asdict as asdict
from dataclasses import field as field
from dataclasses import fields as fields
from dataclasses import is_dataclass as is_dataclass
from functools import cache
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from dataclasses import replace as replace
else:

    def replace(one: Any, /, **changes: Any) -> Any:
        """`dataclasses.replace` that looks up the fields of a class once: a refused plan calls it 2,000 times."""
        names, read = _copied(type(one))
        if not names:
            return dataclasses.replace(one, **changes)
        return type(one)(**{**dict(zip(names, read(one), strict=True)), **changes})

    def dataclass(cls: Any = None, /, **asked: bool) -> Any:
        """A drop-in replacement, also for `fields`, `replace`, `asdict`, pickle and copy."""
        if asked == {"frozen": True, "slots": True}:
            return _make_value_class if cls is None else _make_value_class(cls)
        return dataclasses.dataclass(cls, **asked)


@cache
def _copied(cls: type) -> tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]]]:
    """Names of the fields that a copy takes over and their reader; no names where not every field is an argument."""
    found = fields(cls) if is_dataclass(cls) else ()
    names = tuple(one.name for one in found) if all(one.init for one in found) else ()
    return names, _reader_of(list(names))


_ABSENT = object()  # stands for an argument that was left out, where a factory makes the default


def _make_value_class(cls: Any) -> Any:
    """The class with slots and methods that are shared closures over its fields' names; its own methods win."""
    own = set(cls.__dict__)
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    found = fields(made)
    compared = _reader_of([f.name for f in found if f.compare])
    hashed = _reader_of([f.name for f in found if (f.compare if f.hash is None else f.hash)])
    shared: dict[str, Callable[..., Any]] = {
        "__init__": _first_init(made),
        "__repr__": _repr_of([f.name for f in found if f.repr]),
        "__eq__": lambda self, other: (
            compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented
        ),
        "__hash__": lambda self: hash(hashed(self)),
        "__setattr__": _refuse_set,
        "__delattr__": _refuse_delete,
        "__getstate__": lambda self: [getattr(self, f.name) for f in found],
        "__setstate__": lambda self, state: _restore(self, [f.name for f in found], state),
    }
    if "__eq__" in own and "__hash__" in own and cls.__dict__["__hash__"] is None:
        own.discard("__hash__")  # Python sets it to None in a class that defines `__eq__` only
    for name in shared.keys() - own:
        setattr(made, name, shared[name])
    return made


def _reader_of(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Reads these fields as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda one: tuple(getattr(one, name) for name in names)


def _repr_of(names: list[str]) -> Callable[[Any], str]:
    @recursive_repr()
    def text(self: Any) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return text


def _refuse_set(self: Any, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_delete(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _restore(one: object, names: list[str], state: list[object]) -> None:
    for name, value in zip(names, state, strict=True):
        object.__setattr__(one, name, value)


def _first_init(cls: type) -> Callable[..., None]:
    """An `__init__` that puts the compiled one in its own place at the first instance."""

    def init(self: Any, *given: Any, **named: Any) -> None:
        made = _compile_init(cls)
        type.__setattr__(cls, "__init__", made)
        made(self, *given, **named)

    return init


def _compile_init(cls: Any) -> Callable[..., None]:
    """Compiles the `__init__` that `dataclass` would have made when the class was defined."""
    space: dict[str, Any] = {"_set": object.__setattr__, "_absent": _ABSENT}
    words, lines = ["self"], []
    for one in fields(cls):
        name, value, default = one.name, one.name, ""
        if one.default_factory is not MISSING:
            space[f"_make_{name}"], default = one.default_factory, "=_absent"
            value = f"_make_{name}() if {name} is _absent else {name}" if one.init else f"_make_{name}()"
        elif one.default is not MISSING:
            space[f"_default_{name}"], default = one.default, f"=_default_{name}"
            value = name if one.init else f"_default_{name}"
        words += [f"{name}{default}"] if one.init else []
        lines += [f"_set(self, {name!r}, {value})"] if one.init or default else []
    lines += ["self.__post_init__()"] if hasattr(cls, "__post_init__") else []
    body = "\n  ".join(lines or ["pass"])
    exec(f"def __init__({', '.join(words)}):\n  {body}", space)
    init: Callable[..., None] = space["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    return init
