"""Keys of a config.json that nothing here asked for, and what they mean for the count of weights.

A key that sizes experts or FFNs can change the weights several times over (LongCat, Jamba and Zamba: two to five times
when theirs were not read), so the weights are then not known. Another key that looks like a size, or an architecture of
which nothing is known, makes the count a rough one. Which words say so stands in models.toml; the words were compared
with the classes of transformers 5.24, built and counted with such keys changed.
"""

import re
from functools import cache
from typing import Any

from sparkwright.domain.model import ModelShape
from sparkwright.facts.model_values import WatchedConfig, known_values

_SHOWN = 3  # keys of `unread`
_LONGEST = 120  # characters of them together
# Keys by which a config announces layers that keep a state
STATE = re.compile(r"linear_(num_\w*heads|attn_config)$|(mamba_|ssm_)\w*(heads|state\w*)$")


@cache
def list_pattern(what: str) -> re.Pattern[str]:
    """A list of models.toml as one pattern. what: the list's name."""
    return re.compile("|".join(known_values("models")[what]))


def unasked(config: WatchedConfig) -> tuple[str, ...]:
    """Keys with a value that nothing asked for; sorted."""
    return tuple(sorted(key for key, value in config.peek().items() if value and key not in config.asked))


def unexplained_keys(config: WatchedConfig) -> list[str]:
    """The unread keys that are not understood either."""
    kinds = list_pattern("understood"), list_pattern("irrelevant")
    return [key for key in unasked(config) if not any(kind.fullmatch(key) for kind in kinds)]


def known_family(architecture: str) -> bool:
    """True for an architecture, as config.json names it, whose family is listed in models.toml."""
    return list_pattern("families").match(re.sub(r"[^a-z0-9]", "", architecture.lower())) is not None


def not_counted(config: WatchedConfig, shape: ModelShape) -> dict[str, Any]:
    """ModelShape's fields: `unread`, keys without which the weights are not known, and `loose`, a rough count."""
    keys = [key for key in unexplained_keys(config) if _can_be_size(config.peek()[key])]
    parts = [key for key in keys if list_pattern("decisive").fullmatch(key)]
    rough = any(list_pattern("sizing").fullmatch(key) for key in keys)
    unknown_family = bool(shape.architecture) and not known_family(shape.architecture)
    stateless = not shape.state_layers and any(STATE.match(key) and value for key, value in config.peek().items())
    return {"unread": ",".join(parts[:_SHOWN])[:_LONGEST], "loose": unknown_family or rough or stateless or shape.loose}


def _can_be_size(value: Any) -> bool:
    """True for a value that can size something: neither text nor the number 1, a factor that changes nothing."""
    if isinstance(value, list):
        return any(isinstance(one, int) for one in value)
    return value is True or (isinstance(value, int | float) and value != 1)
