"""`up` of a recipe with parsers: before it is believed, a call, a split of reasoning and an exact length are asked."""

import json
from dataclasses import replace
from typing import Any

import pytest

from fakes.endpoint import FakeEndpoint
from sparkwright.app.serve.launch import Options, up
from sparkwright.app.serve.prepare import Outcome
from sparkwright.domain.command import Secret
from sparkwright.domain.errors import NotReady
from sparkwright.domain.probed import Reply
from sparkwright.domain.progress import Notice
from sparkwright.domain.recipe import Parsers
from unit.app.scene import ClusterScene, make_scene, recipe, request
from unit.evals.playing import PARSERS
from unit.simulator.conftest import make_client, make_rank
from unit.simulator.inprocess import InProcessClient, MakeClient

__all__ = ["make_client", "make_rank"]
BOTH = Parsers("hermes", "qwen3")


class Through(FakeEndpoint):
    """Posts go to a simulator in this process; greetings are answered as ever. closes: after so many."""

    def __init__(self, client: InProcessClient, closes: int = 1000) -> None:
        super().__init__()
        self.client, self.closes = client, closes
        self.posted: list[dict[str, Any]] = []

    async def post(self, url: str, body: str, key: Secret | None, seconds: float) -> Reply:
        self.posted.append(json.loads(body))
        if len(self.posted) > self.closes:
            raise NotReady("connection refused")
        reply = await self.client.post("/" + url.split("/", 3)[3], {**self.posted[-1], "model": "tiny-qwen3"})
        return Reply(reply.status, body=reply.text)


async def started(here: ClusterScene, parsers: Parsers) -> Outcome:
    return await up(here.services, request(recipe=replace(recipe(), parsers=parsers)), Options())


def evidence(outcome: Outcome) -> list[str]:
    return [one.evidence for one in outcome.plan.findings if one.code == "SUP009"]


@pytest.mark.parametrize(
    ("fault", "parsers", "names"),
    (
        ("", BOTH, []),
        ("wrong@tool_text", BOTH, ["tool parser hermes: 1 tool: the call came as text"]),
        ("wrong@tool_text", Parsers(reasoning="qwen3"), []),
        ("wrong@think_leaks", BOTH, ["reasoning parser qwen3: 1 of 2: thinking on: </think> is in content"]),
        ("wrong@think_eats", BOTH, ["reasoning parser qwen3: 1 of 2: thinking on: content is empty"]),
        ("wrong@short", BOTH, ["length: 17 tokens: max_tokens 17, usage counts 16"]),
    ),
)
async def test_which_parser_is_wrong(make_client: MakeClient, fault: str, parsers: Parsers, names: list[str]) -> None:
    """It serves, and the finding names the parser and what came; nothing is reported without a fault."""
    here = make_scene(endpoint=Through(await make_client(*PARSERS, env={"SPARKWRIGHT_SIMULATOR_FAULT": fault})))
    outcome = await started(here, parsers)
    found = evidence(outcome)
    assert (outcome.done, len(found)) == ("ready", len(names))
    assert [text for text, name in zip(found, names, strict=True) if name not in text] == []


async def test_a_recipe_without_parsers_is_not_asked(make_client: MakeClient) -> None:
    """Guards a quick start."""
    through = Through(await make_client())
    await started(make_scene(endpoint=through), Parsers())
    assert through.posted == []


@pytest.mark.parametrize(("fault", "closes"), (("garbage", 1000), ("", 2)))
async def test_what_cannot_be_judged(make_client: MakeClient, fault: str, closes: int) -> None:
    """A model that does not follow, and a server that stops answering: a notice, neither a finding nor silence."""
    client = await make_client(*PARSERS, env={"SPARKWRIGHT_SIMULATOR_FAULT": fault})
    here = make_scene(endpoint=Through(client, closes))
    outcome = await started(here, BOTH)
    notices = [one.text for one in here.sink.of(Notice)]
    assert evidence(outcome) or any("not judged" in text for text in notices), notices
