"""Does this version of the engine know the method that the model's weights are quantized with?"""

from difflib import get_close_matches

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.recipe import Recipe
from sparkwright.engines.flag_data import flag_data

# Methods that a config writes under another name than the engine's option has (vLLM 0.21.0 quantization/__init__.py).
_ALSO = {"auto-round": "inc", "intel/auto-round": "inc"}


def check_quantization(recipe: Recipe, method: str) -> tuple[Finding, ...]:
    """ENG030 a quantization method that this version does not know, by config.json; '' is no quantization.

    A plugin may bring a method of its own, so --force passes it; what only a neighbouring version's data lack is a
    warning, as with flags.
    """
    data, said = flag_data(recipe.engine.name, recipe.engine.version)
    option = data.options.get("quantization") if data else None
    names = (option.choices or option.known) if option else ()
    given = recipe.flags.get("quantization")
    if not method or not names or {method, _ALSO.get(method, method)} & set(names) or given in names:
        return ()
    near = get_close_matches(method, names, n=1)
    return (
        Finding(
            "ENG030", Severity.WARN if said else Severity.OVERRIDE, "model",
            f"{recipe.engine.name} {recipe.engine.version} has no quantization method {method}",
            evidence=f"quant_method: {method} in config.json; the engine has {', '.join(names)}",
            cause="the weights are written in a form that no loader of this version reads",
            remedy="take a checkpoint in a format that it has, or a version that has the method"
            + (f"; the nearest name is {near[0]}" if near else ""),
        ),
    )  # fmt: skip
