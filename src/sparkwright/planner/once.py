"""Work that several ask for with the same recipe, done once: nodes that are alike, and a search's many variants.

What is kept depends on a recipe's model, engine, split and limits, never on the size of its KV pool: that differs from
node to node, and a search over memory fractions asks for nothing else again.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from sparkwright.domain.recipe import Recipe

P = ParamSpec("P")
T = TypeVar("T")
_KEPT = 128  # a search of remedies asks for 20 to 70 recipes


class _Asked:
    """A recipe as far as the work reads it. Mappings are the same only where they are one: 1 and True are equal."""

    __slots__ = ("_hash", "_key", "recipe")

    def __init__(self, recipe: Recipe, limits: object) -> None:
        self.recipe = recipe
        self._key = (limits, recipe.nodes, recipe.parallelism, recipe.engine, recipe.model)
        mappings = id(recipe.flags), id(recipe.env), id(recipe.speculation)
        self._hash = hash((limits, recipe.nodes, recipe.parallelism, recipe.engine.version, mappings))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Asked):
            return NotImplemented
        mine, its = self.recipe, other.recipe
        one = mine.flags is its.flags and mine.env is its.env and mine.speculation is its.speculation
        return one and self._key == other._key


class OneObject(Generic[T]):
    """A key that equals another only if both are of one and the same object."""

    __slots__ = ("value",)

    def __init__(self, value: T) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OneObject) and self.value is other.value


def all_limits(recipe: Recipe) -> object:
    s = recipe.serving
    return s.context, s.sequences, s.batched_tokens, s.kv_dtype, recipe.loading.weight_cache


def compute_once(
    work: Callable[Concatenate[Recipe, P], T], limits: Callable[[Recipe], object] = all_limits
) -> Callable[Concatenate[Recipe, P], T]:
    """`work`, which must be pure and must not read `memory_fraction` or `kv_cache_bytes`; few results are kept.

    limits: what it reads of the recipe's limits; it is asked again only where that differs.
    """

    call: Callable[..., T] = work

    @lru_cache(maxsize=_KEPT)
    def remembered(asked: _Asked, rest: tuple[Any, ...]) -> T:
        return call(asked.recipe, *rest)

    def done(recipe: Recipe, /, *rest: P.args, **_: P.kwargs) -> T:
        return remembered(_Asked(recipe, limits(recipe)), rest)

    done.__doc__ = work.__doc__
    return done
