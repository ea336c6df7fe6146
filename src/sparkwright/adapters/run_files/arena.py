"""The three files of a Spark Arena submission: recipe.yaml, benchmark.csv, metadata.json.

File names and keys as sparkrun 0.4 uploads them (cli/_arena_flow.py and benchmarking/base.py of
https://github.com/spark-arena/sparkrun); the CSV has llama-benchy's columns. `sparkrun arena` does the upload.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import orjson

from sparkwright import __version__
from sparkwright.adapters.run_files import llama_benchy_table
from sparkwright.domain.errors import UsageError
from sparkwright.domain.run import Run
from sparkwright.loadgen.validity import invalid
from sparkwright.recipes.sparkrun_file import recipe_text, runtime_of

PROFILE = "arena-v2"


def files_of(run: Run, model: str) -> Mapping[str, bytes]:
    """Name -> content. model: the checkpoint's id on the hub, '' takes the served name. Raises UsageError."""
    about = run.conditions
    if about.simulated:
        raise UsageError(f"{run.id} is simulated: made-up figures have no place on a leaderboard")
    if run.imported or not (about.image and about.flags and about.nodes):
        why = f"{run.id} has no image and command: Spark Arena takes a run together with the recipe that served it"
        raise UsageError(why, f"sparkwright bench DEPLOYMENT --profile {PROFILE} measures one of your deployments")
    if wrong := invalid(run):
        raise UsageError(f"{run.id} is not valid: {wrong[0]}", f"sparkwright runs show {run.id}")
    model = model or about.model
    recipe = recipe_text(model, about.image, about.engine, about.flags, len(about.nodes))
    metadata = orjson.dumps(_metadata(run, model, recipe), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    return {
        "recipe.yaml": recipe.encode(),
        "benchmark.csv": llama_benchy_table.write_csv(run),
        "metadata.json": metadata,
    }


def _metadata(run: Run, model: str, recipe: str) -> dict[str, Any]:
    """The framework is ours, whatever the columns are called: nobody shall take the figures for another tool's."""
    about, work = run.conditions, run.workload
    levels = [f"{plan.name}" for plan in work.levels]
    name, runtime = about.recipe or about.deployment, runtime_of(about.engine)
    of_recipe = {
        "name": name,
        "qualified_name": name,
        "type": "sparkrun",
        "model": model,
        "hf_model": model,
        "raw_container": about.image,
        "container": about.image,
        "container_pinned": "@sha256:" in about.image,
        "runtime": runtime,
        "runtime_full": runtime,
        "registry": None,
        "registry_git": "",
        "hash": sha256(recipe.encode()).hexdigest(),
    }
    times = {"start": _moment(run.began), "end": _moment(run.ended), "duration": max(run.ended - run.began, 0.0)}
    args = {"repeats": work.repeats, "seed": work.seed, "ignore_eos": work.ignore_eos, "levels": levels}
    return {
        "recipe": of_recipe,
        "timing": times,
        "cluster": {"cluster_id": about.deployment, "node_count": len(about.nodes)},
        "benchmark": {"framework": "sparkwright", "profile": f"{work.name}@{work.version}", "args": args},
        "model": {},
        "runtime_info": {f"{about.engine}_version": about.engine_version} if about.engine_version else {},
        "sparkwright": {"version": __version__, "run": run.id, "recipe_hash": about.recipe_hash},
    }


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()
