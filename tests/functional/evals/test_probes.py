"""`eval probes`: the real command against a simulator, odd servers, and llama.cpp's real server."""

from __future__ import annotations

import asyncio
import json
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fakes.ports import free_port
from functional.bench.conftest import BenchShell, Start, endpoint_url
from functional.bench.odd import OddServer, served
from functional.evals.conftest import PARSERS, QUICK
from sparkwright.evals.catalog import PROBES


def probed(shell: BenchShell, *words: str) -> tuple[int, dict[str, Any], dict[str, str]]:
    """Exit code, the run, and the state of each probe."""
    code, out, err = shell.run("eval", "probes", *words, "--json")
    run = json.loads(out).get("run")
    assert run, err
    return code, run, {one["name"]: one["state"] for one in run["evaluation"]["outcomes"]}


def test_a_healthy_server(bench_shell: BenchShell, simulator: Start, tmp_path: Path) -> None:
    """All pass; the run is listed, shown and reported as an evaluation, survives an export, and is no benchmark."""
    code, run, states = probed(
        bench_shell, endpoint_url(simulator(*PARSERS, **QUICK)), "--longest", "3000", "--tag", "first"
    )
    assert (code, states) == (0, dict.fromkeys(PROBES, "passed"))
    assert (run["simulated"], run["passed"], run["state"]) == (True, True, "done")
    (listed,) = bench_shell.saved()
    assert (listed["kind"], listed["workload"], listed["tags"]) == ("eval probes", "eval-probes@1", ["first"])
    _, shown, _ = bench_shell.run("runs", "show", "first")
    assert "SIMULATED" in shown and "21 passed" in shown
    assert bench_shell.run("report", "first", "-o", "page.html")[0] == 0
    assert "tool-stream" in (bench_shell.folder / "page.html").read_text()
    _, post, _ = bench_shell.run("report", "first", "--format", "md")
    assert "| tool-stream | passed |" in post
    assert bench_shell.run("runs", "export", "first", "run.json")[0] == 0
    assert bench_shell.run("runs", "delete", "first", "--yes")[0] == 0
    assert bench_shell.run("runs", "import", "run.json")[0] == 0
    assert "21 passed" in bench_shell.run("runs", "show", "last")[1]
    code, out, _ = bench_shell.run("compare", "last", "last")
    assert (code, out.count("same")) == (0, len(PROBES))
    code, _, err = bench_shell.run("bench", "--resume", "last")
    assert (code, "is an evaluation" in err) == (2, True)


def test_a_fault(bench_shell: BenchShell, simulator: Start) -> None:
    """A parser that fails is named with what that means, and the exchange is in the report."""
    there = endpoint_url(simulator(*PARSERS, **QUICK, SPARKWRIGHT_SIMULATOR_FAULT="wrong@stream_arguments"))
    code, out, _ = bench_shell.run("eval", "probes", there, "--only", "tool-stream,stream")
    assert code == 1
    assert "FAILED tool-stream" in out and "means:" in out and "hint:" in out and "POST /v1/chat/completions" in out
    _, post, _ = bench_shell.run("report", "last", "--format", "md")
    assert "1 failed" in post


@pytest.mark.full
def test_without_parsers(bench_shell: BenchShell, simulator: Start) -> None:
    """A server that refuses tools: unsupported with its message, what needs them is skipped; no failure, no pass."""
    code, run, states = probed(
        bench_shell, endpoint_url(simulator(**QUICK)), "--only", "tool-stream", "--only", "usage"
    )
    assert (code, states) == (
        0,
        {"follows": "passed", "tool-call": "unsupported", "tool-stream": "skipped", "usage": "passed"},
    )
    assert "--enable-auto-tool-choice" in run["evaluation"]["outcomes"][1]["detail"]


def test_refused_parameters(bench_shell: BenchShell) -> None:
    """Each refusal is counted and named; a server that ignores what it is asked fails."""
    with served(OddServer(refused=("logprobs", "response_format", "stop"))) as odd:
        code, run, states = probed(
            bench_shell, odd.url, "--only", "json-schema,logprobs,usage,stop,choices,tool-choice"
        )
    assert code == 1
    assert (states["json-schema"], states["logprobs"], states["choices"]) == ("unsupported",) * 3
    assert states["tool-choice"] == "failed"
    named = {one["name"]: one["detail"] for one in run["evaluation"]["outcomes"]}
    assert "Extra inputs are not permitted: logprobs" in named["logprobs"]
    assert "engine" in named["choices"]


def test_a_server_that_dies(bench_shell: BenchShell) -> None:
    """The results until then are stored; the probe without an answer is broken, the others are skipped: exit 5."""
    with served(OddServer(closes=8)) as odd:
        code, _, states = probed(bench_shell, odd.url, "--only", "stop,usage,length,batch")
    assert code in (1, 5)
    assert "broken" in states.values() and states["batch"] == "skipped", states


@pytest.mark.full
@pytest.mark.parametrize(
    ("odd", "words", "states", "named"),
    (
        (OddServer(closes=10), (), {"broken", "skipped", "failed"}, "does not answer any more"),
        (OddServer(page_after=10), (), {"broken", "skipped", "failed"}, "HTML instead of JSON"),
        (OddServer(drips=True), ("--seconds", "6"), {"skipped"}, "the time was up"),
        (OddServer(huge=17 << 20), ("--only", "follows,tool-turns"), {"failed", "skipped"}, "no answer of this API"),
        (
            OddServer(refused=("tools", "logprobs")),
            (),
            {"failed", "skipped", "unsupported"},
            "not permitted: logprobs",
        ),
        (OddServer(usage=False), ("--only", "usage"), {"failed"}, "usage counts 0 prompt and 0 completion tokens"),
    ),
    ids=("closes", "page", "drips", "huge", "refuses", "no usage"),
)
def test_no_odd_server_is_passed(
    bench_shell: BenchShell, odd: OddServer, words: tuple[str, ...], states: set[str], named: str
) -> None:
    """One that dies, sends pages, drips, floods or refuses: every probe has its state and why; none of these passes."""
    with served(odd):
        code, run, found = probed(bench_shell, odd.url, *words)
    assert code in (1, 5), run
    judged = {name: state for name, state in found.items() if state != "passed"}
    assert set(judged.values()) <= states and judged, found
    details = [one["detail"] for one in run["evaluation"]["outcomes"] if one["name"] in judged]
    assert all(details) and any(named in detail for detail in details), details


def test_html(bench_shell: BenchShell) -> None:
    """A page of a proxy is named as that before anything is judged."""
    with served(OddServer(html=True)) as odd:
        code, _, err = bench_shell.run("eval", "probes", odd.url, "--model", "any")
    assert (code, "html" in err.lower()) == (5, True), err


@pytest.mark.full
def test_misuse(bench_shell: BenchShell) -> None:
    """Unknown probes get the nearest name; no target and two targets are usage errors."""
    code, _, err = bench_shell.run("eval", "probes", "http://127.0.0.1:1", "--only", "tool-cal")
    assert (code, "did you mean tool-call?" in err) == (2, True)
    assert bench_shell.run("eval", "probes")[0] == 2
    assert bench_shell.run("eval", "probes", "http://a", "--base-url", "http://b")[0] == 2


def test_a_dry_run(bench_shell: BenchShell) -> None:
    """Lists the probes; nothing is asked."""
    code, out, _ = bench_shell.run("eval", "probes", "http://127.0.0.1:1", "--quick", "--dry-run", "--json")
    assert (code, list(json.loads(out)["probes"])) == (0, ["follows", "tool-call", "thinking", "length"])


@pytest.mark.full
def test_ctrl_c(bench_shell: BenchShell, simulator: Start) -> None:
    """The results so far are stored as a stopped run."""
    there = endpoint_url(simulator(*PARSERS, SPARKWRIGHT_SIMULATOR_STEP_MS="15"))
    code, err = bench_shell.interrupted("[ 3/21]", signal.SIGINT, "eval", "probes", there)
    assert (code, "what was judged is stored" in err) == (130, True), err
    (run,) = bench_shell.saved()
    assert run["state"] == "stopped"
    assert "stopped before its end" in bench_shell.run("runs", "show", "last")[1]


@pytest.mark.full
async def test_a_real_server(bench_shell: BenchShell, tmp_path: Path) -> None:
    """llama.cpp with random weights: the protocol is judged, what needs a model that follows is skipped, not passed.

    Its log-probabilities leave out tokens that are parts of a character, and tool_choice is ignored without a template
    for tools: both are named.
    """
    pytest.importorskip("xllamacpp", reason="the wheel that holds llama.cpp's server is not installed")
    from functional.test_llama_cpp import KEY, RECIPE, render_rank
    from functional.test_llama_cpp import served as served_by_llama
    from functional.tiny_gguf import write_tiny_gguf
    from sparkwright.domain.recipe import Serving

    roomy = replace(RECIPE, serving=Serving(context=8192, sequences=2, batched_tokens=256))
    spec = render_rank(write_tiny_gguf(tmp_path / "tiny.gguf"), free_port(), roomy)
    (bench_shell.folder / "key").write_text(KEY)
    there = f"http://127.0.0.1:{spec.listens[0][1]}"
    async with served_by_llama(spec, tmp_path / "log"):
        names = "tool-call,tool-choice,stream,choices,stop,logprobs,usage,length"
        code, run, states = await asyncio.to_thread(probed, bench_shell, there, "--key-file", "key", "--only", names)
    good = ("stream", "choices", "stop", "usage", "length")
    named = {one["name"]: one["detail"] for one in run["evaluation"]["outcomes"]}
    assert {name: named[name] for name in good if states[name] != "passed"} == {}
    assert (code, states["follows"], states["tool-call"]) == (1, "failed", "skipped")
    assert "parts of characters" in named["logprobs"]
    assert "no call" in named["tool-choice"]
