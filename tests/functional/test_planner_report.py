"""`make planner-report` on a file of rows, as somebody with rows of their own runs it; and our own page from ours."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import planner_report
import pytest
from planner_report_notes import judged, load_notes
from planner_report_stats import TARGETS, figures, targets_met

from unit.planner.report_samples import FACTS, MIXED, ROOT, SHARED, published_row

pytestmark = pytest.mark.full

HAS_DATA = pytest.mark.skipif(not planner_report.DATA.exists(), reason="data: ../shared is absent: the published rows")
# Held to what has been reached: a change of the planner may not lose it again.
REACHED = ("kv_tokens_given_gib", "weights_gib", "kv_gib", "fits", "decode_tps", "prefill_tps")
# Rows that failed, of which another has every condition in common and ran: their source leaves out what decides.
OPPOSITE = ("kubis-nemosuper-solo-c64", "alengr-q36-27b-nextn-oom")


def report(folder: Path, *rows: dict[str, Any]) -> list[dict[str, Any]]:
    """The lines of OUT, by `make`, as the Makefile has the words."""
    (folder / "models.jsonl").write_text("".join(f"{json.dumps(facts)}\n" for facts in (FACTS, MIXED)))
    (folder / "rows.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in rows))
    make = shutil.which("make")
    if not make:
        pytest.skip("make is not on the PATH")
    words = [make, "-s", "-C", str(ROOT), "-o", "setup", "planner-report", f"RUN={sys.executable}"]
    words += [f"DATA={folder / 'rows.jsonl'}", f"OUT={folder / 'out.jsonl'}"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, env={**os.environ, "MAKEFLAGS": ""})
    assert (done.returncode, done.stderr) == (0, "")
    assert "## In short" in done.stdout
    return [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]


def test_a_file_of_rows_becomes_a_file_of_answers(tmp_path: Path) -> None:
    """One object a row and quantity: predicted with an interval and error, or the reason why not."""
    point = {"depth": 0, "concurrency": 1, "tps": 30.0, "aggregate": False}
    known = published_row(
        id="known",
        max_num_seqs=8,
        weights_gib_per_node=4.9,
        kv_cache_gib=80.0,
        kv_cache_tokens=1_310_720,
        decode_tps=[point],
    )
    strange = published_row(id="strange", model="nobody/Knows-This", kv_cache_gib=80.0, kv_cache_tokens=1_310_720)
    lines = report(tmp_path, known, strange)
    found = {(line["id"], line["quantity"]): line for line in lines}
    tokens = found["known", "kv_tokens_given_gib"]
    # 32 layers x 2 x 8 heads x 128 numbers of one byte: 65,536 bytes a token.
    assert tokens["predicted"] == pytest.approx(80 * 2**30 / 65536, rel=0.001)
    assert tokens["error"] == pytest.approx(0, abs=0.001)
    assert found["known", "fits"]["predicted"] is True
    speed = found["known", "decode_tps"]
    assert speed["interval"][0] < speed["predicted"] < speed["interval"][1]
    unknown = found["strange", "kv_tokens_given_gib"]
    assert (unknown["predicted"], unknown["reason"]) == (None, "no facts about this model")


def test_rows_of_another_form_are_refused(tmp_path: Path) -> None:
    """A message with the file's name and exit code 2, no traceback."""
    (tmp_path / "rows.jsonl").write_text("no rows\n")
    words = [
        sys.executable,
        str(ROOT / "scripts/planner/planner_report.py"),
        "--data",
        str(tmp_path / "rows.jsonl"),
    ]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith(f"planner-report: {tmp_path / 'rows.jsonl'}: ")
    assert "Traceback" not in done.stderr


@pytest.mark.full
@HAS_DATA
def test_the_page_is_fresh_and_what_was_reached_stays_reached(capsys: pytest.CaptureFixture[str]) -> None:
    """docs/reference/planner-accuracy.md is what the planner reports today, and no target that was met is lost."""
    assert planner_report.main(["--check"]) == 0, f"make planner-report\n{capsys.readouterr().out}"
    answers, bugs = planner_report.answered(planner_report.load(planner_report.DATA))
    assert bugs == []
    kept = judged(load_notes(), answers)
    lost = [
        name for name in REACHED if not targets_met(TARGETS[name], figures([a for a in kept if a.quantity == name]))
    ]
    assert lost == []


@HAS_DATA
def test_opposite_results_of_the_same_conditions_are_that() -> None:
    """No verdict is given if two equal recipes were made from rows, and only one ran."""
    results: dict[str, set[bool]] = {}
    rows = {case.id: (repr(replace(case.recipe, title="")), case) for case in planner_report.load(planner_report.DATA)}
    for same, case in rows.values():
        results.setdefault(same, set()).add(bool(case.result.get("fits")))
    assert [results[rows[name][0]] for name in OPPOSITE] == [{True, False}] * len(OPPOSITE)
    answers, _ = planner_report.answered([rows[name][1] for name in OPPOSITE])
    assert all(one.passed for one in answers if one.quantity == "fits")


@HAS_DATA
def test_every_published_row_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    """Each shared row gives a case, and all but a few models are known."""
    cases = planner_report.load(planner_report.DATA)
    assert len(cases) == len(planner_report.DATA.read_text().splitlines())
    assert sum(1 for case in cases if not case.shape) <= 5
    assert SHARED == planner_report.SHARED
