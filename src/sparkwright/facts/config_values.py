"""Values of a model's config.json, where any key may hold anything: what is not as expected counts as not said."""

from collections.abc import Mapping
from typing import Any

Config = Mapping[str, Any]


def number(config: Config, *names: str) -> int:
    """The first of the keys that holds a whole number above 0; 0 when none does."""
    values = (config.get(name) for name in names)
    return next((v for v in values if isinstance(v, int) and not isinstance(v, bool) and v > 0), 0)


def numbers(value: Any) -> list[int]:
    """The whole numbers of a list, 0 and above; an empty list for what is none."""
    listed = value if isinstance(value, list) else []
    return [v for v in listed if isinstance(v, int) and not isinstance(v, bool) and v >= 0]


def mappings(value: Any) -> list[Config]:
    """The mappings of a list; an empty list for what is none."""
    return [v for v in value if isinstance(v, Mapping)] if isinstance(value, list) else []


def words(value: Any) -> list[str]:
    """The entries of a list as text; an empty list for what is none."""
    return [str(v) for v in value] if isinstance(value, list) else []


def word(config: Config, *names: str) -> str:
    """The first of the keys that holds text; '' when none does."""
    return next((v for name in names if isinstance(v := config.get(name), str)), "")


def part(config: Config, *names: str) -> Config:
    """The first of the keys that holds a mapping; an empty one when none does."""
    return next((v for name in names if isinstance(v := config.get(name), Mapping)), {})
