"""Dimensions from the sizes of a checkpoint's tensors alone, where its configuration is absent or not understood.

Tensors show widths, layers and experts, and hide what takes less memory than it seems: windows, shared caches, an
indexer's choice. What comes of it is marked (`ModelShape.inferred`), and the planner widens every range for it.
"""

import re
from collections import Counter
from collections.abc import Sequence

from sparkwright.domain.checkpoint import TensorGroup
from sparkwright.domain.model import ModelShape
from sparkwright.facts.model_config import mapping
from sparkwright.facts.model_values import number, number_of, part

# Bytes of a number; U8 and I8 hold two of four bits in all formats that write them, I32 and U32 eight.
_WIDTHS = {"F64": 8.0, "F32": 4.0, "BF16": 2.0, "F16": 2.0, "U8": 0.5, "I8": 0.5, "I32": 0.5, "U32": 0.5}
_SCALES = re.compile(r"(scale|zero|_inv|bias|g_idx|perm|suh|svh)\w*$")
_NORM = r"(input_layernorm|ln_1|attn_norm|attention_norm|norm_?1|norm|pre_attention_layernorm)\.weight"
_EMBED = r"(embed_tokens|wte|tok_embeddings|word_embeddings|embed|embeddings|embed_in)\.weight"
_QUERY, _KEY, _VALUE = r"(q_proj|wq|q_b_proj)\.\w+", r"(k_proj|wk)\.\w+", r"(v_proj|wv)\.\w+"
_JOINED, _OUTPUT = r"(qkv_proj|c_attn|query_key_value|Wqkv|qkv)\.\w+", r"(o_proj|wo|out_proj|c_proj|dense)\.\w+"
_LATENT, _ROUTER = r"(kv_a_proj_with_mqa|wkv_a)\.\w+", r"(gate|router|router\.gate|mlp\.gate)\.weight"
_UP = r"(up_proj|w3|w1|gate_proj|fc_in|c_fc|fc1)\.\w+"
_HEAD, _PER_TOKEN = 128, 8  # the most usual width of a head, and experts of a token, where nothing shows them
_EXPERT = re.compile(r"\.experts?\.#\.")


def inferred(tensors: Sequence[TensorGroup], config: str = "") -> ModelShape | None:
    """None where not even layers and widths show. config: its text; of it only plain counts are taken."""
    top = mapping(config or "{}")
    told = {**top, **part(top, "text_config", "llm_config")} if isinstance(top, dict) else {}
    sizes = _Sizes(tensors)
    layers, hidden = sizes.layers, sizes.width(_NORM)
    if not layers or not hidden:
        return None
    key, value, latent = (sizes.outputs(what, hidden) for what in (_KEY, _VALUE, _LATENT))
    query, attending = sizes.outputs(_OUTPUT, hidden), sizes.count(_KEY) or sizes.count(_LATENT)
    if joined := sizes.outputs(_JOINED, hidden):
        key, attending = max(1, joined - query) // 2, sizes.count(_JOINED)
        value = key
    heads = number_of(told, "heads")
    width = number(told, "head_dim") or (query // heads if heads and query else _HEAD if key % _HEAD == 0 else key)
    experts = sizes.outputs(_ROUTER, hidden)
    return ModelShape(
        layers=layers,
        heads=heads or max(1, query // max(width, 1)),
        kv_heads=1 if latent else max(1, key // max(width, 1)),
        hidden=hidden,
        vocab=sizes.outputs(_EMBED, hidden),
        positions=number_of(told, "positions"),
        head_dim=width,
        value_dim=value * width // key if key and value != key else 0,
        latent=latent,
        full_layers=attending,  # of layers without keys nothing is known but that they keep little
        intermediate=sizes.outputs(_UP, hidden),
        experts=experts,
        experts_per_token=min(experts, number(told, "num_experts_per_tok") or _PER_TOKEN),
        moe_layers=sizes.count(_ROUTER) if experts else 0,
        expert_intermediate=sizes.outputs(_UP, hidden, experts=True) if experts else 0,
        quantization="" if sizes.plain else "unknown",
        format="bf16" if sizes.plain else "",
        inferred=True,
    )


class _Sizes:
    """Tensors of the decoder: those whose numbers are layers, under the name that has most bytes."""

    def __init__(self, tensors: Sequence[TensorGroup]) -> None:
        stems: Counter[str] = Counter()
        for group in tensors:
            stems[group.name.partition(".#.")[0]] += group.bytes if ".#." in group.name else 0
        self._stem = max(stems, key=lambda stem: stems[stem], default="")
        plain = [group for group in tensors if not _SCALES.search(group.name)]
        self._inner = [group for group in plain if group.name.startswith(f"{self._stem}.#.")]
        self._outer = [group for group in plain if ".#." not in group.name]

    @property
    def layers(self) -> int:
        """The number of layers: of the tensors that each layer has once."""
        once: Counter[str] = Counter()
        for group in self._inner:
            once[group.name] += group.count if group.name.count("#") == 1 else 0
        return max(once.values(), default=0)

    @property
    def plain(self) -> bool:
        """True if most bytes are numbers of 16 bits, as they were trained."""
        return 2 * sum(g.bytes for g in self._inner if g.dtype in ("BF16", "F16")) > sum(g.bytes for g in self._inner)

    def _named(self, pattern: str, experts: bool = False) -> list[TensorGroup]:
        ending = re.compile(rf"(.*\.)?{pattern}")
        every = [group for group in (*self._inner, *self._outer) if ending.fullmatch(group.name)]
        return [group for group in every if bool(_EXPERT.search(group.name)) is experts]

    def count(self, pattern: str) -> int:
        """Layers that have one."""
        return sum(group.count for group in self._named(pattern))

    def width(self, pattern: str) -> int:
        """Numbers of one such tensor, the most frequent of them."""
        widths: Counter[int] = Counter()
        for group in self._named(pattern):
            widths[int(group.bytes / group.count / _WIDTHS.get(group.dtype, 1.0))] += group.count
        return widths.most_common(1)[0][0] if widths else 0

    def outputs(self, pattern: str, hidden: int, experts: bool = False) -> int:
        """The other width of a matrix of which one is the hidden width."""
        found = self._named(pattern, experts)
        largest = max((g.bytes / g.count / _WIDTHS.get(g.dtype, 1.0) for g in found), default=0.0)
        return round(largest / hidden)
