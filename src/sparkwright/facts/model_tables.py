"""A model's tables beside its vocabulary, of which a token needs single rows: how many numbers they are.

Formulas: vLLM's and SGLang's classes of each family (0.33.0, 0.5.23). In one of these, such tables are 30 to 130 % of
everything else: a config that names tables in a way not known here must not pass for one without.
"""

import re
from typing import Any

from sparkwright.facts.config_values import Config, number, numbers, word

_TELLING = re.compile(r"(ngram|engram|ple|oe|over_encoding|per_layer_embed\w*)_\w+|hidden_size_per_layer_input")
_FORMATS = {"float8_e4m3fn": "fp8", "nvfp4": "nvfp4"}


def tables(config: Config) -> dict[str, Any]:
    """ModelShape's fields about tables."""
    found = next(filter(None, (kind(config) for kind in (_per_layer, _ngram, _engram, _ratio))), {})
    return found or {"tables_unknown": bool(named(config))}


def named(config: Config) -> list[str]:
    """Keys that speak of such tables; none where a list says that no layer has one."""
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
    """Tables of the last words (Qwen4Exp): each of their heads has so many rows, and a part of the width.

    ple_embedding_dtype names their numbers; without it they are as the checkpoint wrote them. The class fills in sizes.
    """
    size, rows = number(config, "ngram_size") or 3, number(config, "ngram_vocab_size_base") or 20_000_000
    width = number(config, "ple_embed_dim", "hidden_size")
    layers = len(numbers(config.get("ple_layer_ids")))
    heads = (size - 1) * (number(config, "heads_per_ngram") or 8)
    if not layers or heads < 1:
        return {}
    written = _FORMATS.get(word(config, "ple_embedding_dtype"), "")
    return {"tables": layers * heads * rows * (width // heads), "table_format": written}


def _engram(config: Config) -> dict[str, Any]:
    """Engram (DeepSeek-V4.1): rows of FP8 with a scale for 32 numbers, a table for each of some layers."""
    rows, width = numbers(config.get("engram_num_embeddings")), number(config, "engram_head_dim")
    return {"tables": sum(rows) * width, "table_format": "mxfp8"} if sum(rows) * width else {}


def _ratio(config: Config) -> dict[str, Any]:
    """As many rows as so many vocabularies, over all of its heads as wide as the model (LongCat's n-grams)."""
    times = number(config, "ngram_vocab_size_ratio")
    rows, width = times * number(config, "vocab_size"), number(config, "hidden_size")
    return {"tables": rows * width, "table_format": "bf16"} if rows * width else {}
