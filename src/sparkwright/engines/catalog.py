"""The engines that sparkwright drives, by the name a recipe gives. A plain table: nothing registers itself."""

from collections.abc import Mapping

from sparkwright.domain.errors import RecipeError
from sparkwright.engines.engine import Engine
from sparkwright.engines.llama_cpp import LlamaCpp
from sparkwright.engines.sglang import Sglang
from sparkwright.engines.trtllm import Trtllm
from sparkwright.engines.twin import Twin
from sparkwright.engines.vllm import Vllm
from sparkwright.engines.vllm_ray import VllmRay

ENGINES: Mapping[str, Engine] = {
    "vllm": Vllm(),
    "vllm-ray": VllmRay(),
    "sglang": Sglang(),
    "trtllm": Trtllm(),
    "llama-cpp": LlamaCpp(),
    "twin": Twin(),
}


def engine(name: str) -> Engine:
    """The engine of that name. Raises RecipeError that lists the known ones."""
    found = ENGINES.get(name)
    if found is None:
        raise RecipeError(
            f"engine.name: {name!r} is not an engine that sparkwright drives; known: {', '.join(ENGINES)}",
            hint="write one of the known names",
        )
    return found
