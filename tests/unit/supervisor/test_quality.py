"""Short probes of the answers from the supervisor: a wrong parser is a trouble, and never a restart."""

import json
from dataclasses import replace

import pytest

from sparkwright.domain.errors import NotReady
from sparkwright.domain.probed import Reply
from sparkwright.domain.recipe import Parsers
from sparkwright.supervisor import quality
from sparkwright.supervisor.core.detect.quality import STRIKES, Quality
from sparkwright.supervisor.core.events import Cleared, Fault
from sparkwright.supervisor.core.state import Recovery
from unit.evals.playing import PARSERS
from unit.simulator.conftest import make_client, make_rank
from unit.simulator.inprocess import MakeClient
from unit.supervisor.watchtower import Tower, make_tower

__all__ = ["make_client", "make_rank"]
HEALTHY = 200


async def supervised(make: MakeClient, fault: str = "") -> Tower:
    """Its engine is a simulator in this process."""
    client = await make(*PARSERS, env={"SPARKWRIGHT_SIMULATOR_FAULT": fault})
    it = make_tower()
    it.bus.quality = Quality(("tool-call", "thinking", "length"))
    recipe = replace(it.context.desired.recipe, parsers=Parsers(tool="hermes", reasoning="qwen3"))
    it.context.desired = replace(it.context.desired, recipe=recipe)

    async def post(url: str, body: str, key: object, seconds: float) -> Reply:
        reply = await client.post("/v1/" + url.split("/v1/")[1], {**json.loads(body), "model": "tiny-qwen3"})
        return Reply(reply.status, body=reply.text)

    it.scene.endpoint.post = post  # type: ignore[method-assign]
    return it


async def test_a_wrong_parser_is_a_trouble(make_client: MakeClient) -> None:
    """The trouble comes after three turns, with the parser's name, once; nothing is launched again for it."""
    it = await supervised(make_client, "wrong@tool_text")
    for _ in range(STRIKES + 1):
        assert not [one for one in it.events if isinstance(one, Fault)]
        await quality.run_probe(it.bus, "tool-call")
        if it.bus.quality.wrong:
            break
    (fault,) = it.events
    assert isinstance(fault, Fault)
    assert (fault.kind, fault.recovery) == ("parser", Recovery.NONE)
    assert "tool parser hermes" in fault.what and "SUP009" in fault.what
    await quality.run_probe(it.bus, "length")
    assert it.events == []


async def test_it_is_over_when_it_passes(make_client: MakeClient) -> None:
    """The trouble is cleared by the same probe."""
    it = await supervised(make_client)
    it.bus.set_trouble(quality.PARSER, "wrong before")
    assert isinstance(it.events[0], Fault)
    await quality.run_probe(it.bus, "tool-call")
    assert [type(one) for one in it.events] == [Cleared]


async def test_an_engine_that_does_not_answer_is_not_judged(make_client: MakeClient) -> None:
    """An engine without an answer is the canary's matter."""
    it = await supervised(make_client)

    async def gone(url: str, body: str, key: object, seconds: float) -> Reply:
        raise NotReady("connection refused")

    it.scene.endpoint.post = gone  # type: ignore[method-assign]
    for _ in range(2 * STRIKES):
        await quality.run_probe(it.bus, "thinking")
    assert it.events == [] and it.bus.quality.wrong == {}


@pytest.mark.full
async def test_healthy_engines_raise_nothing(make_client: MakeClient) -> None:
    """200 turns of each probe with texts of their own: no single failure (95 %: under 1.5 % of probes)."""
    it = await supervised(make_client)
    for _ in range(HEALTHY):
        for name in it.bus.quality.names:
            await quality.run_probe(it.bus, name)
            assert not it.bus.quality._strikes
    assert it.events == []
