"""What a config.json says that is not understood here: then a figure made from it is a bound, and must say so."""

import json
import re
from collections.abc import Iterator, Mapping

from sparkwright.domain.facts import Unknown
from sparkwright.domain.model import ModelShape
from sparkwright.facts.config_values import Config, number, part, words
from sparkwright.facts.model_tables import named

# Words by which new kinds of attention announce themselves.
_TELLING = re.compile(r"compress|latent|lora_rank|ssm|mamba|linear_|indexer|index_|sparse|kv_|swa_|state_|window|chunk")
_UNDERSTOOD = re.compile(
    r"(q|kv|o)_lora_rank|(num|n)_(global_)?(kv|key_value)\w*|num_kv_shared_layers|first_kv_shared_layer\w*"
    r"|compress_(ratios|rates|rope_theta|rate_\w+)|kv_source_layer_ids|kv_source_layers|kv_channels|index_\w+|indexer_\w+|sparse_attention_config"
    r"|(num_)?linear_\w+|mamba_\w+|ssm_\w+|use_mamba_kernels|moe_latent_size|latent_moe_use_norm|decoder_sparse_step"
    r"|swa_\w+|(use_|_)?sliding_window\w*|n_mamba_heads|max_window_layers|attention_chunk_size|chunk_size\w*|attention_k_eq_v"
    r"|add_swa_\w+|(no_)?kv_\w*(scale|dtype|quant)\w*|window_size|qkv_\w+|use_qkv_\w+|mamba2?_\w+|kv_cache_\w+"
)
# Families of which it is known what their layers keep for a token: of plain attention unless their configs say more.
_FAMILIES = re.compile(
    r"afmoe|apertus|aquila|arcee|arctic|axk|bagel|baichuan|bailing|bamba|bloom|chameleon|chatglm|cohere|command|cwm|dbrx"
    r"|deci|deepseek|dots|emu3|ernie|exaone|falcon|flexolmo|gemma|glm|gpt|granite|grok|h2ovl|hunyuan|hyv|hyperclovax"
    r"|idefics|inkling|intern|iquest|jais|jamba|kanana|keye|kimi|laguna|lfm|llama|llava|longcat|mamba|mellum|mimo"
    r"|minicpm|minimax|ministral|mistral|mixtral|mllama|molmo|mpt|muse|nemotron|olmo|opt|orion|ovis|paligemma|persimmon"
    r"|phi|pixtral|plamo|qwen|rnj|sarvam|seedoss|skywork|smol|solar|stablelm|starcoder|step|telechat|tele|xverse|zamba"
)
_STATE = re.compile(r"linear_(num_\w*heads|attn_config)$|(mamba_|ssm_)\w*(heads|state\w*)$")
_NESTED = ("text_config", "llm_config", "language_config", "thinker_config")
_SHOWN = 3


def doubts(text: str, shape: ModelShape | Unknown | None) -> tuple[str, ...]:
    """Sentences for the user. A text that is no JSON object is another flaw."""
    if isinstance(shape, Unknown) and (_config(text) or not text):
        return (shape.why,)
    if not isinstance(shape, ModelShape):
        return ()
    return tuple(_doubts(_config(text), shape))


def _config(text: str) -> Config:
    try:
        top = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return {**top, **part(top, *_NESTED)} if isinstance(top, Mapping) else {}


def _doubts(config: Config, shape: ModelShape) -> Iterator[str]:
    if shape.architecture and not _FAMILIES.match(re.sub(r"[^a-z0-9]", "", shape.architecture.lower())):
        yield f"the architecture {shape.architecture} is not known: counted as plain attention, the most that it keeps"
    if shape.state_layers and not (shape.state_matrix or shape.state_conv_width):
        yield f"{shape.state_layers} layers keep a state whose size it does not tell: none is counted for them"
    if not shape.state_layers and any(_STATE.match(key) and config[key] for key in config):
        yield "state layers, but not which: all are counted as attention"
    window = number(config, "sliding_window", "sliding_window_size")
    switched_off = config.get("use_sliding_window") is False
    told = switched_off or shape.window_layers or shape.compress or words(config.get("layer_types"))
    if 0 < window < shape.positions and not told:
        yield f"a window of {window} tokens, but not of which layers: all are counted with the whole context"
    if shape.index_dim and not shape.index_layers:
        yield "an indexer, but not in which layers: none is counted"
    if shape.tables_unknown:
        yield f"tables beside the vocabulary ({', '.join(named(config)[:_SHOWN])}), but not how large: none is counted"
    odd = sorted(key for key in config if _TELLING.search(key) and not _UNDERSTOOD.fullmatch(key) and config[key])
    if odd:
        more = f" and {len(odd) - _SHOWN} more" if len(odd) > _SHOWN else ""
        yield f"keys that are not understood here: {', '.join(odd[:_SHOWN])[:120]}{more}"
