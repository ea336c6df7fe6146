"""The dimensions of a model that decide how it can be split and what it costs: read from its config, never its name."""

from sparkwright.domain.values import dataclass


@dataclass(frozen=True, slots=True)
class ModelShape:
    """Counts and widths of one model; 0 or '' where there is none or it is unknown. Widths are elements, not bytes.

    Attention: heads, kv_heads; head_dim of queries and keys, value_dim of values where it differs. latent: width of the
    one vector a token that MLA caches instead of heads, rope_dim of it positional. query_rank, output_rank: inner
    width of a projection in two steps, the output's in output_groups parts. output_gate: a gate as wide as the queries.
    Layers: full_layers keep KV of the whole context, window_layers of the last `window` tokens, state_layers (Mamba,
    linear attention) a state instead. compress: tokens per KV entry, layer by layer (0: only its window).
    single_blocks: a layer is attention or FFN, not both; then ffn_layers is how many are FFN.
    What the cache holds beyond that: index_layers keep a row of index_dim a token for a lightning indexer (index_heads
    queries ask it, index_topk tokens are read); index_kind: dsa (FP8 rows with a scale), msa and qsa (plain rows);
    index_ratio: tokens a row where they are pooled (0: each token, or as in `compress`). Window layers may have
    dimensions of their own (window_heads, window_kv_heads, window_head_dim, window_value_dim; 0: as the others).
    shared_kv_layers have no cache of their own, shared_full_layers of them would keep the whole context: they use
    another layer's, which kv_sources names where compressed entries are shared (then the indexer's rows are there too).
    State: state_kind (gdn, kda, mamba1, mamba2, lightning, sconv), a convolution state_conv wide over state_conv_width
    numbers, and a matrix of state_matrix numbers a sequence and layer, written in state_format ('': as the engine
    likes). sconv without state_layers: every attention layer has such convolutions next to its KV.
    draft_architecture: of a draft model inside the checkpoint (MTP, DSpark).
    Experts: moe_layers have `experts` of expert_intermediate each, per_token of them work, shared_experts always do (a
    wider shared FFN counts as several). expert_hidden: what routed experts read and write where that is narrower than
    hidden. ungated: an FFN is two matrices, not three.
    Tables next to the vocabulary, of which a token needs single rows (n-grams, Engram, embeddings of each layer): so
    many numbers in table_format ('': as the checkpoint likes); tables_unknown: there are some, of unknown size.
    Weights: format of the numbers (bf16, fp8, int8, int4, nvfp4, mxfp4), expert_format where experts differ;
    quantization: the method's name in the config; group: how many inputs share a scale (expert_group: of experts),
    rows: how many outputs do. activations: bits of what its 4-bit weights are multiplied with, 16 where they alone are
    quantized (0: not known). kv_format: what the checkpoint wants its KV cache to be (fp8, nvfp4; '': its own type).
    inferred: from the sizes of tensors alone, without a configuration.
    unread: keys that size experts or FFNs and are not understood, joined by commas: the weights cannot be counted.
    loose: an architecture or a dimension that is not understood otherwise; the count of weights is a rough one.
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
    output_gate: bool = False
    full_layers: int = 0
    window_layers: int = 0
    window: int = 0
    compress: tuple[int, ...] = ()
    state_layers: int = 0
    state_heads: int = 0
    state_width: int = 0
    state_kind: str = ""
    state_conv: int = 0
    state_conv_width: int = 0
    state_matrix: int = 0
    state_format: str = ""
    index_layers: int = 0
    index_heads: int = 0
    index_dim: int = 0
    index_topk: int = 0
    index_kind: str = ""
    index_ratio: int = 0
    window_heads: int = 0
    window_kv_heads: int = 0
    window_head_dim: int = 0
    window_value_dim: int = 0
    shared_kv_layers: int = 0
    shared_full_layers: int = 0
    kv_sources: tuple[int, ...] = ()
    draft_architecture: str = ""
    senses: bool = False  # has an encoder of images or sound
    encoder: int = 0  # million numbers in it, 0 if not known
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
    tables: int = 0
    table_format: str = ""
    tables_unknown: bool = False
    quantization: str = ""
    format: str = ""
    group: int = 0
    rows: int = 0
    expert_format: str = ""
    expert_group: int = 0
    output_format: str = ""  # of the vocabulary's output, where a checkpoint quantizes it
    activations: int = 0
    kv_format: str = ""
    inferred: bool = False
    unread: str = ""
    loose: bool = False

    @property
    def attention_layers(self) -> int:
        """Layers that keep keys and values, of the whole context or of a window; all of them by default."""
        ffn = self.ffn_layers if self.single_blocks else 0
        return self.full_layers + self.window_layers or self.layers - self.state_layers - ffn

    @property
    def growing_layers(self) -> int:
        """The number of attention layers whose cache grows with the context."""
        return self.attention_layers - self.window_layers

    @property
    def dense_layers(self) -> int:
        """Layers with a plain FFN."""
        return (self.ffn_layers or self.layers) - self.sparse_layers

    @property
    def sparse_layers(self) -> int:
        """Layers with experts."""
        return (self.moe_layers or self.ffn_layers or self.layers) if self.experts else 0
