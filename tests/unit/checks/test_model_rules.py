"""Rules about a model's files: what fixes a damaged one depends on what it is and on who has a whole copy."""

from dataclasses import replace

import pytest

from sparkwright.domain.checkpoint import Defect
from sparkwright.domain.recipe import Model
from unit.checks.samples import (
    ABSENT,
    BY_PATH,
    EMBEDDED,
    OTHERS,
    PLAYED,
    RECIPE,
    SHARD,
    WHOLE,
    context,
    flawed,
    make_disk,
    run_check,
)


def test_a_damaged_file_is_replaced_by_a_whole_copy() -> None:
    """Guards that nothing is asked of the user when another node has all of it: staging compares sizes."""
    where = flawed(Defect.SHORT, SHARD, "cut short", others={"spark-2": WHOLE})
    (finding,) = run_check("MODEL006", where)
    assert (finding.severity, "nothing to do" in finding.remedy) == ("warn", True)


@pytest.mark.parametrize(
    ("defect", "by_path", "hint"),
    [
        (Defect.POINTER, False, "git lfs pull"),
        (Defect.GARBAGE, True, "copy it again"),
        (Defect.GARBAGE, False, "hf download org/big"),
    ],
)
def test_a_file_that_is_no_weights_stops_the_start(defect: Defect, by_path: bool, hint: str) -> None:
    """Guards that a shard without a header is never taken for weights, and that its hint can be typed."""
    recipe = BY_PATH if by_path else RECIPE
    (finding,) = run_check("MODEL006", flawed(defect, SHARD, "is none", recipe=recipe))
    assert (finding.severity, hint in finding.remedy) == ("override", True)


def test_a_folder_is_fixed_where_it_lies() -> None:
    """Guards that the client is not sent to its own cache for a model that the recipe names by its path."""
    there = replace(RECIPE, model=Model("org/big", path="/models/big"))
    for code, defect in (("MODEL010", Defect.CONFIG), ("MODEL007", Defect.NO_INDEX), ("MODEL006", Defect.GARBAGE)):
        (finding,) = run_check(code, flawed(defect, "config.json", "is no JSON", recipe=there))
        assert finding.remedy.endswith("--local-dir /hub/big/snapshots/1"), code


def test_a_wrong_ref_is_reported_once() -> None:
    """Guards that MODEL001 does not call complete files an unfinished download."""
    assert run_check("MODEL001", flawed(Defect.REF, "refs/main", "ends with a newline")) == []


def test_remedies_can_be_typed() -> None:
    """Guards the words: the client keeps a file that it finds, so the damaged one goes first, with what it links to."""
    (damaged,) = run_check("MODEL006", flawed(Defect.SHORT, SHARD, "cut short: 3.0 GiB of 4.0 GiB"))
    assert damaged.evidence == f"/hub/big/snapshots/1: {SHARD} (cut short: 3.0 GiB of 4.0 GiB)"
    file = f"/hub/big/snapshots/1/{SHARD}"
    hint = f"on spark-1, for each of them: rm -f $(readlink -f {file}) {file}; then hf download org/big"
    assert damaged.remedy == hint
    (ref,) = run_check("MODEL005", flawed(Defect.REF, "refs/main", "ends with a newline"))
    assert ref.remedy == "on spark-1: mkdir -p /hub/big/refs && printf %s 1 > /hub/big/refs/main"


def test_absolute_model_path_is_found_below_home() -> None:
    """Guards that `/home/ai/models/x` and `~/models` are seen to be one file system."""
    recipe = replace(RECIPE, model=replace(BY_PATH.model, path="/home/ai/models/big"))
    where = context({"disks": (make_disk("~/models", 5),)}, recipe, checkpoints={"spark-1": ABSENT, "spark-2": WHOLE})
    assert [finding.code for finding in run_check("DISK001", where)] == ["DISK001"]


def test_a_real_engine_on_simulated_nodes_reads_real_files() -> None:
    """Guards that only the simulator is excused from having its model."""
    where = context(recipe=BY_PATH, checkpoints=OTHERS, cluster=EMBEDDED)
    assert [finding.code for finding in run_check("MODEL002", where)] == ["MODEL002"]
    played = replace(BY_PATH, engine=PLAYED.engine)
    assert run_check("MODEL002", context(recipe=played, checkpoints=OTHERS, cluster=EMBEDDED)) == []
