"""The dimensions of a model that decide how it can be split and what it costs: read from its config, never its name."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ModelShape:
    """Counts and widths of one model; 0 or '' where there is none or nobody says so. Widths are elements, not bytes.

    Attention: heads, kv_heads; head_dim of queries and keys, value_dim of values where it differs. latent: width of the
    one vector a token that MLA caches instead of heads, rope_dim of it positional. query_rank, output_rank: inner
    width of a projection in two steps, the output's in output_groups parts.
    Layers: full_layers keep KV of the whole context, window_layers of the last `window` tokens, state_layers (Mamba,
    linear attention) a state instead. compress: tokens per KV entry, layer by layer (0: only its window).
    single_blocks: a layer is attention or FFN, not both; then ffn_layers says how many are FFN.
    Experts: moe_layers have `experts` of expert_intermediate each, per_token of them work, shared_experts always do.
    expert_hidden: width that routed experts read and write where it is not `hidden` (they share a way in and out).
    ungated: an FFN is two matrices (ReLU²), not three (SwiGLU).
    Weights: format of the numbers (bf16, fp8, int8, int4, nvfp4, mxfp4), expert_format where experts differ;
    quantization: the method's name in the config; group: how many inputs share a scale (expert_group: of experts),
    rows: how many outputs do.
    """

    layers: int
    heads: int
    kv_heads: int
    architecture: str = ""
    hidden: int = 0
    vocab: int = 0
    positions: int = 0
    head_dim: int = 0
    value_dim: int = 0
    latent: int = 0
    rope_dim: int = 0
    query_rank: int = 0
    output_rank: int = 0
    output_groups: int = 0
    full_layers: int = 0
    window_layers: int = 0
    window: int = 0
    compress: tuple[int, ...] = ()
    state_layers: int = 0
    state_heads: int = 0
    state_width: int = 0
    single_blocks: bool = False
    ffn_layers: int = 0
    intermediate: int = 0
    experts: int = 0
    experts_per_token: int = 0
    expert_intermediate: int = 0
    expert_hidden: int = 0
    shared_experts: int = 0
    moe_layers: int = 0
    ungated: bool = False
    mtp_layers: int = 0
    tied: bool = False
    quantization: str = ""
    format: str = ""
    group: int = 0
    rows: int = 0
    expert_format: str = ""
    expert_group: int = 0

    @property
    def attention_layers(self) -> int:
        """Layers that keep keys and values, of the whole context or of a window; all of them unless told otherwise."""
        ffn = self.ffn_layers if self.single_blocks else 0
        return self.full_layers + self.window_layers or self.layers - self.state_layers - ffn

    @property
    def growing_layers(self) -> int:
        """Those of them whose cache grows with the context."""
        return self.attention_layers - self.window_layers

    @property
    def dense_layers(self) -> int:
        """Layers with a plain FFN."""
        return (self.ffn_layers or self.layers) - self.sparse_layers

    @property
    def sparse_layers(self) -> int:
        """Layers with experts."""
        return (self.moe_layers or self.ffn_layers or self.layers) if self.experts else 0
