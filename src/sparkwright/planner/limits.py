"""What a recipe leaves to its engine: options, version, sequences, batched tokens, CUDA graphs."""

import json
import re
from collections.abc import Mapping
from typing import Any

from sparkwright.domain.recipe import Recipe

VLLM = ("vllm", "vllm-ray", "twin")
# vLLM's defaults on a GPU with much memory, and on a GB10 since 0.33.0, which calls it a small one
# (engine/arg_utils.py, get_batch_defaults, read in 0.19.0 to 0.33.0): batched tokens, sequences.
_LARGE = (8192, 1024)
_SMALL = (2048, 256)
_SMALL_SINCE = (0, 33)
_SGLANG = (8192, 48)  # chunked prefill and running requests: near these on a GB10 (0.5.23, arg_groups)
_TRTLLM = (8192, 256)
_LLAMA = (2048, 4)
_LARGEST_GRAPH = 512
_NUMBER = re.compile(r"[0-9]+", re.ASCII)


def flag(recipe: Recipe, name: str) -> Any:
    """The recipe's own value of an option, however it spells its name; None when it gives none."""
    given = (v for n, v in recipe.flags.items() if n.lstrip("-").replace("_", "-") == name)
    return next(given, None)


def number(value: Any) -> int:
    """A whole number above 0 as it stands in a recipe; 0 for anything else."""
    if isinstance(value, str) and value.isdecimal():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def version(recipe: Recipe) -> tuple[int, ...]:
    """`0.21.1rc1` -> (0, 21, 1); () for text without numbers: then it counts as newer than all."""
    core = recipe.engine.version.split("+")[0].split("rc")[0].split(".dev")[0]
    return tuple(int(part) for part in _NUMBER.findall(core)[:3])


def since(recipe: Recipe, *wanted: int) -> bool:
    """Whether the engine is that version or newer; a version that nobody can read counts as new."""
    return not version(recipe) or version(recipe) >= wanted


def batched_tokens(recipe: Recipe, unified: bool = True) -> int:
    return recipe.serving.batched_tokens or _defaults(recipe, unified)[0]


def sequences(recipe: Recipe, unified: bool = True) -> int:
    """vLLM never takes more sequences than it batches tokens, unless told to."""
    return recipe.serving.sequences or min(_defaults(recipe, unified)[1], batched_tokens(recipe, unified))


def _defaults(recipe: Recipe, unified: bool) -> tuple[int, int]:
    name = recipe.engine.name
    if name not in VLLM:
        return {"sglang": _SGLANG, "trtllm": _TRTLLM}.get(name, _LLAMA)
    return _SMALL if unified and since(recipe, *_SMALL_SINCE) else _LARGE


def compilation(recipe: Recipe) -> Mapping[str, Any]:
    """vLLM's compilation-config, which a recipe may write as a mapping or as JSON."""
    value = flag(recipe, "compilation-config")
    try:
        value = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return {}
    return value if isinstance(value, Mapping) else {}


def eager(recipe: Recipe) -> bool:
    """Whether no CUDA graphs are captured."""
    off = [flag(recipe, name) for name in ("enforce-eager", "disable-cuda-graph")]
    mode = str(compilation(recipe).get("cudagraph_mode", ""))
    return any(str(value).lower() == "true" for value in off) or mode.upper() == "NONE"


def captures(recipe: Recipe, unified: bool = True) -> tuple[int, int]:
    """(how many batch sizes vLLM captures, the largest): 1, 2, 4, every 8th up to 256, then every 16th."""
    sizes = compilation(recipe).get("cudagraph_capture_sizes") or flag(recipe, "cudagraph-capture-sizes")
    listed = [n for n in map(number, sizes) if n] if isinstance(sizes, (list, tuple)) else []
    if listed:
        return len(listed), max(listed)
    drafted = recipe.speculation.tokens + 1 if recipe.speculation.method else 1
    asked = number(flag(recipe, "max-cudagraph-capture-size"))
    largest = asked or min(_LARGEST_GRAPH, 2 * drafted * sequences(recipe, unified))
    largest = min(largest, batched_tokens(recipe, unified))
    every = [1, 2, 4, *range(8, 256, 8), *range(256, largest + 1, 16)]
    return len([n for n in every if n <= largest]) or 1, largest
