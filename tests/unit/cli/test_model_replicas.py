"""A model with replicas as one thing: its state, and what is said about all of them."""

from dataclasses import replace

import pytest

from sparkwright.cli.text import model_json, model_text
from sparkwright.domain.deployment import Deployment
from sparkwright.domain.live import DeploymentState, Supervised
from sparkwright.domain.model_replicas import models_of
from sparkwright.domain.replica import is_part_of, split_replica_name

READY, FAILED, STARTING = DeploymentState.READY, DeploymentState.FAILED, DeploymentState.STARTING


def replica_in(name: str, state: DeploymentState, of: str = "chat") -> Deployment:
    watched = Supervised(name, "spark-1", 0.0, True, replica_of=of, endpoint="https://spark-1:8443/v1")
    return Deployment(name, state, (), watched.endpoint, supervised=watched)


@pytest.mark.parametrize(
    ("states", "state", "serving"),
    [
        ((READY, READY), READY, 2),
        ((READY, FAILED), DeploymentState.DEGRADED, 1),
        ((STARTING, READY), DeploymentState.DEGRADED, 1),
        ((FAILED, FAILED), FAILED, 0),
    ],
)
def test_the_state_of_all(states: tuple[DeploymentState, ...], state: DeploymentState, serving: int) -> None:
    (found,) = models_of([replica_in(f"chat-r{n}", each) for n, each in enumerate(states, 1)])
    assert (found.state, len(found.serving)) == (state, serving)


def test_replicas_are_in_the_order_of_their_numbers() -> None:
    alone = replace(replica_in("chat-r7", READY), supervised=None)
    found = models_of(
        [replica_in("chat-r10", READY), replica_in("chat-r2", READY), replica_in("b-r1", READY, "b"), alone]
    )
    assert [model.name for model in found] == ["b", "chat"], "a name alone makes no replica"
    text = model_text(found[1])
    assert text.startswith("chat: ready, 2 of 2 replicas serve  https://spark-1:8443/v1\n  chat-r2: ready")
    assert model_json(found[1])["replicas"] == ["chat-r2", "chat-r10"]


def test_names() -> None:
    assert split_replica_name("a-r1-r12") == ("a-r1", 12)
    assert [split_replica_name(name)[1] for name in ("a-r0", "a-r", "a-rx", "-r1", "a-r100")] == [0] * 5
    assert is_part_of("a", "a") and is_part_of("a", "a-r3") and not is_part_of("a", "ab-r3")
