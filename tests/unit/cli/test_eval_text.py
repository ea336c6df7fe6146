"""The output of `eval` for a run."""

from dataclasses import replace

from sparkwright.app.bench.evaluate import workload
from sparkwright.cli.eval_text import document, eval_text
from sparkwright.domain.evaluation import Evaluation, ProbeOutcome, ProbeState
from sparkwright.domain.run import Run, RunConditions

FAILED = (
    ProbeOutcome("follows", ProbeState.PASSED),
    ProbeOutcome("tool-call", ProbeState.FAILED, "a call in `content`"),
)
CONDITIONS = RunConditions("http://node", "m", recipe="big@256k", engine="vllm", flags=("serve", "m", "--port", "8000"))
RUN = Run("r-1", 0.0, workload("probes", 0, "Probes"), CONDITIONS, "done", evaluation=Evaluation("probes", FAILED))


def with_flags(*flags: str, engine: str = "vllm") -> Run:
    return replace(RUN, conditions=replace(CONDITIONS, flags=flags, engine=engine))


def test_a_recipe_without_a_tool_parser_is_the_first_line() -> None:
    """Guards a page of exchanges that all have one reason."""
    first = eval_text(RUN).splitlines()[0]
    assert first.startswith("no tool parser in its recipe big@256k: without `parsers.tool` (--tool-call-parser)")
    assert document(RUN)["cause"] == first
    refused = replace(RUN, evaluation=Evaluation("probes", (replace(FAILED[1], state=ProbeState.UNSUPPORTED),)))
    assert eval_text(refused).splitlines()[0] == first
    assert eval_text(with_flags("serve", "--port", "1", engine="trtllm")).startswith("no tool parser")


def test_no_parser_is_claimed_to_be_missing_that_is_there_or_not_known_of() -> None:
    """Another reason, an engine that needs none, a server that nobody of ours started, or nothing that failed."""
    passed = replace(RUN, evaluation=Evaluation("probes", (ProbeOutcome("tool-call", ProbeState.PASSED),)))
    with_one = (("--tool-call-parser", "hermes"), ("--tool-call-parser=hermes",), ("--tool_call_parser", "hermes"))
    others = [with_flags("serve", *flags) for flags in with_one]
    for run in (*others, with_flags(), with_flags("serve", engine="llama-cpp"), with_flags("x", engine="odd"), passed):
        assert "no tool parser" not in eval_text(run) and "cause" not in document(run)
