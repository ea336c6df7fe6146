"""The model's quantization against the methods that an engine's version has."""

from dataclasses import replace

import pytest

from sparkwright.domain.finding import Severity
from sparkwright.domain.recipe import EngineChoice
from sparkwright.engines.flag_data import versions
from sparkwright.engines.identity import check_quantization
from unit.engines.samples import small_recipe
from unit.for_each import for_each

VLLM = small_recipe(EngineChoice("vllm", "0.21.0"))


@for_each("method", ["", "fp8", "modelopt", "gptq", "compressed-tensors", "auto-round", "mxfp4"])
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


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_every_version_is_checked(engine: str) -> None:
    """Guards that the data of no version lacks the names: then a wrong method passed without a word."""
    for version in versions(engine):
        recipe = replace(VLLM, engine=EngineChoice(engine, version))
        assert [f.code for f in check_quantization(recipe, "exl3")] == ["ENG030"], version
        assert check_quantization(recipe, "compressed-tensors") == ()


def test_a_neighbours_data_only_warn() -> None:
    """Guards versions without data of their own: what the nearest one lacked, they may have."""
    later = replace(VLLM, engine=EngineChoice("vllm", "0.22.0"))
    assert [f.severity for f in check_quantization(later, "exl3")] == [Severity.WARN]


def test_what_the_recipe_chooses_itself_is_left_to_the_engine() -> None:
    """Guards `flags: {quantization: ...}`: the engine converts or refuses, and ENG009 inspects the name."""
    assert check_quantization(replace(VLLM, flags={"quantization": "humming"}), "exl3") == ()


def test_an_engine_without_such_names_reports_nothing() -> None:
    """Guards that nothing is guessed: llama.cpp reads GGUF, and of an unknown version nothing is known."""
    assert check_quantization(replace(VLLM, engine=EngineChoice("llama-cpp", "2026.10.11549")), "exl3") == ()
    assert check_quantization(replace(VLLM, engine=EngineChoice("no-such", "1.0")), "exl3") == ()


def test_an_engine_that_a_file_describes_warns_for_a_method_that_it_does_not_list() -> None:
    """Guards `quantizations` of an engine's file: nothing read it once."""
    atlas = replace(VLLM, engine=EngineChoice("atlas", ""))
    (finding,) = check_quantization(atlas, "awq")
    assert (finding.code, finding.severity) == ("ENG030", Severity.WARN)
    assert finding.title == "atlas is not known to read awq" and "compressed-tensors" in finding.evidence
    assert check_quantization(atlas, "fp8") == () == check_quantization(atlas, "")
