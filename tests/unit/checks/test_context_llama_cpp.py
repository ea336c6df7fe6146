"""A context above the model's on llama.cpp, which starts all the same."""

from dataclasses import replace

from sparkwright.checks.catalog import check_all
from sparkwright.domain.check import Context
from sparkwright.domain.cluster import Cluster
from sparkwright.domain.finding import Finding, Severity
from unit.app.scene import recipe
from unit.planner.kv_samples import model_shape

SHAPE = replace(model_shape("qwen3-8b"), positions=2048)


def context_findings(context: int, **flags: object) -> list[Finding]:
    made = recipe("tiny-llama-cpp", context=context)
    made = replace(made, model=replace(made.model, shape=SHAPE, size=1 << 30), flags={**made.flags, **flags})
    every = check_all(Context(Cluster("", (), ""), recipe=made))
    return [finding for finding in every if finding.code == "MODEL013"]


def test_a_context_above_the_models_is_a_warning() -> None:
    """Recorded: `n_ctx_seq (1048576) > n_ctx_train (2048) -- possible training context overflow`."""
    (finding,) = context_findings(1048576)
    assert (finding.severity, finding.subject) == (Severity.WARN, "serving.context")
    assert finding.title == "the model supports 2,048 tokens, not 1,048,576" and "starts all the same" in finding.cause
    assert context_findings(2048) == []


def test_rope_scaling_of_the_recipe_makes_it_longer() -> None:
    """The owner has said how the positions are stretched."""
    assert context_findings(8192, **{"rope-scale": 4}) == []
