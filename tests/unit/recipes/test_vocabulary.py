"""The names of an engine's options in a recipe."""

from sparkwright.domain.finding import Finding, Severity
from sparkwright.recipes.vocabulary import in_recipe
from unit.for_each import for_each


@for_each(
    "engine, subject, remedy, more",
    [
        ("sglang", "--gpu-memory-utilization", "did you mean --mem-fraction-static?", "serving.memory_fraction"),
        ("sglang", "--kv-cache-dtype", "write --kv-cache-dtype fp8_e4m3", "serving.kv_dtype"),
        ("vllm-ray", "--kv-cache-dtype", "allowed: auto, fp8", "serving.kv_dtype"),
        ("vllm", "--enforce-eagr", "did you mean --enforce-eager?", ""),
        ("vllm", "env.X", "write the option --attention-backend", ""),
        ("sglang", "--headless", "remove it: it is vllm's, and sglang has none of that name", ""),
    ],
)
def test_a_remedy_names_the_key_of_the_recipe(engine: str, subject: str, remedy: str, more: str) -> None:
    """Anyone who writes the right option under `flags` would be sent away once more."""
    finding = in_recipe(Finding("ENG001", Severity.OVERRIDE, subject, "t", remedy=remedy), engine)
    assert finding.remedy == (f"{remedy} (it is set by `{more}`)" if more else remedy)
