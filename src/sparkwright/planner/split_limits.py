"""What forbids a split: heads, experts, blocks of the quantization, the engine. Each refusal names observed and wanted.

Read for vLLM 0.21.0 (config/model.py verify_with_parallel_config, models/*, layers/quantization/fp8.py, gptq.py,
marlin_utils.py, layers/vocab_parallel_embedding.py) and SGLang 0.5.20 (srt/arg_groups/parallel_hook.py,
validation_hook.py, layers/moe); the two share most of this code.
"""

from collections.abc import Iterator
from math import lcm

from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Parallelism, Recipe

_PADDED = 64  # vocab_parallel_embedding.DEFAULT_VOCAB_PADDING_SIZE
_BLOCKED = ("vllm", "vllm-ray", "sglang", "twin")
# Drafts made by layers of the model itself: they need the last hidden state where the first stage is, too.
_OWN_DRAFTS = ("mtp", "nextn")


def refusals(shape: ModelShape | None, recipe: Recipe, split: Parallelism) -> tuple[str, ...]:
    """All that stands against the split; without a shape only what the engine alone forbids."""
    found = list(_engine(recipe, split))
    if shape is not None and recipe.engine.name != "llama-cpp":
        found += [*_heads(shape, split), *_layers(shape, split), *_experts(shape, recipe.engine.name, split)]
        if recipe.engine.name in _BLOCKED and not found:
            found += [*_vocabulary(shape, split), *_blocks(shape, split)]
    return tuple(found)


def _engine(recipe: Recipe, split: Parallelism) -> Iterator[str]:
    name, drafts = recipe.engine.name, recipe.speculation.method
    if name == "llama-cpp" and (split.tp > 1 or split.dp > 1 or split.ep):
        yield "llama.cpp over RPC splits layers over nodes (pp) and nothing else"
    if name == "sglang" and split.dp > 1:
        yield f"dp {split.dp}: SGLang spans nodes with data parallelism only inside tp (--enable-dp-attention)"
    if name == "trtllm" and split.dp > 1:
        yield f"dp {split.dp}: TensorRT-LLM's data parallelism is of attention and inside tp (enable_attention_dp)"
    if split.pp > 1 and drafts and (name == "sglang" or any(own in drafts for own in _OWN_DRAFTS)):
        whose = "SGLang drafts" if name == "sglang" else "the draft layers of the model work"
        yield f"pp {split.pp} with speculation {drafts}: {whose} on one pipeline stage only; wanted pp 1"


def _heads(shape: ModelShape, split: Parallelism) -> Iterator[str]:
    tp, kv = split.tp, shape.kv_heads
    if shape.heads % tp:
        yield f"tp {tp} does not divide {shape.heads} query heads"
    if not shape.latent and (kv % tp if kv >= tp else tp % kv):
        yield f"tp {tp} neither divides {kv} KV heads nor is a multiple of them"
    if shape.state_heads > 1 and shape.state_heads % tp:
        yield f"tp {tp} does not divide the {shape.state_heads} heads of the state layers"


def _layers(shape: ModelShape, split: Parallelism) -> Iterator[str]:
    if split.pp > shape.layers:
        yield f"pp {split.pp} is more than {shape.layers} layers"


def _experts(shape: ModelShape, engine: str, split: Parallelism) -> Iterator[str]:
    ranks = split.tp * split.dp
    if split.ep and not shape.experts:
        yield "ep: the model has no experts"
    # vLLM gives some ranks one expert more (fused_moe/layer.py, determine_expert_map); the others want equal shares.
    elif split.ep and (shape.experts % ranks if engine in ("sglang", "trtllm") else shape.experts < ranks):
        yield f"ep: {shape.experts} experts cannot be shared evenly by {ranks} ranks"


def _vocabulary(shape: ModelShape, split: Parallelism) -> Iterator[str]:
    padded = -(-shape.vocab // _PADDED) * _PADDED
    if padded % split.tp:
        yield f"tp {split.tp} does not divide the vocabulary of {shape.vocab}, padded to {padded}"


def _blocks(shape: ModelShape, split: Parallelism) -> Iterator[str]:
    """A slice must not cut a group of weights that share a scale. MXFP4 is left out: vLLM pads it."""
    own = 1 if shape.format == "mxfp4" else lcm(shape.rows or 1, shape.group or 1)
    expert = own
    if shape.expert_format:
        expert = 1 if shape.expert_format == "mxfp4" else shape.expert_group or 1
    ranks = split.tp * split.dp
    if shape.experts and not split.ep:
        yield from _cut("experts", shape.expert_intermediate, ranks, expert, "; with ep they stay whole")
    if shape.dense_layers > 0:
        yield from _cut("the dense FFN", shape.intermediate, split.tp, own, "")
    if not shape.latent and not shape.compress:
        yield from _cut("the attention output", shape.heads * (shape.value_dim or shape.head_dim), split.tp, own, "")


def _cut(what: str, width: int, ranks: int, block: int, hint: str) -> Iterator[str]:
    if ranks > 1 and width % (ranks * block):
        blocks = f" is no multiple of the quantization block {block}" if block > 1 else " is no whole number"
        yield f"{what}: {width} / {ranks} = {width / ranks:g}{blocks}{hint}"
