"""Rules about recipes: each fires and is silent where it should; how far contradictions may weigh."""

import re
from dataclasses import replace

import pytest

from sparkwright.checks.catalog import RECIPE, check_all
from sparkwright.domain.check import Context
from sparkwright.domain.finding import Severity
from sparkwright.domain.recipe import Expose, Gateway, Mod, RecipeState, Serving
from sparkwright.planner.parallelism import advise
from unit.checks.recipe_cases import (
    DSV4,
    FIRING,
    NVFP4,
    OWN_DSV4,
    PORTS,
    PULLED,
    SEES,
    SGLANG,
    SILENT,
    drafts,
    limit_context,
    on_node,
    planned,
    recipe,
    recipe_context,
)
from unit.checks.samples import ODD, run_check, severities
from unit.engines.samples import SHIPPED, shipped
from unit.for_each import for_each

TWO_SIDES = ("RCP010", "RCP019", "RCP021", "RCP022", "RCP029", "RCP030")


@for_each("code", FIRING)
def test_it_fires_with_evidence_and_remedy(code: str) -> None:
    """Guards that a rule finds its defect, proves it and reports what to do."""
    (check,) = [check for check in RECIPE if code == check.code]
    findings = run_check(code, FIRING[code])
    assert findings and all(f.evidence and f.remedy and f.subject for f in findings)
    assert {f.severity for f in findings} == {check.severity}


@for_each("code, why, where", SILENT, ids=lambda value: value if isinstance(value, str) else "")
def test_it_is_silent(code: str, why: str, where: Context) -> None:
    """Guards that a rule holds only under its conditions."""
    assert run_check(code, where) == []


@for_each("code", TWO_SIDES)
def test_where_sources_contradict_each_other_it_only_informs(code: str) -> None:
    """Guards that folklore with two sides weighs nothing and names both."""
    assert {f.severity for f in run_check(code, FIRING[code])} == {Severity.INFO}
    assert all(";" in f.cause for f in run_check(code, FIRING[code]))


def test_an_exact_name_is_taken_as_it_is() -> None:
    """Guards NCCL's own reading: `=` asks for the whole name, and nothing is no name."""
    for value in ("=roce", "", "rocep1s0f1"):
        (finding,) = run_check("RCP002", on_node({"NCCL_IB_HCA": value}, rdma=PORTS))
        assert finding.title.startswith(f"NCCL_IB_HCA={value}: ")


def test_flash_attention_3_is_found_wherever_it_is_asked_for() -> None:
    """Guards SGLang's own flag for prefill, and that vLLM, which falls back automatically, is only reported."""
    assert severities("RCP018", recipe_context(None, SGLANG, flags={"prefill-attention-backend": "fa3"})) == [
        Severity.OVERRIDE
    ]
    for version, said in ((3, [Severity.INFO]), (2, [])):
        assert severities("RCP018", recipe_context(flags={"attention-config": {"flash_attn_version": version}})) == said


def test_what_chooses_the_kernel_of_experts() -> None:
    """Guards what vLLM's sources read for experts: FlashInfer's variable first, and the GEMM backend not at all."""
    linear, marlin = {"VLLM_NVFP4_GEMM_BACKEND": "marlin"}, {"VLLM_TEST_FORCE_FP8_MARLIN": "1"}
    (finding,) = run_check("RCP008", recipe_context(NVFP4, env=linear))
    assert finding.evidence.endswith("VLLM_NVFP4_GEMM_BACKEND is for linear layers")
    assert run_check("RCP008", recipe_context(NVFP4, env=linear | marlin)) == []
    (finding,) = run_check("RCP008", recipe_context(NVFP4, env=marlin | {"VLLM_USE_FLASHINFER_MOE_FP4": "1"}))
    assert finding.evidence == "VLLM_USE_FLASHINFER_MOE_FP4=1"
    assert severities("RCP008", recipe_context(NVFP4, "vllm 0.26.0")) == [Severity.INFO]
    (finding,) = run_check("RCP008", recipe_context(NVFP4, "vllm 0.33.0", flags={"moe-backend": "flashinfer_cutlass"}))
    assert finding.evidence == "moe-backend: flashinfer_cutlass"


def test_the_ceiling_of_memory_weighs_by_how_far_it_is_passed() -> None:
    """Guards the two limits of two nodes, and that SGLang's are lower."""
    assert severities("RCP007", limit_context(0.84)) == [Severity.INFO]
    assert severities("RCP007", limit_context(0.86)) == [Severity.WARN]
    assert severities("RCP007", limit_context(0.85, 2, SGLANG)) == [Severity.WARN]
    assert "Xid 43" in run_check("RCP007", limit_context(0.91, 1))[0].cause


def test_marlin_without_the_variable_weighs_less_where_it_is_served_so() -> None:
    """Guards that the version decides: vllm-project's recipe for 0.28 leaves the variable out."""
    assert severities("RCP009", recipe_context(NVFP4, "vllm 0.28.0", flags={"moe-backend": "marlin"})) == [
        Severity.INFO
    ]


def test_an_engine_of_ones_own_may_be_forced() -> None:
    """Guards that a local version, whose builder may have what is missing, is not blocked for good."""
    assert severities("COMPAT001", recipe_context(DSV4, "sglang 0.5.12+mine")) == [Severity.OVERRIDE]
    assert severities("COMPAT001", recipe_context(DSV4, "sglang 0.5.12.post1")) == [Severity.BLOCK]


def test_both_splits_are_weighed_where_the_model_is_known() -> None:
    """Guards that the advisor's own estimate is next to what the sources report."""
    asked = shipped("minimax-m2.7-nvfp4")
    (finding,) = run_check("RCP029", replace(planned(asked), advice=advise(asked, {})))
    assert re.fullmatch(r"tp 2: \d+ to \d+ ms a step .*; tp 2 \+ ep: \d+ to \d+ ms a step .*", finding.evidence)


def test_a_build_of_the_wrong_pull_request_is_blocked() -> None:
    """Guards report 003's dead end: pull request 40082 does not fit its own libraries."""
    (finding,) = [f for f in run_check("COMPAT001", planned(PULLED)) if "OperandMajorMode" in f.evidence]
    assert "41834" in finding.remedy


def test_a_refused_recipe_states_its_reason_once() -> None:
    """Guards that the table adds nothing to what the recipe itself reports."""
    refused = planned(replace(OWN_DSV4, state=RecipeState.REFUSED, state_reason="no sm_121 kernel"))
    assert [f.code for f in check_all(refused) if f.severity is Severity.BLOCK] == ["REC001"]


OPEN = Serving(expose=Expose.ALL)
ADAPTERS = {"VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1"}
ROUTE = Serving(expose=Expose.ALL, gateway=Gateway(routes=("POST /v1/load_lora_adapter",)))


@for_each(
    "code, where, severity",
    [
        ("RCP031", recipe_context(env=ADAPTERS), Severity.WARN),
        ("RCP031", recipe_context(env=ADAPTERS, serving=OPEN), Severity.WARN),
        ("RCP031", recipe_context(env=ADAPTERS, serving=ROUTE), Severity.BLOCK),
        ("RCP031", recipe_context(env={"PYTHONPATH": "/x"}, serving=OPEN), Severity.WARN),
        ("RCP031", recipe_context(flags={"trust_remote_code": True}, serving=OPEN), Severity.INFO),
        ("RCP031", recipe_context(flags={"kv-transfer-config": {"kv_connector": "X"}}), Severity.WARN),
        ("RCP032", recipe_context(flags={"allowed-local-media-path": "/srv"}), Severity.WARN),
        ("RCP032", recipe_context(flags={"allowed-local-media-path": "/srv"}, serving=OPEN), Severity.BLOCK),
        (
            "RCP032",
            recipe_context(None, SGLANG, flags={"enable-custom-logit-processor": True}, serving=OPEN),
            Severity.BLOCK,
        ),
        ("RCP032", recipe_context(flags={"enable-prompt-embeds": "true"}, serving=OPEN), Severity.BLOCK),
        ("RCP033", recipe_context(SEES), Severity.INFO),
        ("RCP033", recipe_context(SEES, serving=OPEN), Severity.WARN),
        ("RCP033", recipe_context(SEES, SGLANG), Severity.WARN),
        ("RCP033", recipe_context(SEES, SGLANG, serving=OPEN), Severity.OVERRIDE),
    ],
)
def test_power_that_is_given_away_weighs_by_who_gets_it(code: str, where: Context, severity: Severity) -> None:
    """Guards that a client without trust gets neither code nor files by a recipe with `expose: all`."""
    assert severities(code, where) == [severity]


def test_what_is_shipped_as_ready_has_nothing_above_info() -> None:
    """Guards that our own recipes keep our own rules; what informs is two-sided or stated by their own notes."""
    named = [path.stem for path in SHIPPED.glob("*.yaml")]
    every = [shipped(name, profile) for name in named for profile in shipped(name).profiles or ("",)]
    ready = [Context(recipe_context().cluster, recipe=recipe) for recipe in every if recipe.state is RecipeState.READY]
    said = {
        (finding.severity, finding.code) for where in ready for check in RECIPE for finding in check.findings(where)
    }
    assert said == {
        (Severity.INFO, code) for code in ("COMPAT002", "RCP009", "RCP010", "RCP029", "RCP030", "RCP031", "RCP033")
    }


ODD_VALUES = (None, True, -1, 1e308, "", "²", "{", '{"max_new_tokens": "²"}', [1, None], {"x": {}}, {"": []}, "a,=,^,:")
FLAGS = sorted({name for case in FIRING.values() if case.recipe for name in case.recipe.flags})
NAMES = sorted({name for case in FIRING.values() for spec in case.specs for name in spec.env})


@pytest.mark.parametrize("engine", ["vllm 0.21.0", "vllm-ray 1..2", SGLANG, "trtllm main", "llama-cpp b9"])
def test_no_recipe_makes_a_rule_raise(engine: str) -> None:
    """Guards that flags and variables of any kind, on nodes of which nothing is known, give findings or silence."""
    facts = dict.fromkeys(("rdma", "interfaces", "memory", "driver", "gpus"), ODD)
    for odd in ODD_VALUES:
        asked = recipe(DSV4, engine, flags=dict.fromkeys(FLAGS, odd), **drafts("mtp"))
        where = planned(asked, facts, dict.fromkeys(NAMES, str(odd)))
        assert all(finding.code for check in RECIPE for finding in check.findings(where))


def test_a_template_of_somebody_else_is_approved_too() -> None:
    """The finding says plainly that it is no script, and what it can do all the same."""
    template = Mod("t", {"t.jinja": "{{ messages }}"}, "")
    (one,) = [found for found in check_all(recipe_context(mods=(template,))) if found.code == "RCP035"]
    assert one.severity is Severity.OVERRIDE and "chat template only, no script: t.jinja" in one.evidence
    assert "decides what the model reads" in one.evidence and template.digest in one.remedy
