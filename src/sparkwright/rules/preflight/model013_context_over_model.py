"""The context asked for is longer than the model was made for.

Detects: serving.context above what the model's config.json allows (its positions, stretched by its rope scaling).
Why: vLLM and SGLang refuse such a start when the ranks are already up; forced, answers fall apart beyond the limit.
Evidence: both lengths, and where the model's is from.
Remedy: a shorter context; or what the model's card says about longer ones (rope scaling): the engine accepts that.
References: vLLM's own error `User-specified max_model_len (...) is greater than the derived max_model_len (...)`
  (recorded from 0.21.0), SGLang's SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN.
"""

from collections.abc import Iterator

from sparkwright.domain.checkpoint import Checkpoint
from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Recipe
from sparkwright.rules.reading import played
from sparkwright.rules.rule import Context

CODE = "MODEL013"
STATUS = "stable"
SEVERITY = Severity.OVERRIDE
TITLE = "the context is longer than the model's"

_CHECKING = ("vllm", "vllm-ray", "sglang")
_ALLOWS = ("VLLM_ALLOW_LONG_MAX_MODEL_LEN", "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN")
_CHANGES = ("hf-overrides", "rope-scaling", "rope-parameters", "json-model-override-args")


def check(context: Context) -> Iterator[Finding]:
    recipe = context.recipe
    if recipe is None or played(recipe) or recipe.engine.name not in _CHECKING or _told_otherwise(recipe):
        return
    longest, source = _longest(context, recipe)
    if 0 < longest < recipe.serving.context:
        yield Finding(
            CODE,
            SEVERITY,
            "serving.context",
            f"the model allows {longest:,} tokens, not {recipe.serving.context:,}",
            f"{longest:,} in {source}, {recipe.serving.context:,} in the recipe",
            f"{recipe.engine.name} refuses it after the ranks have started",
            f"serving.context: {longest} or less; or the rope scaling that the model's card gives for longer ones",
        )


def _told_otherwise(recipe: Recipe) -> bool:
    return any(name in recipe.env for name in _ALLOWS) or any(name in recipe.flags for name in _CHANGES)


def _longest(context: Context, recipe: Recipe) -> tuple[int, str]:
    """The files' word before the recipe's."""
    for node, found in context.checkpoints.items():
        if isinstance(found, Checkpoint) and isinstance(found.shape, ModelShape):
            return found.shape.positions, f"config.json on {node}"
    return (recipe.model.shape.positions, "model.shape of the recipe") if recipe.model.shape else (0, "")
