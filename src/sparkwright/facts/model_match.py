"""Are config.json and the weights beside it of one model? Layers and width stand in both."""

import re
from collections.abc import Iterator, Sequence

from sparkwright.domain.checkpoint import TensorGroup
from sparkwright.domain.model import ModelShape

# The norm before the attention: one a layer, as long as the hidden width. Encoders have theirs under other names.
_NORM = re.compile(r"(model\.)?(language_model\.)?(model\.)?layers\.#\.input_layernorm\.weight")
_WIDTHS = {"BF16": 2, "F16": 2, "F32": 4}
_DRAFTS = 8  # draft layers stand beside the model's, and a config may not tell them


def differences(shape: ModelShape, tensors: Sequence[TensorGroup]) -> Iterator[str]:
    """`12 layers, the weights have 36`; nothing where the weights do not tell."""
    norms = [group for group in tensors if _NORM.fullmatch(group.name)]
    layers = sum(group.count for group in norms)
    if layers and not shape.layers <= layers <= shape.layers + max(shape.mtp_layers, _DRAFTS):
        yield f"{shape.layers} layers, the weights have {layers}"
    widths = {group.bytes // (group.count * _WIDTHS[group.dtype]) for group in norms if group.dtype in _WIDTHS}
    if widths and shape.hidden and shape.hidden not in widths:
        yield f"a width of {shape.hidden}, the weights have {min(widths)}"
