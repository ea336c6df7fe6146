"""Results of evaluations by other tools: tool-eval-bench, lm-eval, and IFEval's own files of judged answers.

tool-eval-bench 3: https://github.com/SeraphimSerapis/tool-eval-bench (`--json-file`).
lm-eval: results_*.json of https://github.com/EleutherAI/lm-evaluation-harness (`--output_path`).
IFEval: eval_results_strict.jsonl and _loose.jsonl of
https://github.com/google-research/google-research/tree/master/instruction_following_eval
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

from sparkwright.domain.errors import UsageError
from sparkwright.domain.evaluation import Evaluation, ProbeEvidence, ProbeOutcome, ProbeState, Score
from sparkwright.domain.run import Run, RunConditions
from sparkwright.domain.workload import Workload
from sparkwright.evals.heard import shortened
from sparkwright.evals.score import wilson_score

Tree = Mapping[str, Any]
TOOL_EVAL, LM_EVAL, IFEVAL = "tool-eval-bench", "lm-eval", "ifeval"
_SHOWN, _NAMED, _TEXT = 100, 12, 2000  # failed scenarios: stored, listed, and characters of each of their texts
_COUNTS = ("pass", "partial", "fail")
_MOST = 10**8  # samples of a task
_SHARE = 1e-6  # how far a share of so many samples may be from a whole number of them


def is_tool_eval(tree: Tree) -> bool:
    return "tool_eval_bench_version" in tree and isinstance(tree.get("scores"), dict)


def read_tool_eval(tree: Tree) -> Run:
    """Raises KeyError, TypeError, ValueError for what is missing or odd."""
    config, version = tree.get("config") or {}, str(tree["tool_eval_bench_version"])[:20]
    ids = sorted(str(one["scenario_id"]) for one in tree["scores"]["scenario_results"])
    every = str((tree.get("metadata") or {}).get("scenario_selector", "")).startswith("all")
    which = "" if every else f"-{sha256(' '.join(ids).encode()).hexdigest()[:6]}"
    title, seed = f"{TOOL_EVAL} {version}, {len(ids)} scenarios", int(config.get("seed") or 0)
    found = Evaluation(TOOL_EVAL, tuple(_tool_eval(tree)))
    return _run(f"{TOOL_EVAL}-{version}{which}", title, str(config.get("model") or ""), found, seed)


def _tool_eval(tree: Tree) -> Iterator[ProbeOutcome]:
    scores, results = tree["scores"], tree["scores"]["scenario_results"]
    lost = [one for one in results if one["status"] != "pass"]
    unsafe = tree.get("safety_warnings") or []
    parts = [str(tree.get("rating", "")), f"{len(results) - len(lost)} of {len(results)} scenarios passed"]
    parts += [f"safety: {', '.join(map(str, unsafe))}"] if unsafe else []
    more = f" and {len(lost) - _NAMED} more" if len(lost) > _NAMED else ""
    names = ", ".join(str(one["scenario_id"]) for one in lost[:_NAMED])
    parts += [f"not passed: {names}{more}"] if lost else []
    shown = tuple(map(_scenario, lost[:_SHOWN]))
    rows = [(one, tuple(int(one[f"{name}_count"]) for name in _COUNTS)) for one in scores["category_scores"]]
    judged = sum(sum(counts) for _, counts in rows)
    total = _points(scores["total_points"], scores["max_points"], judged)
    detail = "; ".join(filter(None, parts))[:_TEXT]
    yield ProbeOutcome("total", ProbeState.SCORED, detail, len(results), len(lost), evidence=shown, score=total)
    if judged < len(results):
        detail = f"{len(results) - judged} scenarios had no answer: scores are of the other {judged}"
        yield ProbeOutcome("no answer", ProbeState.BROKEN, detail, len(results), len(results) - judged)
    for one, counts in rows:
        detail = "{} passed, {} in part, {} failed".format(*counts)
        rated = _points(one["earned"], one["max"], sum(counts))
        name = shortened(f"{one['category']} {one['label']}", 60)
        yield ProbeOutcome(name, ProbeState.SCORED, detail, sum(counts), counts[2], score=rated)


def _points(earned: int, most: int, scenarios: int) -> Score:
    """The interval is that of the scenarios: points of one are not independent."""
    earned, most = int(earned), int(most)
    if not 0 <= earned <= most:
        raise ValueError(f"{earned} of {most} points")
    wide = wilson_score(earned, most)
    both = wilson_score(round(wide.share * scenarios), scenarios)
    return replace(wide, low=min(both.low, wide.share), high=max(both.high, wide.share))


def _scenario(one: Tree) -> ProbeEvidence:
    what = f"{one['scenario_id']} {one['status']}: {one.get('summary') or ''}"
    calls = one.get("tool_calls_made") or []
    return ProbeEvidence(
        what[:_TEXT], str(one.get("expected_behavior") or "")[:_TEXT], "\n".join(map(str, calls))[:_TEXT]
    )


def is_lm_eval(tree: Tree) -> bool:
    return isinstance(tree.get("results"), dict) and ("n-samples" in tree or "lm_eval_version" in tree)


def read_lm_eval(tree: Tree) -> Run:
    """Raises KeyError, TypeError, ValueError for what is missing or odd."""
    tasks = sorted(map(str, tree["results"]))
    versions = "+".join(shortened(f"{task}@{(tree.get('versions') or {}).get(task, '?')}") for task in tasks)
    found = Evaluation(LM_EVAL, tuple(outcome for task in tasks for outcome in _task(tree, task)))
    model, asked = str(tree.get("model_name") or ""), f"{LM_EVAL}-{versions}"[:80]
    title = shortened(f"lm-eval {tree.get('lm_eval_version', '')}: {', '.join(tasks)}", 120)
    return _run(asked, title, model, found, 0)


def _task(tree: Tree, task: str) -> Iterator[ProbeOutcome]:
    """Each metric; one that is no share of the samples is no score here, only named with its standard error."""
    of = int(((tree.get("n-samples") or {}).get(task) or {}).get("effective", 0))
    if not 0 <= of <= _MOST:
        raise ValueError(f"{task}: {of} samples")
    for key, value in tree["results"][task].items():
        metric, _, kind = str(key).partition(",")
        if not kind or metric.endswith("_stderr") or isinstance(value, bool) or not isinstance(value, int | float):
            continue
        good = round(value * of)
        whole = of > 0 and 0 <= value <= 1 and abs(value * of - good) <= _SHARE * of
        error = tree["results"][task].get(f"{metric}_stderr,{kind}")
        detail = f"{value:.4g}" + (f", standard error {error:.2g}" if isinstance(error, int | float) else "")
        name = f"{task} {metric}" + ("" if kind == "none" else f" {kind}")
        yield ProbeOutcome(
            shortened(name, 80), ProbeState.SCORED, detail, of, score=wilson_score(good, of) if whole else None
        )


def is_ifeval(rows: Sequence[Any]) -> bool:
    return bool(rows) and all(isinstance(one, dict) and "follow_instruction_list" in one for one in rows)


def is_samples(rows: Sequence[Any]) -> bool:
    """True for the output of `lm_eval --log_samples`."""
    return bool(rows) and all(isinstance(one, dict) and "doc_id" in one and "resps" in one for one in rows)


def read_ifeval(rows: Sequence[Tree]) -> Run:
    """Prompts and instructions, and each kind of instruction. Raises KeyError, TypeError, ValueError."""
    kinds: dict[str, list[bool]] = {}
    for place, row in enumerate(rows, 1):
        ids, judged = row["instruction_id_list"], row["follow_instruction_list"]
        if len(ids) != len(judged) or not all(isinstance(one, bool) for one in judged):
            raise ValueError(f"answer {place}: {len(ids)} instructions, judged {judged!r:.60}")
        for kind, followed in zip(ids, judged, strict=True):
            kinds.setdefault(shortened(str(kind), 60), []).append(followed)
    prompts = [all(row["follow_instruction_list"]) for row in rows]
    every = [one for judged in kinds.values() for one in judged]
    named = {"prompts": prompts, "instructions": every, **dict(sorted(kinds.items()))}
    found = tuple(
        ProbeOutcome(
            name, ProbeState.SCORED, "", len(all_), len(all_) - sum(all_), score=wilson_score(sum(all_), len(all_))
        )
        for name, all_ in named.items()
    )
    return _run(IFEVAL, f"IFEval, {len(rows)} prompts", "", Evaluation(IFEVAL, found), 0)


def _run(name: str, title: str, model: str, found: Evaluation, seed: int) -> Run:
    if not found.outcomes:
        raise UsageError("the file has no score")
    terms = RunConditions("", shortened(model, 200) if model else "", client=found.kind, seed=seed)
    return Run(
        "",
        0.0,
        Workload(f"eval-{name}", title, (), seed=seed, repeats=1),
        terms,
        "done",
        imported=found.kind,
        evaluation=found,
    )
