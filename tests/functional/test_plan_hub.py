"""`sparkwright plan` for a model that is on no node: a hub on loopback reports its size and its dimensions."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.hub_http import RESOLVE, HubServer, serving
from functional.command import UserShell

CONFIG = Path(__file__).parents[1] / "data" / "models" / "qwen3-8b.config.json"
RECIPE = "title: x\nmodel: {id: org/name}\nengine: {name: vllm, version: 0.21.0, runtime: process}\n"


@pytest.fixture
def user_shell(tmp_path: Path) -> UserShell:
    (tmp_path / "cluster.yaml").write_text(
        f"head: a\nnodes:\n  - {{name: a, ssh: local, paths: {{state: {tmp_path}/state, hub: {tmp_path}/hub}}}}\n"
    )
    (tmp_path / "r.yaml").write_text(RECIPE)
    return UserShell(tmp_path)


@pytest.fixture
def hub_server() -> Iterator[HubServer]:
    with serving() as server:
        server.replies[RESOLVE] = (200, {}, CONFIG.read_bytes())
        yield server


def test_a_model_that_is_nowhere_is_planned_with_what_the_hub_reports(
    user_shell: UserShell, hub_server: HubServer
) -> None:
    """Weights, splits and the finding that reports where the figures are from; the second plan asks nobody."""
    _, out, err = user_shell.run("plan", "./r.yaml", "--json", HF_ENDPOINT=hub_server.url, HF_TOKEN="hf_secret")
    plan = json.loads(out)
    found = {finding["code"]: finding for finding in plan["findings"]}
    assert "org/name@main: 6.5 GiB of weights; its config.json was read" in found["MODEL012"]["evidence"], err
    assert plan["splits"]["splits"], "its shape is known"
    assert {key for _, key in hub_server.asked} == {"Bearer hf_secret"}
    hub_server.asked.clear()
    user_shell.run("plan", "./r.yaml", HF_ENDPOINT=hub_server.url)
    assert hub_server.asked == []
    assert "hf_secret" not in out + err


def test_offline_nobody_is_asked(user_shell: UserShell, hub_server: HubServer) -> None:
    """The variable that the hub's own client follows."""
    _, out, _ = user_shell.run("plan", "./r.yaml", "--json", HF_ENDPOINT=hub_server.url, HF_HUB_OFFLINE="1")
    assert hub_server.asked == []
    assert "MODEL012" not in {finding["code"] for finding in json.loads(out)["findings"]}
