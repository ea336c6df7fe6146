"""Results of `sparkrun benchmark`: its YAML, which holds the JSON of llama-benchy or tool-eval-bench and the recipe.

Its `result.yaml`, in the folder of an interrupted benchmark, holds the tool's results alone.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sparkwright.adapters.run_files import llama_benchy, scores
from sparkwright.domain.errors import UsageError
from sparkwright.domain.run import Run

TOOL = "sparkrun benchmark"
KEY = "sparkrun_benchmark"
Tree = Mapping[str, Any]


def is_sparkrun(tree: Any) -> bool:
    return isinstance(tree, Mapping) and (isinstance(tree.get(KEY), Mapping) or {"json", "stdout"} <= set(tree))


def read(tree: Tree) -> Run:
    """The run that the benchmark tool measured, with the recipe's image as a condition. Raises UsageError."""
    found = tree.get(KEY) or {"results": tree}
    results, bench = found.get("results") or {}, found.get("benchmark") or {}
    inner = results.get("json") if isinstance(results, Mapping) else None
    framework = str(bench.get("framework") or "?")[:60]
    if not isinstance(inner, Mapping) or not inner:
        raise UsageError(f"the file holds no JSON of {framework} under results.json: nothing was measured")
    if llama_benchy.is_llama_benchy(inner):
        run = llama_benchy.read(inner)
    elif scores.is_tool_eval(inner):
        run = scores.read_tool_eval(inner)
    else:
        raise UsageError(f"results of {framework}, which is not known here: llama-benchy and tool-eval-bench are")
    recipe, cluster = found.get("recipe") or {}, found.get("cluster") or {}
    known = cluster.get("runtime_info") or {}
    engine_version = _version(known, str(recipe.get("runtime") or ""))
    terms = replace(
        run.conditions,
        model=run.conditions.model or str(recipe.get("model") or "")[:200],
        recipe=str(recipe.get("qualified_name") or recipe.get("name") or "")[:200],
        image=str(recipe.get("container") or "")[:300],
        engine=str(recipe.get("runtime") or "")[:60],
        engine_version=engine_version[:60],
    )
    nodes = f" on {cluster['node_count']} nodes" if cluster.get("node_count") else ""
    note = f"{run.note}; by sparkrun at {found.get('timestamp', '?')}, TP {cluster.get('tp', '?')}{nodes}"
    return replace(run, conditions=terms, note=note.removeprefix("; ")[:500])


def _version(known: Mapping[Any, Any], runtime: str) -> str:
    """The version under the engine's own name, as sparkrun's runtimes write it (`version_commands`, 0.4.2)."""
    engine = runtime.replace("-", "_")
    names = (str(key) for key in known)
    return next((str(known[name]) for name in names if name and name.removesuffix("_version") in engine), "")
