"""Environment variables that an engine ignores without a word."""

import pytest

from sparkwright.domain.finding import Finding, Severity
from sparkwright.engines.flags import check_variables


def only_finding(engine: str, version: str, name: str) -> Finding:
    (finding,) = check_variables(engine, version, [name])
    return finding


def test_variables_that_the_engine_reads_pass() -> None:
    """Its own as well as those of libraries, which are not ours to judge; SGLang reads SGL_X as SGLANG_X."""
    assert (
        check_variables("vllm", "0.21.0", ["VLLM_HOST_IP", "NCCL_NET", "VLLM_NO_USAGE_STATS", "VLLM_NCCL_SO_PATH"])
        == ()
    )
    assert check_variables("vllm-ray", "0.21.0", ["VLLM_HOST_IP"]) == ()
    assert check_variables("sglang", "0.5.12", ["SGLANG_HOST_IP", "SGL_HOST_IP"]) == ()


@pytest.mark.parametrize(
    "name",
    ["SGLANG_FP8_PAGED_MQA_LOGITS_TORCH", "SGLANG_TOPK_TRANSFORM_512_TORCH", "SGLANG_OPT_USE_TILELANG_MHC_PRE",
     "SGLANG_OPT_USE_TILELANG_MHC_POST"],
)  # fmt: skip
def test_the_switches_of_seed_000_are_real(name: str) -> None:
    """0.5.12 reads all four; 0.5.10 none, and the finding reports from when on."""
    assert check_variables("sglang", "0.5.12", [name]) == ()
    assert "sglang has it from 0.5.12 " in only_finding("sglang", "0.5.10", name).evidence


def test_a_switch_that_exists_as_an_option_only_leads_there() -> None:
    """Report 001: SGLANG_DISABLE_CUDA_GRAPH does nothing in 0.5.12; 34 minutes went by before anybody saw."""
    finding = only_finding("sglang", "0.5.12", "SGLANG_DISABLE_CUDA_GRAPH")
    assert (finding.code, finding.severity, finding.subject) == (
        "ENG008",
        Severity.OVERRIDE,
        "env.SGLANG_DISABLE_CUDA_GRAPH",
    )
    assert "--disable-cuda-graph" in finding.remedy


def test_a_typo_names_the_variable_that_is_meant() -> None:
    """Silent in the engine."""
    assert only_finding("vllm", "0.21.0", "VLLM_CACHE_ROT").remedy == "did you mean VLLM_CACHE_ROOT?"


def test_what_an_image_adds_is_silent_only_when_the_recipe_states_it() -> None:
    """Report 003: no published vLLM reads VLLM_USE_B12X_MOE; the image's own build does."""
    assert "engine.extra_env" in only_finding("vllm", "0.21.0", "VLLM_USE_B12X_MOE").remedy
    assert only_finding("vllm", "0.21.1", "VLLM_USE_B12X_MOE").severity is Severity.WARN
    assert check_variables("vllm", "0.21.0", ["VLLM_USE_B12X_MOE"], ["VLLM_USE_B12X_MOE"]) == ()


def test_a_variable_on_its_way_out_names_its_successor() -> None:
    """SGLang's list of deprecated variables, taken from its environ.py."""
    finding = only_finding("sglang", "0.5.12", "SGLANG_ENABLE_THINKING")
    assert (finding.code, finding.severity, finding.remedy) == ("ENG007", Severity.WARN, "use SGLANG_DEFAULT_THINKING")


def test_an_engine_whose_variables_are_not_known_is_not_judged() -> None:
    """TensorRT-LLM's file holds options only: an empty list is no evidence."""
    assert check_variables("trtllm", "1.3.0rc13", ["TLLM_LOG_LEVEL"]) == ()
