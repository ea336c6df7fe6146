"""Scores of other tools, in the formats that their programs write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sparkwright.adapters.run_files.formats import read
from sparkwright.domain.errors import UsageError
from sparkwright.domain.evaluation import ProbeState
from sparkwright.domain.run import Run
from sparkwright.evals.changes import refused

LM_EVAL = {
    "results": {
        "gsm8k": {
            "alias": "gsm8k",
            "exact_match,strict-match": 0.8749052312357847,
            "exact_match_stderr,strict-match": 0.009112601439849618,
            "exact_match,flexible-extract": 0.8771796815769523,
            "exact_match_stderr,flexible-extract": "N/A",
        },
        "ifeval": {
            "alias": "ifeval",
            "prompt_level_strict_acc,none": 0.8484288354898336,
            "inst_level_strict_acc,none": 0.88249,
        },
    },
    "versions": {"gsm8k": 3.0, "ifeval": 4.0},
    "n-samples": {"gsm8k": {"original": 1319, "effective": 1319}, "ifeval": {"original": 541, "effective": 541}},
    "model_name": "some-model",
    "lm_eval_version": "0.4.9",
}
IFEVAL = [
    {"follow_all_instructions": True, "follow_instruction_list": [True], "instruction_id_list": ["a:b"], "prompt": "x"},
    {
        "follow_all_instructions": False,
        "follow_instruction_list": [True, False],
        "instruction_id_list": ["a:b", "c:d"],
        "prompt": "y",
    },
]


def tool_eval(seed: int = 1, unanswered: int = 0) -> dict[str, Any]:
    """Two scenarios of category A as version 3.0.0 writes them, and some that had no answer."""
    status = ["pass", "fail", *("fail" for _ in range(unanswered))]
    results = [
        {
            "scenario_id": f"TC-0{n}",
            "status": one,
            "summary": "called \x1b[31mnothing",
            "expected_behavior": "a call",
            "tool_calls_made": [],
        }
        for n, one in enumerate(status)
    ]
    category = {"category": "A", "label": "Tool Selection", "earned": 2, "max": 4}
    counts = {"pass_count": 1, "partial_count": 0, "fail_count": 1}
    scores = {"total_points": 2, "max_points": 4, "scenario_results": results, "category_scores": [category | counts]}
    config, metadata = {"model": "some-model", "seed": seed}, {"scenario_selector": "all (2)"}
    return {"tool_eval_bench_version": "3.0.0", "config": config, "metadata": metadata, "scores": scores}


def written(folder: Path, content: object, name: str = "scores.json") -> Run:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return read(str(path))


def scores_by_name(run: Run) -> dict[str, tuple[int, int] | None]:
    assert run.evaluation
    return {one.name: (one.score.good, one.score.of) if one.score else None for one in run.evaluation.outcomes}


def test_tool_eval_bench(tmp_path: Path) -> None:
    """Points in all and by category; the failed scenario is evidence; runs of other seeds are not compared."""
    run = written(tmp_path, tool_eval())
    assert scores_by_name(run) == {"total": (2, 4), "A Tool Selection": (2, 4)}
    assert run.evaluation and [one.what.split()[0] for one in run.evaluation.outcomes[0].evidence] == ["TC-01"]
    assert (run.imported, run.conditions.model) == ("tool-eval-bench", "some-model")
    assert not refused(run, run, False)
    assert refused(run, written(tmp_path, tool_eval(seed=2)), False)


def test_scenarios_without_an_answer(tmp_path: Path) -> None:
    """They are counted and named as broken, for the tool leaves them out of its scores."""
    run = written(tmp_path, tool_eval(unanswered=3))
    assert run.evaluation and run.evaluation.counts[ProbeState.BROKEN] == 1 and not run.evaluation.passed
    assert run.evaluation.outcomes[1].failed == 3


def test_lm_eval(tmp_path: Path) -> None:
    """A share of whole samples gets its interval; a metric that is none keeps its value, without one."""
    run = written(tmp_path, LM_EVAL)
    assert scores_by_name(run) == {
        "gsm8k exact_match strict-match": (1154, 1319),
        "gsm8k exact_match flexible-extract": (1157, 1319),
        "ifeval prompt_level_strict_acc": (459, 541),
        "ifeval inst_level_strict_acc": None,
    }
    assert run.workload.name == "eval-lm-eval-gsm8k@3.0+ifeval@4.0"


def test_ifeval(tmp_path: Path) -> None:
    """Judged answers, a line each: prompts, instructions and each kind."""
    run = written(tmp_path, "\n".join(map(json.dumps, IFEVAL)), "eval_results_strict.jsonl")
    assert scores_by_name(run) == {"prompts": (1, 2), "instructions": (2, 3), "a:b": (2, 2), "c:d": (0, 1)}
    assert scores_by_name(written(tmp_path, IFEVAL[0])) == {"prompts": (1, 1), "instructions": (1, 1), "a:b": (1, 1)}


@pytest.mark.parametrize(
    "odd",
    [
        {"tool_eval_bench_version": "3.0.0", "scores": {}},
        {**tool_eval(), "scores": {**tool_eval()["scores"], "total_points": 5}},
        {"results": {}, "n-samples": {}},
        {"results": {"gsm8k": 1}, "n-samples": {}},
        {"follow_instruction_list": [True], "instruction_id_list": []},
    ],
)
def test_odd_files(tmp_path: Path, odd: object) -> None:
    """A missing or contradictory value is a usage error that names the file."""
    with pytest.raises(UsageError, match=r"scores\.json"):
        written(tmp_path, odd)


@pytest.mark.parametrize(
    ("lines", "problem"),
    (
        ([json.dumps(IFEVAL[0]), json.dumps(IFEVAL[1])[:30]], "line 2 is no JSON: was the file cut"),
        ([json.dumps({**IFEVAL[0], "follow_instruction_list": [True, False]})] * 2, "answer 1: 1 instructions, judged"),
        ([json.dumps({**IFEVAL[0], "follow_instruction_list": ["yes"]})] * 2, "judged \\['yes'\\]"),
        (['{"doc_id": 1, "resps": [["5"]], "exact_match": 1.0}'] * 2, "samples of lm-eval, without its scores"),
        (['{"doc_id": 1}'] * 2, "unknown format"),
        ([json.dumps({**LM_EVAL, "n-samples": {"gsm8k": {"effective": 10**30}}})], "samples"),
    ),
)
def test_files_that_are_odd(tmp_path: Path, lines: list[str], problem: str) -> None:
    """A cut file, a neighbour of the right one, and counts that cannot be: each is named as that."""
    with pytest.raises(UsageError, match=problem):
        written(tmp_path, "\n".join(lines), "lines.jsonl")


def test_names_are_one_line(tmp_path: Path) -> None:
    """Names of tasks come from a file: nothing in them draws on the terminal or breaks a table."""
    task = "gsm\x1b[31m8k\nnext"
    run = written(tmp_path, {**LM_EVAL, "results": {task: {"exact_match,none": 0.5}}, "model_name": "a\nb"})
    shown = [run.workload.name, run.workload.title, run.conditions.model, *scores_by_name(run)]
    assert not any("\n" in one or "\x1b" in one for one in shown), shown
