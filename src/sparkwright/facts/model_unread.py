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
from sparkwright.facts.model_values import WatchedConfig, known

_SHOWN = 3
STATE = re.compile(r"linear_(num_\w*heads|attn_config)$|(mamba_|ssm_)\w*(heads|state\w*)$")


@cache
def any_of(what: str) -> re.Pattern[str]:
    """A list of patterns of models.toml as one."""
    return re.compile("|".join(known("models")[what]))


def unasked(config: WatchedConfig) -> tuple[str, ...]:
    """Keys with a value that nothing asked for; sorted."""
    return tuple(sorted(key for key, value in config.peek().items() if value and key not in config.asked))


def odd(config: WatchedConfig) -> list[str]:
    """The unread keys that are not understood either."""
    kinds = any_of("understood"), any_of("irrelevant")
    return [key for key in unasked(config) if not any(kind.fullmatch(key) for kind in kinds)]


def known_family(architecture: str) -> bool:
    return any_of("families").match(re.sub(r"[^a-z0-9]", "", architecture.lower())) is not None


def not_counted(config: WatchedConfig, shape: ModelShape) -> dict[str, Any]:
    """ModelShape's fields `unread` and `loose`."""
    keys = [key for key in odd(config) if _sizes(config.peek()[key])]
    parts = [key for key in keys if any_of("decisive").fullmatch(key)]
    rough = any(any_of("sizing").fullmatch(key) for key in keys)
    strange = bool(shape.architecture) and not known_family(shape.architecture)
    stateless = not shape.state_layers and any(STATE.match(key) and value for key, value in config.peek().items())
    return {"unread": ",".join(parts[:_SHOWN])[:120], "loose": strange or rough or stateless or shape.loose}


def _sizes(value: Any) -> bool:
    """True if a value can be a size: no text, and no number that leaves everything as it is."""
    if isinstance(value, list):
        return any(isinstance(one, int) for one in value)
    return value is True or (isinstance(value, int | float) and value != 1)
