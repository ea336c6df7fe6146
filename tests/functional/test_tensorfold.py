"""TensorFold as the engine file describes it, played by the simulator: from `up` to `down`, and what it refuses."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fakes.ports import free_port
from functional.command import UserShell
from functional.test_install_supervisor import user_shell as two_nodes
from patience import wait_until

TOOLS = Path(__file__).parents[2] / "tools"
FORCE = ("--force", "no GPU here")
KEY = "sk-a-key-of-this-test"
RECIPE = """name: fold
title: TensorFold, simulated
model: {{path: {model}, served_name: fold}}
engine: {{name: tensorfold, version: 0.6.6, runtime: process, venv: {venv}}}
nodes: 2
parallelism: {{tp: 2}}
serving: {{port: {port}, master_port: {master}, context: {context}, sequences: 2, api_key_env: FOLD_KEY}}
env:
  PYTHONPATH: {paths}
  SPARKWRIGHT_SIMULATOR_TIME_SCALE: '0.01'
{env}"""
shell = two_nodes


class Fold:
    """The simulator's program as an installed TensorFold, and a small model."""

    def __init__(self, shell: UserShell) -> None:
        self.shell, self.port = shell, free_port()
        program = shell.folder / "venv/bin/tensorfold"
        program.parent.mkdir(parents=True)
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m simulators tensorfold "$@"\n')
        program.chmod(0o755)
        self.model = shell.folder / "tiny"
        self.model.mkdir()
        shape = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 512}
        (self.model / "config.json").write_text(json.dumps(shape | {"max_position_embeddings": 8192}))
        shell.environ["FOLD_KEY"] = KEY

    def recipe(self, context: int = 4096, **env: str) -> str:
        more = "".join(f"  {name}: '{value}'\n" for name, value in env.items())
        source = str(Path(__file__).parents[2] / "src")
        places = {"model": self.model, "venv": self.shell.folder / "venv", "paths": f"{TOOLS}:{source}"}
        text = RECIPE.format(**places, port=self.port, master=free_port(), context=context, env=more)
        (self.shell.folder / "fold.yaml").write_text(text)
        return "./fold.yaml"

    def good(self, *words: str, **env: str) -> Any:
        code, out, err = self.shell.run(*words, "--json", **env)
        assert code == 0, err + out[-3000:]
        return json.loads(out)

    def started(self, rank: int) -> float:
        (pid,) = self.shell.folder.glob(f"?/state/deployments/fold/rank{rank}/pid")
        return float(Path(f"/proc/{pid.read_text().split()[0]}/stat").read_text().rpartition(") ")[2].split()[19])


@pytest.fixture
def folded(shell: UserShell) -> Iterator[Fold]:
    yield Fold(shell)
    shell.run("down", "fold")


@pytest.mark.full
def test_tensorfold_serves_on_two_nodes_and_what_it_printed_is_used(folded: Fold) -> None:
    """Guards its form: order of ranks, key, readiness, figures, the estimate in `status` and in the next plan."""
    done = folded.good("up", folded.recipe(), *FORCE, SPARKWRIGHT_SUPERVISOR_SCALE="0.1")
    assert done["answer"]["simulated"] and float(done["engine"]["whole_gib"]) > 0
    assert done["engine"]["context"] == "4096" and done["engine"]["url"].endswith(f":{folded.port}/v1")
    assert folded.started(1) <= folded.started(0)
    logs = [next(folded.shell.folder.glob(f"?/state/deployments/fold/rank{n}/log")).read_text() for n in (0, 1)]
    assert "rank 1 ready in" in logs[1] and f"serving fold at http://127.0.0.1:{folded.port}/v1" in logs[0]
    assert not [log for log in logs if KEY in log]

    def live() -> dict[str, Any]:
        (seen,) = json.loads(folded.shell.run("status", "--json")[1])["deployments"]
        return dict(seen["supervised"]["live"])

    wait_until(lambda: live()["engine"] is not None, "its metrics, which want the key")
    engine, claimed = live()["engine"], [node["claimed"] for node in live()["nodes"]]
    assert engine["finished"] >= 1 and engine["running"] is not None
    need = float(done["engine"]["whole_gib"])
    assert all(abs(one / 2**30 - need) < 0.02 for one in claimed), (claimed, need)
    assert "its engine printed that it needs" in folded.shell.run("status")[1]
    folded.good("down", "fold")
    (memory, *_) = json.loads(folded.shell.run("plan", "./fold.yaml", "--json")[1])["memory"]
    (overhead,) = (line for line in memory["lines"] if line["name"] == "engine overhead")
    assert overhead["known"] and "measured at the start of" in overhead["why"], memory


def test_a_refusal_before_loading_is_the_reason(folded: Fold) -> None:
    """Guards the sentence with the largest window that fits: shown by `up`, and by `diagnose` afterwards."""
    path = folded.recipe(SPARKWRIGHT_SIMULATOR_MEMORY_GIB="24", SPARKWRIGHT_SIMULATOR_FREE_GIB="4.001")
    code, out, err = folded.shell.run("up", path, "--no-supervise", *FORCE)
    told = " ".join((err + out).split())
    assert code == 5 and "cannot fit requested context 4096" in told, told
    assert "estimated largest fitting prompt-plus-reply window: " in told
    code, out, err = folded.shell.run("diagnose", "fold")
    assert code == 1 and "cannot fit requested context 4096" in " ".join(out.split()), out + err


@pytest.mark.full
def test_drafts_off_are_the_reference_of_eval_same(folded: Fold) -> None:
    """Guards the oracle: equal with right drafts, worse where drafts change the answer, refused where it has none."""
    words = ("eval", "same", f"http://127.0.0.1:{folded.port}", "--serial", "--prompts", "8", "--json")
    key = {"SPARKWRIGHT_API_KEY": KEY}
    folded.good("up", folded.recipe(SPARKWRIGHT_SIMULATOR_TOKEN_SCALE="0"), "--no-supervise", *FORCE)
    code, out, err = folded.shell.run(*words, **key)
    assert code == 0 and json.loads(out)["run"]["evaluation"]["verdict"] == "as before", err + out[-2000:]
    folded.good("down", "fold")
    wrong = {"SPARKWRIGHT_SIMULATOR_TOKEN_SCALE": "0", "SPARKWRIGHT_SIMULATOR_FAULT": "wrong@drafts"}
    folded.good("up", folded.recipe(4096, **wrong), "--no-supervise", *FORCE)
    code, out, err = folded.shell.run(*words, **key)
    assert code == 1 and json.loads(out)["run"]["evaluation"]["verdict"] == "worse", err
