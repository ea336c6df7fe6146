"""The model's quantization against the methods that an engine's version has."""

from dataclasses import replace

import pytest

from sparkwright.domain.recipe import EngineChoice
from sparkwright.engines.quantization import check_quantization
from unit.engines.samples import small

VLLM = small(EngineChoice("vllm", "0.21.0"))


@pytest.mark.parametrize("method", ["", "fp8", "modelopt", "gptq", "compressed-tensors", "auto-round", "mxfp4"])
def test_methods_that_the_engine_has(method: str) -> None:
    """Guards checkpoints that vLLM 0.21.0 loads."""
    assert check_quantization(VLLM, method) == ()


def test_a_method_that_it_has_not() -> None:
    """Guards that a checkpoint of another engine is refused by name, before its weights are read."""
    (finding,) = check_quantization(VLLM, "exl3")
    assert (finding.code, finding.severity) == ("ENG030", "override")
    assert finding.title == "vllm 0.21.0 has no quantization method exl3"
    assert "compressed-tensors" in finding.evidence
    (near,) = check_quantization(VLLM, "modelopt_fp5")
    assert near.remedy.endswith("the nearest name is modelopt_fp4")


def test_what_the_recipe_chooses_itself_is_left_to_the_engine() -> None:
    """Guards `flags: {quantization: ...}`: the engine converts or refuses, and ENG009 looks at the name."""
    assert check_quantization(replace(VLLM, flags={"quantization": "humming"}), "exl3") == ()


def test_an_engine_without_such_names_says_nothing() -> None:
    """Guards that nothing is guessed: llama.cpp reads GGUF, and of an unknown version nothing is known."""
    assert check_quantization(replace(VLLM, engine=EngineChoice("llama-cpp", "2026.10.11549")), "exl3") == ()
    assert check_quantization(replace(VLLM, engine=EngineChoice("no-such", "1.0")), "exl3") == ()
