"""Our `dataclass` against the standard library's, which it replaces."""

import copy
import dataclasses
import pickle
from dataclasses import field
from typing import Any, ClassVar

import pytest

from sparkwright.domain import values

Maker = Any


def point_class(dataclass: Maker) -> Any:
    @dataclass(frozen=True, slots=True)
    class Point:
        x: int
        y: float = 2.0
        tags: list[str] = field(default_factory=list, compare=False)
        secret: str = field(default="", repr=False)
        made: int = field(default=7, init=False)
        KIND: ClassVar[str] = "point"

        @property
        def total(self) -> float:
            return self.x + self.y

    return Point


@values.dataclass(frozen=True, slots=True)
class Base:
    name: str

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("no name")


@values.dataclass(frozen=True, slots=True)
class Derived(Base):
    parts: tuple[int, ...] = ()
    inner: "Derived | None" = None


@values.dataclass(frozen=True, slots=True)
class Same:
    """All are equal, and called so."""

    x: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same)

    def __repr__(self) -> str:
        return "same"


def ask_both(ask: Any) -> list[Any]:
    """The answers of `ask` for a class of either kind; an error counts as its type and text."""
    found = []
    for maker in (dataclasses.dataclass, values.dataclass):
        try:
            found.append(ask(point_class(maker)))
        except Exception as error:
            found.append((type(error), str(error)))
    return found


@pytest.mark.parametrize(
    "ask",
    [
        lambda P: repr(P(1)),
        lambda P: repr(P(1, 3.0, ["a"], secret="s")),
        lambda P: (P(1) == P(1, tags=["other"]), P(1) == P(2), P(1) != P(1, 2.5), P(1) == (1, 2.0)),
        lambda P: hash(P(1)) == hash(P(1, tags=["other"])),
        lambda P: hash(P(1)) == hash((1, 2.0, "", 7)),
        lambda P: P(1).tags is P(1).tags,
        lambda P: dataclasses.asdict(P(1, tags=["a"])),
        lambda P: dataclasses.replace(P(1), y=9.0).total,
        lambda P: dataclasses.replace(P(1), made=9),
        lambda P: [f.name for f in dataclasses.fields(P)],
        lambda P: P.__match_args__,
        lambda P: P.__slots__,
        lambda P: P(),
        lambda P: P(1, 2.0, [], "", 7),
        lambda P: P(1, z=2),
        lambda P: setattr(P(1), "x", 2),
        lambda P: delattr(P(1), "x"),
        lambda P: hasattr(P(1), "__dict__"),
        lambda P: (copy.copy(P(1)), copy.deepcopy(P(1, tags=["a"])).tags) == (P(1), ["a"]),
    ],
)
def test_it_does_what_the_standard_librarys_does(ask: Any) -> None:
    """Text, comparison, hash, copies and refusals are the same, so no class notices the exchange."""
    theirs, ours = ask_both(ask)
    assert ours == theirs


def test_derived_classes_and_pickle() -> None:
    """Fields of a base come first, its checks run, and a value survives a process boundary."""
    one = Derived("a", (1, 2), Derived("b"))
    assert pickle.loads(pickle.dumps(one)) == one
    assert repr(one) == "Derived(name='a', parts=(1, 2), inner=Derived(name='b', parts=(), inner=None))"
    assert Base("a") != Derived("a")
    with pytest.raises(ValueError, match="no name"):
        Derived("")


def test_what_a_class_defines_itself_stays() -> None:
    """Own comparison and text are not replaced; the hash is added as the standard library does."""
    assert Same(1) == Same(2)
    assert repr(Same(1)) == "same"
    assert hash(Same(1)) == hash((1,))


def test_other_forms_are_the_standard_librarys() -> None:
    """A class that can change keeps its assignment."""

    @values.dataclass
    class Open:
        x: int

    one = Open(1)
    one.x = 2
    assert (one.x, dataclasses.is_dataclass(Open)) == (2, True)


@values.dataclass(frozen=True, slots=True)
class ChangedValue:
    left: int
    right: tuple[int, ...] = ()


@pytest.mark.parametrize("changes", [{}, {"left": 3}, {"right": (4,)}, {"middle": 1}])
def test_a_changed_copy_is_the_standard_librarys(changes: Any) -> None:
    """Guards the quicker `replace`: the same copy, and the same refusal of a field that is not there."""
    found = []
    for replace in (dataclasses.replace, values.replace):
        try:
            found.append(replace(ChangedValue(1, (2,)), **changes))
        except TypeError as error:
            found.append(str(error))
    assert found[0] == found[1]
    assert isinstance(found[1], str) == ("middle" in changes)


@pytest.mark.parametrize("made", [point_class(values.dataclass)(1), 7])
def test_a_copy_with_fields_that_are_no_arguments(made: Any) -> None:
    """Guards classes that the quicker way does not know: theirs are the standard library's copy and its refusal."""
    found = []
    for replace in (dataclasses.replace, values.replace):
        try:
            found.append(replace(made, x=5))
        except TypeError as error:
            found.append(str(error))
    assert found[0] == found[1]
