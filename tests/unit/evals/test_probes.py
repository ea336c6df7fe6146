"""Every probe against the simulator with each fault planted: it fails for its own fault and for no other."""

import pytest

from sparkwright.domain.evaluation import ProbeState
from sparkwright.evals.catalog import PROBES
from sparkwright.simulator.settings import WRONG
from unit.evals.playing import failed, outcomes
from unit.simulator.inprocess import MakeClient

OWN = {
    "garbage": "follows",
    "wrong@tool_text": "tool-call",
    "wrong@tool_cliff": "tool-count",
    "wrong@tool_choice": "tool-choice",
    "wrong@one_call": "tool-parallel",
    "wrong@loose_types": "tool-arguments",
    "wrong@stream_arguments": "tool-stream",
    "wrong@results": "tool-turns",
    "wrong@think_leaks": "thinking",
    "wrong@think_eats": "thinking",
    "wrong@stream_text": "stream",
    "wrong@schema": "json-schema",
    "wrong@choices": "choices",
    "wrong@stop": "stop",
    "wrong@logprobs": "logprobs",
    "wrong@usage": "usage",
    "wrong@short": "length",
    "wrong@responses": "responses",
    "wrong@messages": "messages",
    "wrong@window": "long-context",
    "wrong@crosstalk": "batch",
    "wrong@stale_cache": "cached",
}
HEALTHY, PART = 200, 50  # each part has the time of a test


def test_every_fault_and_every_probe_is_in_the_table() -> None:
    """A new fault or probe is not forgotten here. `eval same` finds the two that are no probe's."""
    assert {*(name.removeprefix("wrong@") for name in OWN), "unsteady", "drafts"} == {*WRONG, "garbage"}
    assert set(OWN.values()) == set(PROBES)


@pytest.mark.full
async def test_a_healthy_server_passes_all(make_client: MakeClient) -> None:
    """No probe fails, is refused or stays unjudged without a fault; each has judged something."""
    found = await outcomes(make_client, set())
    assert {name: one.detail for name, one in found.items() if one.state is not ProbeState.PASSED} == {}
    assert all(one.cases for one in found.values())


@pytest.mark.parametrize("fault", OWN)
async def test_its_own_fault_is_found(make_client: MakeClient, fault: str) -> None:
    """The probe fails, and reports what breaks, what that means, and the exchange."""
    one = (await outcomes(make_client, {OWN[fault]}, fault))[OWN[fault]]
    assert (one.state, bool(one.failed)) == (ProbeState.FAILED, True), one
    assert one.means and one.hint and one.evidence[0].sent.startswith("POST /v1/")


@pytest.mark.full
@pytest.mark.parametrize("fault", OWN)
async def test_no_other_probe_fails(make_client: MakeClient, fault: str) -> None:
    """All probes against each fault: one fails."""
    assert failed(await outcomes(make_client, set(), fault)) == {OWN[fault]}


@pytest.mark.full
@pytest.mark.parametrize("first", range(0, HEALTHY, PART))
async def test_healthy_runs_raise_nothing(make_client: MakeClient, first: int) -> None:
    """200 runs of all probes, each with a seed of its own: no false alarm (95 %: under 1.5 % of runs)."""
    for seed in range(first, first + PART):
        assert failed(await outcomes(make_client, set(), seed=seed)) == set(), seed
