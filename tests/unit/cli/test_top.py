"""The screen of `top`."""

from sparkwright.cli.top import TopScreen
from unit.app.test_status import running


async def test_a_deployment_without_a_supervisor_runs_and_is_not_starting() -> None:
    """Guards `top` after `up --no-supervise`: ranks that have served for an hour are no start, and no token is asked
    for at each look."""
    here = running()
    frame = await TopScreen("").look(here.services)
    assert frame.text.startswith("SIMULATED  twin: running  http://") and "starting" not in frame.text
    assert "not supervised: its figures are unknown; `sparkwright status` asks it for a token" in frame.text
    assert frame.document["deployments"][0]["state"] == "running" and here.endpoint.asked == []
