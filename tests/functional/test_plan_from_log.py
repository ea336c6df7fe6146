"""`plan --from-log`: real logs of real starts, read from files, plan the next one."""

import json
from pathlib import Path
from typing import Any

import pytest

from functional.command import UserShell

LOGS = Path(__file__).parents[1] / "data" / "captures_logs"
RECIPE = """title: x
model: {path: MODEL}
engine: {name: ENGINE, version: 0.21.0, runtime: process}
serving: {context: 32768, memory_fraction: 0.5}
"""
GIB = 1024**3
MEMINFO = LOGS.parent / "facts/meminfo/idle.txt"
GB10, RECORDED = 127583720, 146590000  # KiB: MemTotal of that node, and of the recordings' 139.8 GiB


@pytest.fixture
def user_shell(tmp_path: Path) -> UserShell:
    """Two nodes with the memory of those where the logs were recorded; of the others, node c is a GB10."""
    made = UserShell(tmp_path)
    entry = (
        "  - {{name: {0}, ssh: local, env: {{SPARKWRIGHT_SYSROOT: {1}/{0}}},"
        " paths: {{state: {1}/state-{0}, models: {1}/models}}}}\n"
    )
    for name, total in (("a", RECORDED), ("b", RECORDED), ("c", GB10)):
        (tmp_path / name / "proc").mkdir(parents=True)
        (tmp_path / name / "proc/meminfo").write_text(MEMINFO.read_text().replace(str(GB10), str(total)))
    for head, names in (("a", "ab"), ("c", "c")):
        nodes = "".join(entry.format(name, tmp_path) for name in names)
        (tmp_path / f"{head}.yaml").write_text(f"head: {head}\nnodes:\n{nodes}")
    (tmp_path / "cluster.yaml").write_text((tmp_path / "a.yaml").read_text())
    for engine in ("vllm", "sglang"):
        (tmp_path / f"{engine}.yaml").write_text(RECIPE.replace("ENGINE", engine).replace("MODEL", "qwen3-8b"))
    two = RECIPE.replace("ENGINE", "vllm").replace("MODEL", "minimax-m2.7-nvfp4").replace("0.5", "0.82")
    (tmp_path / "two.yaml").write_text(f"{two}nodes: 2\nparallelism: {{tp: 2}}\n")
    return made


def planned(shell: UserShell, *words: str) -> dict[str, Any]:
    _, out, err = shell.run("plan", *words, "--json")
    assert out, err
    plan: dict[str, Any] = json.loads(out)
    return plan


def memory_line(plan: dict[str, Any], node: int, name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in plan["memory"][node]["lines"] if one["name"] == name)
    return found


def test_a_log_of_another_model_is_refused(user_shell: UserShell) -> None:
    """The log is refused by its weights: it may call any model by any path, and 15.3 GiB are not a recipe's 65."""
    other = "title: x\nmodel: {id: org/big, size: 70GB}\nengine: {name: vllm, version: 0.21.0, runtime: process}\n"
    (user_shell.folder / "other.yaml").write_text(other)
    code, out, err = user_shell.run("plan", "./other.yaml", "--from-log", str(LOGS / "b-8b-graphs.log"))
    assert (code, out) == (2, "") and "is of another model or split: 15.3 GiB of weights a rank" in err


def test_the_engines_own_figures_are_planned_with(user_shell: UserShell) -> None:
    """Weights, KV pool and graphs as the engine printed them, with their origin; and the plan reports what it read."""
    log = str(LOGS / "b-8b-graphs.log")
    plan = planned(user_shell, "./vllm.yaml", "--from-log", log)
    weights, pool = memory_line(plan, 0, "weights"), memory_line(plan, 0, "KV pool")
    assert (round(weights["bytes"] / GIB, 2), round(pool["bytes"] / GIB, 2)) == (15.27, 51.81)
    assert (weights["origin"], pool["origin"]) == ("calibrated", "calibrated")
    assert plan["measured"]["a"]["kv_tokens"] == 754_608
    _, out, _ = user_shell.run("plan", "./vllm.yaml", "--from-log", log, "--why")
    said = "a: 15.3 GiB weights, 51.8 GiB KV cache, 0.4 GiB CUDA graphs, 754,608 tokens (measured"
    assert said in out and "not the same: a log given by hand" in out
    assert out.count(f"measured, as in {log}") == 4


def test_what_cannot_be_so_here_is_left_out(user_shell: UserShell) -> None:
    """Half of 139.8 GiB is more than half of a GB10's pool: its weights count, its KV pool does not; nor at 0.6."""
    log = str(LOGS / "b-8b-graphs.log")
    plan = planned(user_shell, "./vllm.yaml", "--cluster", "c.yaml", "--from-log", log)
    assert memory_line(plan, 0, "weights")["origin"] == "calibrated" != memory_line(plan, 0, "KV pool")["origin"]
    assert plan["measured"]["c"]["differs"] == ["a log given by hand", "a larger pool"]
    (user_shell.folder / "more.yaml").write_text((user_shell.folder / "vllm.yaml").read_text().replace("0.5", "0.6"))
    plan = planned(user_shell, "./more.yaml", "--from-log", log)
    assert plan["measured"]["a"]["differs"] == ["a log given by hand", "memory fraction 0.5"]
    assert plan["measured"]["a"]["kv"] is None


@pytest.mark.full
def test_several_logs_are_of_the_ranks_in_order(user_shell: UserShell) -> None:
    """Head and worker of a real start of MiniMax-M2.7 on two GPUs; one log alone speaks for both ranks."""
    head, worker = str(LOGS / "m2-head.log"), str(LOGS / "m2-worker.log")
    plan = planned(user_shell, "./two.yaml", "--from-log", head, "--from-log", worker)
    assert [memory_line(plan, n, "weights")["bytes"] for n in (0, 1)] == [round(62.76 * GIB)] * 2
    assert [plan["measured"][n]["conditions"]["rank"] for n in "ab"] == [0, 1]
    assert plan["measured"]["a"]["differs"] == ["a log given by hand", "a context of 196608 tokens"]
    assert (plan["measured"]["a"]["kv"], plan["measured"]["a"]["kv_tokens"]) == (round(48.18 * GIB), None)
    alone = planned(user_shell, "./two.yaml", "--from-log", worker, "--rank", "1")
    assert [alone["measured"][n]["conditions"]["rank"] for n in "ab"] == [1, 1]
    assert alone["measured"]["a"]["differs"][-1] == "rank 1 spoke"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["./sglang.yaml", "--from-log", "b-8b-graphs.log"], "it is a log of vllm"),
        (["./vllm.yaml", "--from-log", "f-bad-flag.log"], "holds no line of vllm about weights or KV cache; its start"),
        (["./vllm.yaml", "--from-log", "llama-ready.log"], "holds no line of vllm about weights or KV cache\n"),
        (["./vllm.yaml", "--from-log", "b-8b-graphs.log", "--from-log", "m1-head.log", "--rank", "1"], "--rank goes"),
        (["./vllm.yaml", "--from-log", "none.log"], "does not exist"),
        (["./vllm.yaml", "--from-log", "m2-head.log"], "is of a start with 2 rank(s), the recipe has 1"),
    ],
)
def test_a_log_that_reports_nothing_is_refused(user_shell: UserShell, words: list[str], said: str) -> None:
    """The refusal names the file's real kind; nothing is planned with a silent default."""
    logs = [str(LOGS / word) if word.endswith(".log") else word for word in words]
    code, out, err = user_shell.run("plan", *logs)
    assert (code, out) == (2, "")
    assert said in err


def test_a_log_of_the_simulator_plans_no_real_engine(user_shell: UserShell) -> None:
    """Simulated is never passed off as real."""
    told = "(APIServer pid=1) WARNING 11-21 09:01:56 [boot.py:1] SIMULATED: this is sparkwright's emulation of vLLM; no"
    real = (LOGS / "b-8b-graphs.log").read_text()
    (user_shell.folder / "twin.log").write_text(f"{told} model runs.\n{real}")
    code, out, err = user_shell.run("plan", "./vllm.yaml", "--from-log", "twin.log")
    assert (code, out) == (2, "")
    assert "twin.log: is a log of the simulator" in err


@pytest.mark.full
def test_an_endless_line_is_read_in_pieces(user_shell: UserShell) -> None:
    """No line of a log is held whole, whatever somebody gives as one."""
    (user_shell.folder / "odd.log").write_bytes(b"\x00\xff" * 5_000_000)
    code, _, err = user_shell.run("plan", "./vllm.yaml", "--from-log", "odd.log")
    assert code == 2
    assert "holds no line of vllm" in err
