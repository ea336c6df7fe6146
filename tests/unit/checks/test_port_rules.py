"""The rule of taken ports: which addresses meet, and whose listener it is."""

from dataclasses import replace

from sparkwright.domain.recipe import Serving
from unit.checks.samples import RECIPE, context, rank_specs, rank_status, run_check, taken_port
from unit.for_each import for_each


@for_each(
    "address, wanted, fires",
    [
        ("0.0.0.0", "127.0.0.1", True),
        ("::", "127.0.0.1", True),
        ("::", "10.0.0.1", True),
        ("::ffff:127.0.0.1", "127.0.0.1", True),
        ("127.0.0.1", "0.0.0.0", True),
        ("10.0.0.1", "0.0.0.0", True),
        ("::1", "0.0.0.0", False),
        ("0.0.0.0", "::1", False),
        ("10.0.0.1", "127.0.0.1", False),
    ],
)
def test_wildcard_addresses_meet_others(address: str, wanted: str, fires: bool) -> None:
    """Guards that a listener on all addresses takes the port from every one of its family, and :: from both."""
    head = replace(rank_specs()[0], listens=((wanted, 8000),))
    assert bool(run_check("PORT001", context(taken_port(address), specs=(head,)))) is fires


def test_port_of_another_deployment_names_it() -> None:
    """Guards that our own other deployment is named with the command that ends it."""
    (finding,) = run_check("PORT001", context({**taken_port("127.0.0.1", process=""), "ranks": (rank_status("old"),)}))
    assert finding.title == "port 8000 is in use by old, a deployment of sparkwright"
    assert finding.evidence == "ss: 127.0.0.1:8000 (unknown process); expected: 127.0.0.1:8000"
    assert finding.remedy == "sparkwright down old, or set another serving.port"


def test_foreign_port_next_to_our_own_rank_is_seen() -> None:
    """Guards that a running rank of ours does not excuse another process on a new API port."""
    recipe = replace(RECIPE, serving=Serving(port=8001, memory_fraction=0.8))
    head = replace(rank_specs()[0], listens=(("127.0.0.1", 8001),))
    where = context({**taken_port("127.0.0.1", 8001), "ranks": (rank_status("big"),)}, recipe, specs=(head,))
    assert [finding.title for finding in run_check("PORT001", where)] == ["port 8001 is in use by uvicorn"]
