"""What dimensions must tell before a cache can be counted: a model told by half gives no figure, not a wrong one.

Half-told are recipes' shapes that somebody wrote by hand; what a config.json leaves out is known when it is read.
"""

from collections.abc import Iterator

from sparkwright.domain.model import ModelShape
from sparkwright.planner.kv_numbers import V4_OVERLAP, V4_STATE_PAGE

# What all models of a class have (the classes' own configs in vLLM 0.33.0): without it something was left out.
_CLASSES = {
    "compress": ("DeepseekV4",),
    "index_layers": ("DeepseekV32", "GlmMoeDsa", "Glm5Next", "MiniMaxM3Sparse", "Qwen4Exp"),
    "state_layers": ("Glm5Next", "KimiLinear", "NemotronH", "Qwen3Next", "Qwen3_5", "Qwen4Exp"),
}
_MISSING = {
    "compress": "how many tokens share an entry of compressed KV",
    "index_layers": "how many layers keep rows of an indexer",
    "state_layers": "how many layers keep a state instead of KV",
}


def gap(shape: ModelShape) -> str:
    """The first thing that is missing to count what is kept; '' when nothing is."""
    return next(_gaps(shape), "")


def _gaps(shape: ModelShape) -> Iterator[str]:
    odd = sorted(set(shape.compress) - {0, *V4_STATE_PAGE})
    if odd:
        yield f"compressed KV of {odd} tokens an entry: its pages are not known"
    if (shape.index_layers or V4_OVERLAP in shape.compress) and not shape.index_dim:
        yield "the width of the indexer's rows is not known"
    if shape.state_layers and not (shape.state_matrix or shape.state_conv):
        yield "the size of the state layers' states is not known"
    if shape.window_layers and not shape.window:
        yield "the window of the sliding-window layers is not known"
    if not (shape.compress or shape.latent or shape.head_dim):
        yield "the width of an attention head is not known"
    # A positional part of its own is that of latent or compressed rows.
    if shape.rope_dim and not (shape.latent or shape.compress):
        yield "neither the width of a latent row nor how KV is compressed is known"
    for name, classes in _CLASSES.items():
        if shape.architecture.startswith(classes) and not getattr(shape, name):
            yield f"{_MISSING[name]} is not known; all {shape.architecture} have such"
