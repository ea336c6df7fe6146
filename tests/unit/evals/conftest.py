"""The simulator's fixtures: probes are played against it in this process."""

from unit.simulator.conftest import make_client, make_rank

__all__ = ["make_client", "make_rank"]
