"""The limits a recipe leaves to its engine: sequences, batched tokens, CUDA graphs."""

from collections.abc import Mapping
from typing import Any

from sparkwright.domain.recipe import Recipe
from sparkwright.engines.catalog import traits
from sparkwright.engines.options import flag_value, mapping, number

_LARGEST_GRAPH = 512


def batched_tokens(recipe: Recipe, unified: bool = True) -> int:
    return recipe.serving.batched_tokens or traits(recipe).limits(recipe, unified)[0]


def computed_tokens(recipe: Recipe) -> int:
    """The most tokens of prompts that one step computes."""
    option, usual = traits(recipe).computed
    return min(number(flag_value(recipe, option)) or usual or batched_tokens(recipe), batched_tokens(recipe))


def sequences(recipe: Recipe, unified: bool = True) -> int:
    """vLLM never takes more sequences than it batches tokens, unless asked to."""
    return recipe.serving.sequences or min(traits(recipe).limits(recipe, unified)[1], batched_tokens(recipe, unified))


def compilation(recipe: Recipe) -> Mapping[str, Any]:
    """vLLM's compilation-config, which a recipe may write as a mapping or as JSON."""
    return mapping(flag_value(recipe, "compilation-config"))


def is_eager(recipe: Recipe) -> bool:
    """True if no CUDA graphs are captured."""
    off = [flag_value(recipe, name) for name in ("enforce-eager", "disable-cuda-graph")]
    mode = str(compilation(recipe).get("cudagraph_mode", ""))
    return any(str(value).lower() == "true" for value in off) or mode.upper() == "NONE"


def captures(recipe: Recipe, unified: bool = True) -> tuple[int, int]:
    """The number of batch sizes that vLLM captures, and the largest: 1, 2, 4, every 8th up to 256, then every 16th."""
    sizes = compilation(recipe).get("cudagraph_capture_sizes") or flag_value(recipe, "cudagraph-capture-sizes")
    listed = [n for n in map(number, sizes) if n] if isinstance(sizes, (list, tuple)) else []
    if listed:
        return len(listed), max(listed)
    drafted = recipe.speculation.tokens + 1 if recipe.speculation.method else 1
    asked = number(flag_value(recipe, "max-cudagraph-capture-size"))
    largest = asked or min(_LARGEST_GRAPH, 2 * drafted * sequences(recipe, unified))
    largest = min(largest, batched_tokens(recipe, unified))
    every = [1, 2, 4, *range(8, 256, 8), *range(256, largest + 1, 16)]
    return len([n for n in every if n <= largest]) or 1, largest
