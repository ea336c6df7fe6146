"""`bench` of a deployment by its name: what it was started with is found on the nodes, and belongs to the run."""

from __future__ import annotations

import json

import pytest

from functional.command import UserShell
from functional.test_install_supervisor import user_shell
from functional.test_supervised_cli import up

__all__ = ["user_shell"]  # a fixture
SMALL = """
title: A few short requests
repeats: 1
deadline: 60s
levels:
  - name: one
    single: {prompt: 64, output: 8}
    requests: 3
    warmup: 0
"""


@pytest.mark.full
def test_a_deployment_by_its_name(user_shell: UserShell) -> None:
    """Recipe, hash, engine, flags and nodes are recorded, also by `eval` and through the gateway; memory is watched."""
    up(user_shell)
    (user_shell.folder / "small.yaml").write_text(SMALL)
    code, out, err = user_shell.run("bench", "twin", "--profile", "./small.yaml", "--json")
    assert out, err
    (run,) = json.loads(out)["runs"]
    known = run["run"]["conditions"]
    assert known["ours"] and known["simulated"] and known["deployment"] == "twin"
    assert known["recipe_hash"] and known["engine_version"] and known["nodes"]
    assert "serve" in known["flags"] or "sparkwright.simulator" in " ".join(known["flags"])
    assert run["levels"][0]["server"]["memory_available_least"] > 1e9
    assert not [why for why in run["invalid"] if "provenance" in why]
    endpoint = json.loads(user_shell.run("status", "--json")[1])["deployments"][0]["endpoint"]
    for named in (("twin", "--gateway"), (endpoint,)):
        _, out, err = user_shell.run("bench", *named, "--profile", "./small.yaml", "--json")
        assert out, err
        (through,) = json.loads(out)["runs"]
        assert through["run"]["conditions"] == {
            **known,
            "front_door": endpoint,
            "endpoint": f"twin (gateway {endpoint})",
        }
        (level,) = through["levels"]
        assert (level["good"], level["errors"]) == (3, {}) and level["server"]["memory_available_least"] > 1e9
    for how in ((), ("--gateway",)):
        code, out, err = user_shell.run("eval", "probes", "twin", *how, "--only", "usage", "--json")
        assert code == 0, err
        evaluated = json.loads(out)["run"]
        assert (evaluated["passed"], evaluated["conditions"]["recipe_hash"]) == (True, known["recipe_hash"])
    code, _, err = user_shell.run("bench", endpoint, "--gateway")
    assert (code, "a URL is measured as it is" in err) == (2, True), err
    code, _, err = user_shell.run("bench", "other")
    assert (code, "no deployment other" in err) == (2, True), err
