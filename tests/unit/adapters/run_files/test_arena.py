"""A Spark Arena submission: three files from a run of one's own deployment, and nothing private in them."""

import csv
import io
import json
from dataclasses import replace

import pytest
import yaml

from fakes.measured import KNOWN, PLAN, make_level, make_row, run
from sparkwright.adapters.run_files import arena, formats
from sparkwright.domain.errors import UsageError
from sparkwright.domain.workload import Pace
from sparkwright.loadgen.profiles import profile_text
from sparkwright.recipes.importers.draft import ImportOptions
from sparkwright.recipes.importers.importer import import_recipe
from sparkwright.recipes.workload_file import load_workload

ARGV = (
    "vllm", "serve", "/models/acme", "--served-model-name", "acme", "--host", "192.168.7.9", "--port", "8000",
    "--tensor-parallel-size", "2", "--nnodes", "2", "--node-rank", "0", "--master-addr", "192.168.7.1",
    "--speculative-config", '{"method":"mtp","num_speculative_tokens":2}', "--enable-expert-parallel",
)  # fmt: skip
TERMS = replace(
    KNOWN, ours=True, deployment="acme", recipe="acme", recipe_hash="abc", image="vllm/vllm-openai@sha256:1",
    engine="vllm", engine_version="0.26.0", flags=ARGV, nodes=("spark-1: GB10", "spark-2: GB10"),
)  # fmt: skip
TWO = replace(PLAN, name="c2", pace=Pace(concurrency=2))
RUN = run(make_level([make_row(0.1)]), make_level([make_row(0.1), make_row(0.2)], plan=TWO), conditions=TERMS)


def test_the_three_files_are_those_that_arena_takes() -> None:
    """Their names, and the columns and keys that sparkrun uploads."""
    files = arena.files_of(RUN, "acme/model-fp8")
    assert list(files) == ["recipe.yaml", "benchmark.csv", "metadata.json"]
    lines = list(csv.DictReader(io.StringIO(files["benchmark.csv"].decode())))
    assert [line["test_name"] for line in lines] == ["pp100 (c1)", "tg4 (c1)", "pp100 (c2)", "tg4 (c2)"]
    assert float(lines[1]["t_s_mean"]) == pytest.approx(50.0)
    assert (lines[1]["t_s_req_mean"], lines[1]["ttfr_mean"]) == (lines[1]["t_s_mean"], "")
    metadata = json.loads(files["metadata.json"])
    assert set(metadata) >= {"recipe", "timing", "cluster", "benchmark", "model", "runtime_info"}
    assert (metadata["cluster"]["node_count"], metadata["recipe"]["container_pinned"]) == (2, True)
    assert metadata["benchmark"]["framework"] == "sparkwright"


def test_its_recipe_has_the_options_and_no_private_place() -> None:
    """The recipe is enough to serve the same; addresses and paths of this cluster are nobody's business."""
    tree = yaml.safe_load(arena.files_of(RUN, "acme/model-fp8")["recipe.yaml"])
    assert (tree["model"], tree["runtime"], tree["min_nodes"]) == ("acme/model-fp8", "vllm-distributed", 2)
    assert tree["command"].startswith("vllm serve {model} \\\n  --served-model-name acme")
    assert "--tensor-parallel-size 2" in tree["command"]
    assert not any(word in tree["command"] for word in ("192.168", "/models", "node-rank", "--port"))


def test_its_recipe_imports_here_again() -> None:
    """The form is sparkrun's: the importer for it finds the model, the split and the drafts."""
    made = import_recipe(arena.files_of(RUN, "acme/model-fp8")["recipe.yaml"].decode(), "recipe.yaml", ImportOptions())
    tree = yaml.safe_load(made.text)
    assert (tree["model"]["id"], tree["parallelism"]["tp"], tree["speculation"]["tokens"]) == ("acme/model-fp8", 2, 2)


def test_its_csv_imports_here_again() -> None:
    """The same cells as a table."""
    back = formats.of_content(arena.files_of(RUN, "")["benchmark.csv"], "benchmark.csv")
    assert [one.plan.name for one in back.levels] == ["pp100 tg4", "pp100 tg4 (c2)"]
    assert next(one.mean for one in back.levels[0].stated if one.name == "decode") == pytest.approx(50.0)


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (replace(RUN, conditions=replace(TERMS, simulated=True)), "is simulated"),
        (replace(RUN, conditions=KNOWN), "no image and command"),
        (replace(RUN, imported="llama-benchy"), "no image and command"),
        (replace(RUN, conditions=replace(TERMS, engine="simulator")), "no runtime for simulator"),
        (replace(RUN, conditions=replace(TERMS, recipe_hash="")), "is not valid: provenance is incomplete"),
    ],
)
def test_what_arena_cannot_take_is_refused(found: object, why: str) -> None:
    """A figure without its recipe, or one that nobody measured, has no place on a leaderboard."""
    with pytest.raises(UsageError) as error:
        arena.files_of(found, "")  # type: ignore[arg-type]
    assert why in error.value.message


def test_the_profile_follows_arenas_order() -> None:
    """28 levels of 7 depths and 4 concurrencies, each once; the first and last as Spark Arena runs them."""
    workload = load_workload(profile_text("arena-v2"), "arena-v2.yaml")
    found = [(plan.shape.depth, plan.pace.concurrency, plan.requests) for plan in workload.levels]  # type: ignore[union-attr]
    assert (len(found), len(set(found)), workload.repeats) == (28, 28, 3)
    assert (found[:3], found[-1]) == ([(8192, 5, 5), (4096, 5, 5), (8192, 10, 10)], (100000, 10, 10))
    assert {depth for depth, *_ in found} == {0, 4096, 8192, 16384, 32768, 65535, 100000}
