"""The screen of `top`."""

import json
from dataclasses import replace

from sparkwright.cli.top import TopScreen
from sparkwright.domain.codec import to_json
from sparkwright.domain.live import DeploymentState
from unit.app.scene import make_scene
from unit.app.test_status import running
from unit.app.test_status_supervised import LIVE


async def test_a_deployment_without_a_supervisor_runs_and_is_not_starting() -> None:
    """Guards `top` after `up --no-supervise`: ranks that have served for an hour are no start, and no token is asked
    for at each look."""
    here = running()
    frame = await TopScreen("").look(here.services)
    assert frame.text.startswith("SIMULATED  twin: running  http://") and "starting" not in frame.text
    assert "not supervised: its figures are unknown; `sparkwright status` asks it for a token" in frame.text
    assert frame.document["deployments"][0]["state"] == "running" and here.endpoint.asked == []


async def test_replicas_have_one_line_together() -> None:
    """Guards the model's line: how many serve; each replica follows with its own figures."""
    here = make_scene()
    live = json.loads(to_json(replace(LIVE, phase=DeploymentState.READY)))
    row = {"by": "", "running": True, "unit": "", "now": 1001.0, "endpoint": "", "replica_of": "twin"}
    rows = [{**row, "deployment": name, "live": {**live, "deployment": name}} for name in ("twin-r1", "twin-r2")]
    here.nodes[0].on("python3 -I -", json.dumps(rows))
    frame = await TopScreen("twin").look(here.services)
    assert frame.text.startswith("twin: 2 of 2 replicas serve\ntwin-r1: ready")
    (model,) = frame.document["models"]
    assert (model["serving"], model["decode_tokens_s"]) == (2, None)
