"""The rank that holds up a start."""

from sparkwright.domain.deployment import Phase
from sparkwright.engines.stuck import behind, why_stuck


def test_a_silent_rank_has_not_joined() -> None:
    """Capture m3: the head waits at the rendezvous and nothing comes from rank 1."""
    assert why_stuck({0: Phase.RENDEZVOUS, 1: None}).startswith("rank 1 has not joined")
    assert why_stuck({0: Phase.RENDEZVOUS, 1: Phase.START, 2: None, 3: None}).startswith("ranks 2, 3 have not joined")


def test_deaf_ranks_point_to_the_interfaces() -> None:
    """Capture m4: both are there and print nothing; the cause is the interface, not a missing rank."""
    assert "GLOO_SOCKET_IFNAME" in why_stuck({0: Phase.RENDEZVOUS, 1: Phase.RENDEZVOUS})


def test_the_rank_furthest_behind_is_named() -> None:
    """A rank that is still while the others went on is the one to inspect, with a hint for its phase."""
    assert behind({0: Phase.SERVER, 1: Phase.GRAPHS}) == (1,)
    assert why_stuck({0: Phase.SERVER, 1: Phase.GRAPHS}).startswith("rank 1 stands still at graphs: graph capture")
    assert why_stuck({0: Phase.START}).startswith("rank 0 stands still at start")


def test_every_phase_has_a_sentence() -> None:
    """No phase leaves the user without a word."""
    assert all(why_stuck({0: phase, 1: phase}) for phase in Phase)
