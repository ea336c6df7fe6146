"""Requests that are under way when a person asks for a stop."""

from dataclasses import replace

import pytest

from sparkwright.domain.live import DeploymentState, GatewayUse
from sparkwright.domain.progress import Notice
from sparkwright.domain.units import DRAIN_SECONDS
from sparkwright.supervisor.core.state import State, StopRanks
from sparkwright.supervisor.effects import EffectRunner, drained
from unit.supervisor.test_effects import answer
from unit.supervisor.watchtower import Tower, make_tower

ASKED = State(DeploymentState.DRAINING, 1.0, reason="a planned restart", planned=True, refusing=True)
BUSY, QUIET = GatewayUse(under_way=2), GatewayUse()


def tower_with_uses(*uses: GatewayUse) -> Tower:
    it = make_tower()
    it.context.seen.good_at = it.context.now()
    it.scene.endpoint.uses = list(uses)
    return it


@pytest.mark.parametrize("state", [ASKED, replace(ASKED, planned=False, halted=True)])
async def test_what_a_person_asked_for_waits_until_requests_have_ended(state: State) -> None:
    """Guards clients' streams at a restart and at a halt; who asks `status` sees what is waited for."""
    it = tower_with_uses(BUSY, BUSY, QUIET, BUSY)
    await EffectRunner(it.bus).begin(StopRanks(turn=1), state)
    await answer(it)
    assert it.scene.endpoint.uses == [BUSY] and it.context.seen.doing == ""


async def test_a_fault_waits_for_nobody() -> None:
    it = tower_with_uses(BUSY, QUIET)
    await EffectRunner(it.bus).begin(StopRanks(turn=1), replace(ASKED, planned=False, fault="spin"))
    await answer(it)
    assert it.scene.endpoint.uses == [BUSY, QUIET]


async def test_a_request_that_does_not_end_is_cut() -> None:
    it = tower_with_uses(*[BUSY] * 200)
    began = it.context.now()
    await drained(it.context)
    assert DRAIN_SECONDS < it.context.now() - began < DRAIN_SECONDS + 1
    (told,) = it.scene.sink.of(Notice)
    assert "2 requests under way after 30 s" in told.text and told.warning


async def test_who_asks_may_give_requests_longer() -> None:
    """Guards `--drain SECONDS`, and that an engine that no longer answers is not waited for that long."""
    it = tower_with_uses(*[BUSY] * 400)
    it.context.seen.drain = 90.0
    began = it.context.now()
    await drained(it.context)
    assert 90 < it.context.now() - began < 91
    it.context.seen.good_at -= 100
    began = it.context.now()
    await drained(it.context)
    assert it.context.now() == began


async def test_an_engine_that_no_longer_answers_is_not_waited_for() -> None:
    it = tower_with_uses(BUSY)
    it.context.seen.good_at -= 100
    await drained(it.context)
    assert it.scene.endpoint.uses == [BUSY]
