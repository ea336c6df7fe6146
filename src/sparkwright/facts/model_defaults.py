"""What the configuration classes fill in where a config.json leaves it out, for families whose files do.

By model_type, which names the class and not the model. From the classes of Hugging Face transformers (5.23).
"""

from typing import Any

from sparkwright.facts.config_values import Config, word

_GEMMA = {"tie_word_embeddings": True, "head_dim": 256}
_DELTA = {"full_attention_interval": 4, "linear_conv_kernel_dim": 4, "head_dim": 256}
_GEMMA4 = {**_GEMMA, "sliding_window_pattern": 6, "global_head_dim": 512}
_FIRST_OF_FOUR = {"sliding_window_pattern": 4, "_anchor": "first"}
_LAST_OF_FOUR = {"sliding_window_pattern": 4, "_anchor": "last", "sliding_window": 2048}
_WINDOWS = {"_every_layer": "sliding_attention"}
_CLASSES: dict[str, dict[str, Any]] = {
    "gemma": _GEMMA,
    "gemma2": {**_GEMMA, "sliding_window_pattern": 2, "sliding_window": 4096},
    "gemma3_text": {
        **_GEMMA,
        "sliding_window_pattern": 6,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "vocab_size": 262208,
        "max_position_embeddings": 131072,
    },
    "gemma3n_text": {**_GEMMA, "sliding_window_pattern": 5, "num_kv_shared_layers": 15},
    "gemma4_text": _GEMMA4,
    "gemma4_unified_text": _GEMMA4,
    "diffusion_gemma_text": _GEMMA4,
    "vaultgemma": {**_GEMMA, "sliding_window_pattern": 2},
    "cohere2": {"sliding_window_pattern": 4, "tie_word_embeddings": True},
    "gpt_oss": {"sliding_window_pattern": 2, "sliding_window": 128, "head_dim": 64},
    "olmo3": {"sliding_window_pattern": 4},
    "kolibri1": {"sliding_window_pattern": 5},
    "granite_swa": _FIRST_OF_FOUR,
    "granitemoe_swa": _FIRST_OF_FOUR,
    "cwm": _FIRST_OF_FOUR,
    "muse_glimmer_text": _LAST_OF_FOUR,
    "muse_spark_text": _LAST_OF_FOUR,
    "afmoe": {"global_attn_every_n_layers": 4},
    "llama4_text": {"attention_chunk_size": 8192, "no_rope_layer_interval": 4, "head_dim": 128},
    "qwen3": {"head_dim": 128},
    "qwen3_next": _DELTA,
    "qwen3_5_text": _DELTA,
    "qwen3_5_moe_text": _DELTA,
    "qwen4_exp_text": _DELTA,
    "nemotron_h": {"mamba_ssm_cache_dtype": "float32", "head_dim": 128},
    "falcon_h1": {"_every_layer": "mamba_attention"},
    "olmo_hybrid": {"full_attention_interval": 4},
    "minimax": {"full_attention_interval": 2},
    "glm5_next_text": {"full_attention_interval": 4, "linear_conv_kernel_dim": 4},
    "kimi_linear": {"linear_conv_kernel_dim": 4},
    # Its num_layers are pairs of attention layers.
    "longcat_flash": {"_attentions_per_layer": 2},
    "mistral": _WINDOWS,
    "ministral": _WINDOWS,
    "mixtral": _WINDOWS,
    "phi3": _WINDOWS,
    "phimoe": _WINDOWS,
    "starcoder2": _WINDOWS,
}


def complete(config: Config) -> Config:
    """The config with what its class would fill in; null counts as left out."""
    said = {key: value for key, value in config.items() if value is not None}
    return {**_CLASSES.get(word(said, "model_type"), {}), **said}
