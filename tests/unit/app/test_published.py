"""The conditions under which the hub is asked about a model, and the parts of its answer that count."""

import json
from dataclasses import replace
from typing import Any

import pytest

from fakes.hub import FakeHub
from fakes.sink import FakeSink
from sparkwright.app.cluster_state import published
from sparkwright.app.services import ClusterState, Services
from sparkwright.domain.checkpoint import Checkpoint, Published
from sparkwright.domain.facts import Unknown
from sparkwright.domain.model import ModelShape
from sparkwright.domain.progress import Notice
from sparkwright.domain.recipe import EngineChoice, Model, Recipe
from sparkwright.planner.usable import with_published
from unit.app.scene import make_scene, recipe

CONFIG = json.dumps({"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2})
ANSWER = Published("org/name", "main", CONFIG, 7_000_000_000)
WHOLE = Checkpoint("/hub/x/snapshots/1", "/hub/x", "1", 10, 3)
NONE = Checkpoint("", "/hub/x", "", 0, 0)
NOWHERE = ClusterState({}, checkpoints={"spark-1": NONE, "spark-2": NONE})
SHAPE = ModelShape(80, 64, 8)


def served(**model: Any) -> Recipe:
    return replace(recipe(), engine=EngineChoice("vllm", "0.21.0"), model=Model(**{"id": "org/name"} | model))


def services(hub: FakeHub, sink: FakeSink | None = None) -> Services:
    return replace(make_scene().services, hub=hub.look, sink=sink or FakeSink())


async def test_a_model_that_nothing_describes_is_looked_up() -> None:
    """Its size and dimensions come from the hub."""
    hub = FakeHub(ANSWER)
    found = await published(services(hub), served(revision="v2"), NOWHERE)
    assert (found, hub.asked) == (ANSWER, [("org/name", "v2")])
    model = with_published(served(), found).model
    assert model.size == 7_000_000_000
    assert model.shape is not None and (model.shape.layers, model.shape.kv_heads) == (2, 2)


async def test_the_recipe_comes_first() -> None:
    """A value that the recipe states itself is not replaced."""
    assert with_published(served(shape=SHAPE), ANSWER).model.shape == SHAPE
    assert with_published(served(size=5), ANSWER).model.size == 5
    mine = served()
    assert with_published(mine, None) is mine


@pytest.mark.parametrize(
    ("model", "cluster_state"),
    [
        ({}, ClusterState({}, checkpoints={"spark-1": NONE, "spark-2": WHOLE})),
        ({"shape": SHAPE, "size": 5}, NOWHERE),
        ({"id": "", "path": "/models/m"}, NOWHERE),
        ({"simulated": True}, NOWHERE),
    ],
    ids=["on a node", "all told", "by path", "simulated"],
)
async def test_the_hub_is_asked_only_when_it_is_needed(model: dict[str, Any], cluster_state: ClusterState) -> None:
    """A plan for what is there makes no connection."""
    hub = FakeHub(ANSWER)
    assert await published(services(hub), served(**model), cluster_state) is None
    assert hub.asked == []


async def test_a_refusal_is_a_warning_and_silence_is_silent() -> None:
    """A gated model needs a token; without internet there is nothing that the user could do."""
    sink = FakeSink()
    assert await published(services(FakeHub(None), sink), served(), NOWHERE) is None
    assert sink.happenings == []
    assert await published(services(FakeHub(Unknown("https://hub", "no token")), sink), served(), NOWHERE) is None
    (notice,) = sink.of(Notice)
    assert notice.warning and "no token" in notice.text
