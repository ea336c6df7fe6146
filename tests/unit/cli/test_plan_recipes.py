"""Names by which recipes are known to serve the same model."""

from sparkwright.cli.plan_recipes import model_name
from unit.for_each import for_each


@for_each(
    "one, other, same",
    (
        ("nvidia/Qwen3.8-Flash-Next-NVFP4", "RadixArk/Qwen3.8-Flash-Next-NVFP4", True),
        ("deepseek-ai/DeepSeek-V4.1-Flash", "Mia-AiLab/DeepSeek-V4.1-Flash-EXL3-2.9bpw", True),
        ("deepseek-ai/DeepSeek-V4-Flash", "deepseek-ai/DeepSeek-V4.1-Flash", False),
        ("openai/gpt-oss-120b", "openai/gpt-oss-20b", False),
    ),
)
def test_owner_and_number_format_are_no_part_of_a_models_name(one: str, other: str, same: bool) -> None:
    """Guards that another model's recipe is never offered for this one."""
    assert (model_name(one) == model_name(other)) is same
