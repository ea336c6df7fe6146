"""`eval tool-eval-bench`: the real program of that project against a simulator."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from functional.bench.conftest import BenchShell, Start, endpoint_url
from functional.evals.conftest import PARSERS, QUICK

pytestmark = pytest.mark.full


def test_scores(bench_shell: BenchShell, simulator: Start) -> None:
    """Its scenarios are run and its scores stored, compared and reported; nothing of it stays in the folder."""
    server = endpoint_url(simulator(*PARSERS, **QUICK))
    code, out, err = bench_shell.run("eval", "tool-eval-bench", server, "--short", "--parallel", "4", "--json")
    assert code == 0, err
    run = json.loads(out)["run"]
    total, *categories = run["evaluation"]["outcomes"]
    assert (total["name"], total["cases"], total["score"]["of"]) == ("total", 15, 30)
    assert [one["name"][0] for one in categories] == ["A", "B", "C", "D", "E"]
    assert run["simulated"] and run["workload"]["name"].startswith("eval-tool-eval-bench-3.")
    code, out, _ = bench_shell.run("compare", "last", "last")
    assert (code, out.count("same")) == (0, 6)
    assert bench_shell.run("report", "last", "-o", "page.html")[0] == 0
    assert "TC-0" in (bench_shell.folder / "page.html").read_text()
    assert {path.name for path in bench_shell.folder.iterdir()} <= {
        "page.html",
        "home",
        ".local",
        ".config",
        ".cache",
        "tmp",
    }


@pytest.mark.full
def test_what_gives_no_score(bench_shell: BenchShell, simulator: Start) -> None:
    """A scenario that is none is refused by us (exit 2) or by the tool, whose reason is printed (exit 5)."""
    code, _, err = bench_shell.run("eval", "tool-eval-bench", "http://127.0.0.1:9", "--only", "x; rm -rf")
    assert (code, "such as TC-07" in err) == (2, True)
    server = endpoint_url(simulator(*PARSERS, **QUICK))
    code, _, err = bench_shell.run("eval", "tool-eval-bench", server, "--only", "TC-999")
    assert (code, "Unknown scenarios: TC-999" in err) == (5, True), err


def test_not_installed(bench_shell: BenchShell, tmp_path: Path) -> None:
    """The command to install it is printed without the extra, and nothing is asked."""
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['tool_eval_bench'] = None\n")
    # An interpreter of its own: the warm command has imported the package.
    process = bench_shell.start("eval", "tool-eval-bench", "http://127.0.0.1:9", PYTHONPATH=str(tmp_path), PATH="/bin")
    _, err = process.communicate(timeout=120)
    code = process.returncode
    assert (code, "pip install" in err and "[evals]" in err) == (2, True), err
