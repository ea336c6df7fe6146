"""The plan of the drills covers what was promised, and no stage runs into the loop guard."""

from dataclasses import replace
from pathlib import Path

import pytest

from drills.drill import Drill
from drills.figures import DrillRecord, DrillTarget, FigureRow, figure_row, leaked, with_leak
from drills.footprint import summary
from drills.outage import View
from drills.plan import FULL, QUICK, DrillStage, stage_names
from drills.results import Circumstances, DrillResult, file_name, load, save
from drills.table import results_page, results_text
from drills.watch import Sight
from sparkwright.domain.units import GIB
from sparkwright.supervisor.core.detect.memory import floors
from sparkwright.supervisor.core.state import Policy
from unit.for_each import for_each

PROMISED = {
    "worker SIGKILL", "head SIGKILL", "worker stopped by hand", "worker frozen", "head API frozen", "deadlock", "leak",
    "memory limit", "garbage", "ssh cut", "fabric cut", "worker reboot", "head reboot", "both reboot", "disk full",
    "supervisor killed in draining", "supervisor killed in starting", "supervisor killed in loading", "crash loop",
    "image removed", "port stolen", "docker restarted", "long prefill", "burst", "soak", "soak, unscaled",
    "acceptance drifts", "prefix hits drift", "deadlock, unscaled", "supervisor killed in backing_off",
    "rank 1 killed next to another deployment", "rank 1 of two deployments killed", "rank 0 stopped by SIGSTOP",
    "supervisor killed", "Caddy killed", "key check killed", "client errors before a kill", "body of 80 MB",
    "200 clients at once", "slow headers", "fabric link down for 20 s", "fabric link down for 70 s", "dockerd stopped",
    "worker rebooted, processes", "head rebooted, processes", "four faults in half an hour", "maintenance evening",
    "disk of the head full", "disk of the worker full", "up next to another's up", "down next to another's up",
    "up of a change that fails", "up --replace", "supervisor stopped by SIGSTOP",
    "supervisor stopped, then a rank killed", "sshd of the head dead", "host key of the worker changed",
    "CA deleted, Caddy killed", "history overwritten", "both nodes rebooted", "half of the fabric's packets lost",
    "state folder read-only", "/tmp of the head full", "address of the worker on the head", "worker rebooted twice",
    "serving.expose changed", "two people",
}  # fmt: skip


def test_all_promised_drills_are_there() -> None:
    """A fault that nobody tries proves nothing; the quick half is a part of the whole."""
    assert PROMISED - set(stage_names(FULL)) == set()
    assert set(stage_names(QUICK)) - set(stage_names(FULL)) == set()


def test_no_two_drills_keep_their_results_under_one_name() -> None:
    """The later one would pass for the earlier."""
    assert len({file_name(name) for name in stage_names(FULL)}) == len(stage_names(FULL))


@for_each("stage", [*QUICK, *FULL])
def test_a_stage_stays_below_the_loop_guard(stage: DrillStage) -> None:
    """Its drills share one deployment: a relaunch too many would be refused for a good reason."""
    launches, _ = min(Policy().windows, key=lambda window: window[1])
    assert sum(drill.target.relaunches for drill in stage.drills if isinstance(drill, Drill)) <= launches


def test_a_leak_is_measured_against_the_headroom() -> None:
    """One of 16 GiB is gone in 100 s: its share of the part above the floor, and the time that the rest lasts."""
    floor = floors(16 * GIB).refuse / GIB
    memory = [(100.0, 16.0 * GIB), (150.0, 15.5 * GIB), (200.0, 15.0 * GIB), (300.0, 9.0 * GIB)]
    assert leaked(memory, 210.0) == pytest.approx((1 / (16 - floor), (15 - floor) * 100))
    sights = (Sight(200.0, "degraded", troubles=("leak",)),)
    target = DrillTarget("trouble", None, None, None, 0, 0, ("degraded",))
    seen = DrillRecord(100.0, Sight(90.0, "ready"), sights)
    assert with_leak(figure_row("x", "y", target, seen), memory, seen).passed
    late = DrillRecord(100.0, Sight(90.0, "ready"), (Sight(300.0, "degraded", troubles=("leak",)),))
    found = with_leak(figure_row("x", "y", target, late), memory, late)
    assert [words.split()[0] for words in found.missed] == ["left:", "share"]


def test_the_footprint_is_the_worst_size_and_the_mean_share() -> None:
    """Processor seconds between the first and the last look, by process that was there at both."""
    looks = [
        (0.0, {"run": (50.0, 1.0), "door": (40.0, 0.0)}),
        (50.0, {"run": (70.0, 1.2), "door": (40.0, 1.0)}),
        (100.0, {"run": (60.0, 1.5), "door": (40.0, 2.0)}),
    ]
    found = summary(looks)
    assert found["run"].startswith("70.0 MB, 0.50% of a core over 100 s: within")
    assert found["door"].startswith("40.0 MB, 2.00% of a core over 100 s: over")


MADE = FigureRow("x", "a fault", 2.5, None, 9.0, 4.0, "draining > ready", lost=1, missed=("noticed late",), scale=0.1)
WHEN = Circumstances("2026-11-22 03:00", 0.4, 2.0, "abc1234+", 2, "3.11.7")


def test_what_is_missed_is_shown_everywhere() -> None:
    """A miss is on the terminal and in the page, which reports how each was measured and what was not."""
    shown = results_text([DrillResult(MADE, WHEN)])
    assert "MISSED" in shown and "noticed late" in shown
    written = results_page([DrillResult(MADE, WHEN, {"run": "60 MB"})], ["x", "y"])
    assert "| x | 2.5 s | - | 9.0 s | 4.0 s | 1 |" in written and "by 0.1" in written
    assert "0 of 1 drills meet all their targets. Not measured: y." in written
    assert "2026-11-22 03:00 UTC at abc1234+, load 0.4, the engine's own start 2.0 s" in written
    assert "- run: 60 MB" in written


def test_a_result_is_kept_until_its_drill_is_run_again(tmp_path: Path) -> None:
    """The results come in the order of the plan, as measured."""
    seen = View((2.0, None), "3 x 503", "ready (exit 0) 0-9 s", ("rank 1 ended; 2 s away",))
    one, other = (
        DrillResult(MADE, WHEN, {"run": "60 MB"}),
        DrillResult(replace(MADE, name="y", missed=()), WHEN, view=seen),
    )
    file = tmp_path / "results.json"
    save(file, tmp_path, one)
    save(file, tmp_path, replace(other, log="words"))
    save(file, tmp_path, one)
    assert load(file, ["y", "z", "x"]) == [other, one]
    assert (tmp_path / "y.log").read_text() == "words"


def test_an_outage_is_a_row_of_its_own_table() -> None:
    """The row has the clients' answers, the output of `status`, and the misses."""
    seen = View((2.0, None), "3 x 503", "ready (exit 0) 0-9 s", ("rank 1 | ended; 2 s away",))
    row = "| x | 2.0 s, not back | 3 x 503 | ready (exit 0) 0-9 s | rank 1 / ended; 2 s away | MISSED: noticed late |"
    written = results_page([DrillResult(MADE, WHEN, view=seen)], ["x"])
    assert row in written and "0 of 1 meet all their targets." in written
