"""`sparkwright plan` on two node entries that are this machine: config.json on them judges the split."""

import json
from pathlib import Path

import pytest

from functional.command import UserShell

CONFIG = Path(__file__).parents[1] / "data" / "models" / "minimax-m2.7-nvfp4.config.json"
RECIPE = "title: x\nmodel: {path: m}\nengine: {name: vllm, version: 0.21.0, runtime: process}\nnodes: 2\n"


@pytest.fixture
def user_shell(tmp_path: Path) -> UserShell:
    (tmp_path / "models" / "m").mkdir(parents=True)
    (tmp_path / "models" / "m" / "config.json").write_text(CONFIG.read_text())
    entry = "  - {{name: {0}, ssh: local, paths: {{state: {1}/state-{0}, models: {1}/models}}}}\n"
    nodes = "".join(entry.format(name, tmp_path) for name in ("a", "b"))
    (tmp_path / "cluster.yaml").write_text(f"head: a\nnodes:\n{nodes}")
    return UserShell(tmp_path)


def test_the_splits_of_the_model_that_is_here(user_shell: UserShell) -> None:
    """The table has every split with figures, and marks the recipe's own."""
    (user_shell.folder / "r.yaml").write_text(f"{RECIPE}parallelism: {{tp: 2}}\n")
    _, out, err = user_shell.run("plan", "./r.yaml", "--splits")
    assert "ways to split it (shape: config.json on a)" in out, err
    rows = [line.split() for line in out.partition("ways to split it")[2].splitlines()]
    assert ["*", "tp", "2", "62.7", "GiB", "124.0", "KiB", "124"] in [row[:8] for row in rows]


def test_a_split_that_cannot_work_is_refused(user_shell: UserShell) -> None:
    """PP with draft layers of the model is named with what to write instead, and `up` would not start."""
    (user_shell.folder / "r.yaml").write_text(
        f"{RECIPE}parallelism: {{pp: 2}}\nspeculation: {{method: deepseek_mtp, tokens: 1}}\n"
    )
    code, out, _ = user_shell.run("plan", "./r.yaml", "--json")
    plan = json.loads(out)
    found = {finding["code"]: finding for finding in plan["findings"]}
    assert code == 1 and "expected pp 1" in found["PAR001"]["evidence"]
    assert found["PAR001"]["remedy"] == "parallelism: {tp: 2, pp: 1, dp: 1, ep: false}"
    assert plan["splits"]["splits"][0]["refused"]
