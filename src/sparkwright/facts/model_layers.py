"""The kind of each layer of a model, from the keys by which the families of today's engines show it."""

import re
from collections.abc import Callable
from typing import Any

from sparkwright.domain.values import dataclass
from sparkwright.facts.model_values import (
    Config,
    first_mapping,
    first_text,
    known_values,
    mappings,
    number,
    numbers,
    texts_of,
)


def _table(name: str) -> Any:
    """One list or table of [layers] in models.toml."""
    return known_values("models")["layers"][name]


@dataclass(frozen=True, slots=True)
class Layers:
    """The words that the config uses, layer by layer, and what sort each is; both () when all layers are alike.

    Sorts: full, window, state, both (attention next to a state), sparse and dense (an FFN that is a layer of its own),
    none (a layer without attention).
    compress: tokens an entry, layer by layer.
    """

    words: tuple[str, ...] = ()
    sorts: tuple[str, ...] = ()
    compress: tuple[int, ...] = ()

    @property
    def odd(self) -> str:
        """The first word that is not known, '' when all are."""
        return next((word for word, sort in zip(self.words, self.sorts, strict=True) if not sort), "")

    def count(self, *sorts: str) -> int:
        return sum(1 for sort in self.sorts if sort in sorts)


def short_list(config: Config, count: int) -> str:
    """Name of a list with an entry for each layer that has fewer than the model has layers; '' if there is none."""
    return next((key for key in _table("each_layer") if 0 < len(texts_of(config.get(key))) < count), "")


def read(config: Config, count: int) -> Layers:
    """The layers of a model that has so many."""
    found = tuple(_words(config, count)[:count])
    return Layers(found, tuple(map(_sort, found)), _compress(config, found)[:count])


def listed(config: Config) -> int:
    """The number of layers that the config lists, for files without a count."""
    kinds = texts_of(config.get("layer_types")) or texts_of(config.get("layers_block_type"))
    return len(kinds) or len(_letters(config, 0))


def _words(config: Config, count: int) -> list[str]:
    ways: tuple[Callable[[Config, int], list[str]], ...] = (
        _kinds, _letters, _blocks, _marks, _ratios, _no_rope, _kimi, _numbers, _every, _from, _throughout,
    )  # fmt: skip
    return next(filter(None, (way(config, count) for way in ways)), [])


def _sort(kind: str) -> str:
    """The kind of layer of a word; '' if it is unknown."""
    sorts: dict[str, str] = _table("sorts")
    by_pattern = (sort for sort in ("state", "window", "full") if re.search(_table(sort), kind))
    return sorts.get(kind) or next(by_pattern, "")


def _kinds(config: Config, count: int) -> list[str]:
    if kinds := texts_of(config.get("layer_types")):
        return kinds
    # Zamba2 calls a block hybrid that has both; Inkling's layer_types mean attention by the same word.
    return ["mamba_attention" if kind == "hybrid" else kind for kind in texts_of(config.get("layers_block_type"))]


def _letters(config: Config, count: int) -> list[str]:
    letters = first_text(config, "hybrid_override_pattern", "sliding_window_pattern").replace("|", "")
    if len(letters) < count and "hybrid_override_pattern" not in config:  # EXAONE repeats its letters
        letters *= count
    known_letters: dict[str, str] = _table("letters")
    return [known_letters.get(letter, letter) for letter in letters]


def _blocks(config: Config, count: int) -> list[str]:
    """Nemotron's searched models (NAS) leave attention out of some layers."""
    return ["full_attention" if group else "no_attention" for group in groups_of_heads(config)]


def groups_of_heads(config: Config) -> list[int]:
    """Queries that share a KV head, block by block of such a model; 0: a block without attention."""
    parts = [first_mapping(block, "attention") for block in mappings(config.get("block_configs"))]
    return [number(attention, "n_heads_in_group") for attention in parts] if any(parts) else []


def _marks(config: Config, count: int) -> list[str]:
    kinds: dict[str, list[str]] = _table("marks")
    key = next((key for key in kinds if numbers(config.get(key))), "")
    return [kinds[key][bool(mark)] for mark in numbers(config.get(key))] if key else []


def _ratios(config: Config, count: int) -> list[str]:
    return ["full_attention" if ratio else "sliding_attention" for ratio in numbers(config.get("compress_ratios"))]


def _no_rope(config: Config, count: int) -> list[str]:
    """Llama 4: a layer with rope attends to its chunk only, the others to everything."""
    if not number(config, "attention_chunk_size") or number(config, "sliding_window", "sliding_window_size"):
        return []
    every = number(config, "no_rope_layer_interval")
    marks = numbers(config.get("no_rope_layers")) or [(n + 1) % every for n in range(count) if every]
    return ["chunked_attention" if mark else "full_attention" for mark in marks]


def _kimi(config: Config, count: int) -> list[str]:
    """Kimi's linear attention numbers the layers of each kind, from 1."""
    linear = first_mapping(config, "linear_attn_config")
    full, state = numbers(linear.get("full_attn_layers")), numbers(linear.get("kda_layers"))
    kinds = dict.fromkeys(state, "linear_attention") | dict.fromkeys(full, "full_attention")
    return [kinds.get(n, "not listed") for n in range(1, count + 1)] if kinds else []


def _numbers(config: Config, count: int) -> list[str]:
    kinds: dict[str, list[str]] = _table("numbered")
    key = next((key for key in kinds if isinstance(config.get(key), list)), "")
    chosen = numbers(config.get(key))
    return [kinds[key][n not in chosen] for n in range(count)] if key else []


def _every(config: Config, count: int) -> list[str]:
    """Every so many layers one attends to everything: the last of each group, unless another is named."""
    first = {"first": 0, "last": count - 1}.get(first_text(config, "_anchor"), -1)
    other, every = "sliding_attention", number(config, "sliding_window_pattern", "_sliding_window_pattern")
    every = every or number(config, "global_attn_every_n_layers")
    if interval := number(config, "full_attention_interval", "layer_group_size"):
        other, every = "linear_attention", interval
    if period := number(config, "attn_layer_period"):
        other, every, first = "mamba", period, number(config, "attn_layer_offset")
    return ["full_attention" if (n - first) % every == 0 else other for n in range(count)] if every else []


def _from(config: Config, count: int) -> list[str]:
    """Qwen2's classes: windows from one layer on, and only when they are switched on."""
    if config.get("use_sliding_window") is not True or not number(config, "sliding_window"):
        return []
    first = number(config, "max_window_layers")
    return ["full_attention" if n < first else "sliding_attention" for n in range(count)]


def _throughout(config: Config, count: int) -> list[str]:
    """Classes that have nothing else, in every layer: see models.toml."""
    kind = first_text(config, "_every_layer")
    # A window as long as the context leaves nothing out (Phi-3's long variants).
    wide = kind == "sliding_attention" and number(config, "sliding_window") >= number(config, "max_position_embeddings")
    usable = kind and not wide and (kind != "sliding_attention" or number(config, "sliding_window"))
    return [kind] * count if usable else []


def _compress(config: Config, found: tuple[str, ...]) -> tuple[int, ...]:
    if ratios := numbers(config.get("compress_ratios")):
        return tuple(ratios)
    rates = {**_table("compress"), **first_mapping(config, "compress_rates")}
    told = [number(rates, kind) for kind in found]
    return tuple(told) if any(told) else ()
