"""Values of a model's config.json: what its class fills in, and its tables next to the vocabulary.

Any key may hold anything: what is not as expected counts as not given. A token needs single rows of the tables; the
formulas are from the classes of vLLM 0.33.0 and SGLang 0.5.23. In one of these, such tables are 30 to 130 % of
everything else: a config that names tables in a way not known here must not pass for one without.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

Config = Mapping[str, Any]
_TELLING = re.compile(r"(ngram|engram|ple|oe|over_encoding|per_layer_embed\w*)_\w+|hidden_size_per_layer_input")
_FORMATS = {"float8_e4m3fn": "fp8", "nvfp4": "nvfp4"}


class WatchedConfig(Mapping[str, Any]):
    """A config and the keys that were asked for; other spellings of a key count as asked with it."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self.asked: set[str] = set()

    def __getitem__(self, key: str) -> Any:
        self.asked.add(key)
        return self._config[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._config)

    def peek(self) -> Config:
        """The config itself; reading it here asks for nothing."""
        return self._config

    def __len__(self) -> int:
        return len(self._config)


def number(config: Config, *names: str) -> int:
    """The first of the keys that holds a whole number above 0; 0 when none does."""
    values = [config.get(name) for name in names]
    return next((v for v in values if isinstance(v, int) and not isinstance(v, bool) and v > 0), 0)


def numbers(value: Any) -> list[int]:
    """The whole numbers of a list, 0 and above; an empty list for what is none."""
    listed = value if isinstance(value, list) else []
    return [v for v in listed if isinstance(v, int) and not isinstance(v, bool) and v >= 0]


def mappings(value: Any) -> list[Config]:
    """The mappings of a list; an empty list for what is none."""
    return [v for v in value if isinstance(v, Mapping)] if isinstance(value, list) else []


def texts_of(value: Any) -> list[str]:
    """The entries of a list as text; an empty list for what is none."""
    return [str(v) for v in value] if isinstance(value, list) else []


def first_text(config: Config, *names: str) -> str:
    """The first of the keys that holds text; '' when none does."""
    return next((v for v in [config.get(name) for name in names] if isinstance(v, str)), "")


def first_mapping(config: Config, *names: str) -> Config:
    """The first of the keys that holds a mapping; an empty one when none does."""
    return next((v for v in [config.get(name) for name in names] if isinstance(v, Mapping)), {})


_DEEP, _WIDE = 256, 1 << 16  # layers and widths of no encoder; beyond them a number is an error


@cache
def known_values(name: str) -> Mapping[str, Any]:
    """facts/NAME.toml."""
    return tomllib.loads((files("sparkwright.facts") / f"{name}.toml").read_text(encoding="utf-8"))


@cache
def spellings(what: str) -> tuple[str, ...]:
    """The keys of a config.json that mean this, by [keys] of models.toml."""
    return tuple(known_values("models")["keys"][what])


def number_of(config: Config, what: str) -> int:
    """The number under any spelling of the key; 0 without it."""
    return number(config, *spellings(what))


def complete(config: Config) -> Config:
    """The config with what its class would fill in; null counts as left out."""
    said = {key: value for key, value in config.items() if value is not None}
    return {**known_values("models")["classes"].get(first_text(said, "model_type"), {}), **said}


def tables(config: Config) -> dict[str, Any]:
    """ModelShape's fields about tables."""
    found = next(filter(None, (kind(config) for kind in (_per_layer, _ngram, _engram, _ratio))), {})
    return found or {"tables_unknown": bool(table_keys(config))}


def table_keys(config: Config) -> list[str]:
    """Keys that speak of such tables; none where a list shows that no layer has one."""
    told = [key for key in config if _TELLING.fullmatch(key)]
    if any(key.endswith("_layer_ids") and not config[key] for key in told):
        return []
    return sorted(key for key in told if config[key])


def _per_layer(config: Config) -> dict[str, Any]:
    """A second embedding for every layer (Gemma 3n and 4, E models), in the numbers of the first."""
    width, words = number(config, "hidden_size_per_layer_input"), number(config, "vocab_size_per_layer_input")
    total = width * (words or number(config, "vocab_size")) * number(config, "num_hidden_layers")
    return {"tables": total, "table_format": "bf16"} if total else {}


def _ngram(config: Config) -> dict[str, Any]:
    """Tables of the last n tokens (Qwen4Exp): each of their heads has so many rows, and a part of the width.

    ple_embedding_dtype names their numbers; without it they are as the checkpoint wrote them. The class fills in sizes.
    """
    size, rows = number(config, "ngram_size") or 3, number(config, "ngram_vocab_size_base") or 20_000_000
    width = number(config, "ple_embed_dim", "hidden_size")
    layers = len(numbers(config.get("ple_layer_ids")))
    heads = (size - 1) * (number(config, "heads_per_ngram") or 8)
    if not layers or heads < 1:
        return {}
    written = _FORMATS.get(first_text(config, "ple_embedding_dtype"), "")
    return {"tables": layers * heads * rows * (width // heads), "table_format": written}


def _engram(config: Config) -> dict[str, Any]:
    """Engram (DeepSeek-V4.1): rows of FP8 with a scale for 32 numbers, a table for each of some layers."""
    rows, width = numbers(config.get("engram_num_embeddings")), number(config, "engram_head_dim")
    return {"tables": sum(rows) * width, "table_format": "mxfp8"} if sum(rows) * width else {}


def _ratio(config: Config) -> dict[str, Any]:
    """The rows of a multiple of the vocabulary, over all of its heads as wide as the model (LongCat's n-grams)."""
    times = number(config, "ngram_vocab_size_ratio")
    rows, width = times * number(config, "vocab_size"), number(config, "hidden_size")
    return {"tables": rows * width, "table_format": "bf16"} if rows * width else {}


def encoder(config: Config) -> int:
    """Millions of numbers in an encoder of images or sound by its own configuration; 0 where that lacks its sizes.

    Attention and an ungated FFN, as nearly all have; patches and projector are beside them next to nothing.
    """
    layers = number(config, "depth", "num_hidden_layers", "n_layers", "encoder_layers", "num_layers")
    width = number(config, "hidden_size", "d_model", "embed_dim", "width")
    ffn = number(config, "intermediate_size", "encoder_ffn_dim", "mlp_dim", "ffn_dim")
    sane = layers <= _DEEP and max(width, ffn) <= _WIDE and ffn
    return layers * (4 * width**2 + 2 * width * ffn) // 10**6 if sane else 0
