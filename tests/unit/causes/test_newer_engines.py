"""Diagnosis of recordings of vLLM 0.32.0, 0.33.0 and of llama.cpp."""

from pathlib import Path

import pytest

from sparkwright.app.diagnose.examine import examine
from sparkwright.domain.diagnosis import Diagnosis, LogState
from sparkwright.engines.dialect import is_exit_noise

DATA = Path(__file__).resolve().parents[2] / "data/captures"


def diagnosed(*names: str) -> Diagnosis:
    return examine([(name, [(DATA / f"{name}.log").read_bytes()]) for name in names], 2026, {})


@pytest.mark.parametrize(
    "names",
    [
        ["vllm-0.32.0/healthy-tp1-131072"],
        ["vllm-0.32.0/healthy-tp1-attn"],
        ["vllm-0.32.0/healthy-tp1-compiled"],
        ["vllm-0.32.0/healthy-tp2", "vllm-0.32.0/healthy-tp2-worker"],
        ["vllm-0.33.0/h-8b"],
        ["vllm-0.33.0/h-dsv2"],
        ["vllm-0.33.0/mapped-weights-and-tier"],
        ["vllm-0.33.0/qwen3-32b"],
        ["vllm-0.33.0/one-rank"],
        ["llama-cpp-11549/good"],
    ],
)
def test_a_healthy_start_has_no_cause(names: list[str]) -> None:
    """One rank needs no interface between ranks, so the warning that its host name does not resolve is no cause."""
    found = diagnosed(*names)
    assert (found.causes, found.explanation) == ((), None)


@pytest.mark.parametrize("name", ["stopped-at-work", "one-rank-stopped"])
def test_a_server_stopped_at_work_has_no_cause(name: str) -> None:
    """vLLM kills its own core, and the answers that ran report it dead: in one log three hundred lines before its
    end."""
    found = diagnosed(f"vllm-0.33.0/{name}")
    assert (found.causes, found.explanation) == ((), None)


@pytest.mark.full
@pytest.mark.parametrize("name", ["supervised-stopped", "two-ranks-worker-stopped"])
def test_sglang_stopped_by_a_signal_ended_in_good_order(name: str) -> None:
    """Guards `down` of SGLang: what it prints of its own children's ends is no dead peer, without SIGTERM it is."""
    found = diagnosed(f"sglang-0.5.23/{name}")
    assert (found.state, found.causes, found.explanation) == (LogState.STOPPED, (), None)
    lines = (DATA / f"sglang-0.5.23/{name}.log").read_bytes().splitlines(keepends=True)
    crash = [line for line in lines if b"SIGTERM received" not in line]
    assert examine([("crash", crash)], 2026, {}).state is not LogState.STOPPED


def test_what_failed_before_a_server_was_asked_to_stop_counts() -> None:
    """Only what follows the request to stop is the stop's: an out-of-memory error before it is the cause."""
    lines = (DATA / "vllm-0.33.0/stopped-at-work.log").read_text().splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if "shutdown triggered" in line)
    lines.insert(
        at, "(EngineCore pid=26612) ERROR 11-29 00:51:17 [core.py:1] torch.OutOfMemoryError: CUDA out of memory.\n"
    )
    found = examine([("rank 0", ["".join(lines).encode()])], 2026, {})
    assert found.failure and found.causes[0].proof[0].number == at + 1


def test_an_error_of_a_request_is_not_the_cause_of_an_end() -> None:
    """Four answers could not be parsed as tool calls; the engine answered on, until its worker was killed."""
    found = diagnosed("vllm-0.32.0/worker-killed")
    assert found.causes[0].key == "peer-rank-died" and "VllmWorker-0 died" in found.causes[0].proof[0].text
    assert "tool-call-parser-wrong-or-missing" not in [cause.key for cause in found.causes]
    assert found.explanation is None or found.explanation.line.number > 564  # the last good answer


def test_an_error_of_a_request_is_told_of_an_engine_that_serves() -> None:
    """The same errors are the fault without the end."""
    lines = (DATA / "vllm-0.32.0/worker-killed.log").read_text().splitlines(keepends=True)[:566]
    found = examine([("rank 0", ["".join(lines).encode()])], 2026, {})
    assert found.causes[0].key == "tool-call-parser-wrong-or-missing"


@pytest.mark.parametrize(
    ("name", "key", "line"),
    [
        ("vllm-0.32.0/bad-flag", "cli-flag-renamed-or-removed", "unrecognized arguments: --brand-new-switch"),
        ("vllm-0.32.0/bad-value", "cli-flag-value-unknown", "invalid choice: 'fp9'"),
        ("vllm-0.32.0/bad-quant", "cli-flag-value-unknown", "Unknown quantization method: nosuchquant"),
        ("vllm-0.32.0/bad-parser", "tool-call-parser-wrong-or-missing", "invalid tool call parser: nosuch"),
        ("vllm-0.32.0/too-long", "max-model-len-above-model-limit", "max_model_len (262144) is greater"),
        ("llama-cpp-11549/bad-flag", "cli-flag-renamed-or-removed", "--brand-new"),
        ("llama-cpp-11549/bad-cache", "cli-flag-value-unknown", "unsupported value 'q3_0'"),
    ],
)
def test_a_refused_start_names_its_cause(name: str, key: str, line: str) -> None:
    """The first cause, and the line that proves it."""
    found = diagnosed(name)
    assert found.causes[0].key == key and line in found.causes[0].proof[0].text


def test_a_start_that_was_ended_shows_the_signal() -> None:
    """The supervisor's own SIGTERM during a compile, not the interface of a single rank."""
    found = diagnosed("vllm-0.32.0/stuck-in-compile")
    assert found.causes == () and found.explanation and "signal=SIGTERM" in found.explanation.line.text


def test_noise_at_exit_is_known_as_such() -> None:
    """29 lines about leaked objects end the log of an engine that lost its worker; they are no evidence."""
    lines = (DATA / "vllm-0.32.0/worker-killed.log").read_text().splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("nanobind: "))
    assert [line for line in lines[first:] if not is_exit_noise(line)] == []
    assert not any(map(is_exit_noise, lines[:first]))


def test_fixes_fit_the_runtime() -> None:
    """A rank that is a process has no container: its commands run on the node, and no image is built."""
    log = b"(EngineCore pid=1) ERROR 11-27 20:00:00 [core.py:1] ModuleNotFoundError: No module named 'tilelang'\n" * 2
    in_container, on_node = (
        examine([("rank 0", [log])], 2026, words).causes[0].fix for words in ({}, {"runtime": "process"})
    )
    assert any("docker exec" in step for step in in_container)
    assert on_node and not any("docker" in step for step in on_node)
    assert any(step.startswith("python3 -c 'import tilelang'") for step in on_node)
