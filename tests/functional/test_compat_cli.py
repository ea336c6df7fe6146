"""The compatibility table as a user meets it: `plan` and `up` refuse, `recipes show` and `validate` report,
`explain`."""

import json
from pathlib import Path

import pytest

from functional.command import UserShell

RECIPE = """title: mine
model: {path: m, shape: {layers: 43, heads: 64, kv_heads: 1, architecture: DeepseekV4ForCausalLM, format: fp8}}
engine: {name: ENGINE, runtime: process}
nodes: 1
"""


@pytest.fixture
def user_shell(tmp_path: Path) -> UserShell:
    """One node that is this machine, which shows no GPU: what the program is for is taken for it."""
    entry = f"nodes:\n  - {{name: a, ssh: local, paths: {{state: {tmp_path}/state, models: {tmp_path}/models}}}}\n"
    (tmp_path / "cluster.yaml").write_text(entry)
    return UserShell(tmp_path)


def write(shell: UserShell, engine: str, **more: str) -> None:
    text = RECIPE.replace("ENGINE", engine) + "".join(f"{key}: {value}\n" for key, value in more.items())
    (shell.folder / "mine.yaml").write_text(text)


def findings(shell: UserShell) -> dict[str, dict[str, str]]:
    _, out, err = shell.run("plan", "./mine.yaml", "--json")
    assert out, err
    return {finding["code"]: finding for finding in json.loads(out)["findings"]}


def test_ones_own_recipe_of_a_blocked_combination_is_refused(user_shell: UserShell) -> None:
    """DeepSeek-V4-Flash on SGLang 0.5.12: `plan` and `up` give the reason, its source and what to take instead."""
    write(user_shell, "sglang, version: 0.5.12")
    found = findings(user_shell)["COMPAT001"]
    assert found["severity"] == "block" and "Unsupported architecture for sparse decode" in found["evidence"]
    assert "al-engr.com/sglang-deepseek-spark-pivot" in found["evidence"] and "2026-05" in found["evidence"]
    assert found["remedy"].startswith("sparkwright up deepseek-v4-flash")
    code, _, err = user_shell.run("up", "./mine.yaml", "--force", "I know better")
    assert code == 1 and "COMPAT001" in err and "sparkwright up deepseek-v4-flash" in err


def test_a_later_version_is_not_known_and_not_refused(user_shell: UserShell) -> None:
    """0.5.23 has no report on GB10: it is reported, and nothing is in the way for it."""
    write(user_shell, "sglang, version: 0.5.23")
    found = findings(user_shell)
    assert "COMPAT001" not in found and found["COMPAT003"]["severity"] == "info"


def test_what_works_badly_is_a_warning(user_shell: UserShell) -> None:
    """vLLM 0.22 with MTP drafts: served, and wedges twice a day."""
    write(
        user_shell,
        "vllm, version: 0.22.1",
        speculation="{method: mtp, tokens: 2}",
        serving="{kv_dtype: fp8, memory_fraction: 0.8}",
        flags="{enforce-eager: true}",
    )
    found = findings(user_shell)["COMPAT002"]
    assert found["severity"] == "warn" and "twice a day" in found["evidence"]


def test_validate_reports_it_without_a_node(user_shell: UserShell) -> None:
    """A recipe that nobody can serve is not good."""
    write(user_shell, "sglang, version: 0.5.12")
    code, out, _ = user_shell.run("recipes", "validate", "./mine.yaml")
    assert code == 2 and "COMPAT001" in out and "sparkwright up deepseek-v4-flash" in out


def test_show_reports_what_is_known(user_shell: UserShell) -> None:
    """Verdict, reason, other side, source and date of the recipe's own combination."""
    _, out, _ = user_shell.run("recipes", "show", "minimax-m2.7-nvfp4")
    known = out.partition("Known of this engine, model and chip")[2].partition("\n\n")[0]
    assert "works" in known and "al-engr.com/minimax-sglang-debug.html, 2026-05-24" in known
    assert "disputed" in known and "other side" in known
    rows = json.loads(user_shell.run("recipes", "show", "minimax-m2.7-nvfp4", "--json")[1])["known"]
    assert [row["verdict"] for row in rows] == ["works", "degraded"]
    assert all(row["source"] and row["date"] and row["reason"] for row in rows)
    assert json.loads(user_shell.run("recipes", "show", "twin", "--json")[1])["known"] == []


def test_explain(user_shell: UserShell) -> None:
    """A code, a cause, all of them, and a near one for what there is not."""
    code, out, _ = user_shell.run("explain", "compat001")
    assert code == 0 and "\nDetects\n" in out and "\nFix\n" in out
    assert "LNIC001" in user_shell.run("explain", "gloo-wrong-interface-loopback")[1]
    code, listed, _ = user_shell.run("explain")
    assert code == 0 and {"DRV001", "RCP001", "ENG026", "FAB014", "LNIC001", "LIVE003"} <= set(listed.split())
    code, _, err = user_shell.run("explain", "DRV01")
    assert code == 2 and "no code or cause 'DRV01'" in err and "DRV001" in err
    (page,) = json.loads(user_shell.run("explain", "LNIC001", "--json")[1])["codes"]
    assert page["cause"] == "gloo-wrong-interface-loopback" and page["fix"] and page["parts"]["Why"]
