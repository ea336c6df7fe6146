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
from sparkwright.facts.model_values import first_mapping, known_values, number, number_of

_HEAD = 128  # the most usual width of a head, where nothing shows it
_PER_TOKEN = 8  # the most usual number of experts for a token


def _names(what: str) -> str:
    """The pattern of the names of such tensors, by [tensors] of models.toml."""
    return str(known_values("models")["tensors"][what])


def _bytes_of(group: TensorGroup) -> float:
    """Bytes of a number of this type."""
    return float(known_values("models")["tensors"]["bytes"].get(group.dtype, 1.0))


def inferred(tensors: Sequence[TensorGroup], config: str = "") -> ModelShape | None:
    """None where not even layers and widths show. config: its text; of it only plain counts are taken."""
    top = mapping(config or "{}")
    told = {**top, **first_mapping(top, "text_config", "llm_config")} if isinstance(top, dict) else {}
    sizes = _Sizes(tensors)
    layers, hidden = sizes.layers, sizes.width("norm")
    if not layers or not hidden:
        return None
    key, value, latent = (sizes.outputs(what, hidden) for what in ("keys", "values", "latent"))
    query, attending = sizes.outputs("output", hidden), sizes.count("keys") or sizes.count("latent")
    if joined := sizes.outputs("queries_keys_values", hidden):
        key, attending = max(1, joined - query) // 2, sizes.count("queries_keys_values")
        value = key
    heads = number_of(told, "heads")
    width = number(told, "head_dim") or (query // heads if heads and query else _HEAD if key % _HEAD == 0 else key)
    experts = sizes.outputs("router", hidden)
    return ModelShape(
        layers=layers,
        heads=heads or max(1, query // max(width, 1)),
        kv_heads=1 if latent else max(1, key // max(width, 1)),
        hidden=hidden,
        vocab=sizes.outputs("embedding", hidden),
        positions=number_of(told, "positions"),
        head_dim=width,
        value_dim=value * width // key if key and value != key else 0,
        latent=latent,
        full_layers=attending,  # of layers without keys nothing is known but that they keep little
        intermediate=sizes.outputs("ffn", hidden),
        experts=experts,
        experts_per_token=min(experts, number(told, "num_experts_per_tok") or _PER_TOKEN),
        moe_layers=sizes.count("router") if experts else 0,
        expert_intermediate=sizes.outputs("ffn", hidden, experts=True) if experts else 0,
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
        plain = [group for group in tensors if not re.search(_names("scales"), group.name)]
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

    def _named(self, kind: str, experts: bool = False) -> list[TensorGroup]:
        """The tensors of this kind, a key of [tensors] in models.toml."""
        ending = re.compile(rf"(.*\.)?{_names(kind)}")
        every = [group for group in (*self._inner, *self._outer) if ending.fullmatch(group.name)]
        return [group for group in every if bool(re.search(_names("expert"), group.name)) is experts]

    def count(self, kind: str) -> int:
        """Layers that have one."""
        return sum(group.count for group in self._named(kind))

    def width(self, kind: str) -> int:
        """Numbers of one such tensor, the most frequent of them."""
        widths: Counter[int] = Counter()
        for group in self._named(kind):
            widths[int(group.bytes / group.count / _bytes_of(group))] += group.count
        return widths.most_common(1)[0][0] if widths else 0

    def outputs(self, kind: str, hidden: int, experts: bool = False) -> int:
        """The other width of a matrix of which one is the hidden width."""
        found = self._named(kind, experts)
        largest = max((g.bytes / g.count / _bytes_of(g) for g in found), default=0.0)
        return round(largest / hidden)
