"""config.json of a model, of any family that today's engines serve -> ModelShape. Never from a name.

Keys and what their absence means: the configuration classes of Hugging Face transformers, vLLM 0.33.0 and SGLang
0.5.23, read as files of the families in tests/data/models. What no key says stays 0 or ''; without layers and heads the
model is Unknown, and so it is with a kind of layer that is not known here.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from sparkwright.domain.facts import Unknown
from sparkwright.domain.model import ModelShape
from sparkwright.facts import model_layers
from sparkwright.facts.config_values import Config, number, part
from sparkwright.facts.model_attention import HEADS, attention
from sparkwright.facts.model_defaults import complete
from sparkwright.facts.model_ffn import ffn
from sparkwright.facts.model_index import index
from sparkwright.facts.model_layers import Layers
from sparkwright.facts.model_state import state
from sparkwright.facts.model_tables import tables
from sparkwright.facts.model_weights import weights

_NESTED = ("text_config", "llm_config", "language_config", "thinker_config")
_LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
_DRAFTS = ("num_nextn_predict_layers", "num_mtp_modules", "mtp_num_hidden_layers", "num_mtp_layers", "n_mtp_layers")
_POSITIONS = ("max_position_embeddings", "n_positions", "max_sequence_length", "seq_length", "max_seq_len",
              "model_max_length")  # fmt: skip
_DSPARK = ("dspark_block_size", "dspark_target_layer_ids")
_SENSES = re.compile(r"(vision|audio|visual|speech|sound)(_tower|_encoder)?(_config|_n_layers)")
# Kinds of rope scaling whose factor an engine applies to the length (vLLM 0.21.0, transformers_utils/config.py).
_STRETCHING = ("yarn", "linear", "dynamic", "deepseek_yarn")
_FARTHEST = 1024.0
_SHOWN = 200
MOST_LAYERS = 10_000  # they are counted one by one


def parse(text: str, quantization: str = "") -> ModelShape | Unknown:
    """The shape, or Unknown with what is missing. Never raises.

    quantization: of hf_quant_config.json, where ModelOpt's older files keep what config.json does not say.
    """
    top = mapping(text)
    if isinstance(top, Unknown):
        return top
    beside = mapping(quantization)
    if isinstance(beside, Mapping) and not part(top, "quantization_config"):
        top = {**top, "quantization_config": {"quant_method": "modelopt", **beside}}
    config = complete({**_common(top), **_language(top)})
    count = number(config, *_LAYERS) or model_layers.listed(config)
    if not count or not number(config, *HEADS):
        return Unknown(_architecture(top), "config.json says neither how many layers nor how many heads")
    if count > MOST_LAYERS:
        return Unknown(_architecture(top), f"config.json says more than {MOST_LAYERS} layers; no model has so many")
    layers = model_layers.read(config, count)
    if layers.odd:
        return Unknown(
            _architecture(top), f"config.json names a kind of layer that is not known here: {layers.odd[:40]}"
        )
    return _shape(top, config, layers, count)


def mapping(text: str) -> Config | Unknown:
    """The JSON object, or Unknown with what it is instead."""
    try:
        top = json.loads(text)
    except (ValueError, RecursionError):
        return Unknown(text[:_SHOWN], "config.json is no JSON")
    return top if isinstance(top, Mapping) else Unknown(text[:_SHOWN], "config.json is no mapping")


def _shape(top: Config, config: Config, layers: Layers, count: int) -> ModelShape:
    drafts = number(config, *_DRAFTS)
    return ModelShape(
        architecture=_architecture(top),
        layers=count,
        hidden=number(config, "hidden_size", "n_embd", "d_model"),
        vocab=number(config, "vocab_size"),
        positions=_positions(config),
        tied=bool(config.get("tie_word_embeddings", False)),
        mtp_layers=drafts,
        draft_architecture="DSpark" if any(config.get(key) for key in _DSPARK) else "MTP" if drafts else "",
        senses=any(_SENSES.fullmatch(key) and value for key, value in top.items()),
        full_layers=layers.count("full", "both") or number(config, "_attentions_per_layer") * count,
        window_layers=layers.count("window"),
        compress=layers.compress,
        **attention(config, layers),
        **index(config, layers, count),
        **state(config, layers),
        **ffn(config, layers, count),
        **tables(config),
        **weights(top, config, count),
    )


def _language(top: Config) -> Config:
    """The part that is about text: models that also see or hear nest it."""
    inner = part(top, *_NESTED)
    return top if not inner or number(top, *_LAYERS) else _language(inner)


def _common(top: Config) -> Config:
    """What models of several parts may say once for all of them."""
    return {key: top[key] for key in ("tie_word_embeddings", "vocab_size", "torch_dtype", "dtype") if key in top}


def _positions(config: Config) -> int:
    """As vLLM derives it: where the scaling starts from a length of its own, that times its factor."""
    plain = number(config, *_POSITIONS)
    scaling = part(config, "rope_scaling") or part(config, "rope_parameters")
    factor = scaling.get("factor")
    kind = scaling.get("rope_type", scaling.get("type"))
    if kind not in _STRETCHING or not isinstance(factor, int | float) or not factor > 1:
        return plain
    return max(plain, int((number(scaling, "original_max_position_embeddings") or plain) * min(factor, _FARTHEST)))


def _architecture(top: Config) -> str:
    names: Any = top.get("architectures")
    first = names[0] if isinstance(names, list) and names else ""
    return first[:_SHOWN] if isinstance(first, str) and re.fullmatch(r"\S+", first) else ""
