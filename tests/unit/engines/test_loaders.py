"""Loaders of weights as data: strict rows, and what the plan shows of them."""

from sparkwright.engines.tables import loader, table
from unit.for_each import for_each


@for_each("name", sorted(table("loaders")))
def test_every_loader_has_a_range_a_rate_and_a_source(name: str) -> None:
    """A row is written by somebody who knows loaders and not this code: what lacks or is reversed is found here."""
    found = loader(name)
    for likely, least, most in (found.buffers, found.keeps):
        assert 0 <= least <= likely <= most
    assert found.rate[0] >= found.rate[1] >= found.rate[2] > 0
    assert found.what and all(url.startswith("https://") for url in found.see)


def test_an_unknown_loader_counts_as_the_default_one() -> None:
    """A name that a build adds is planned with, not refused."""
    assert loader("brand-new") == loader("default") != loader("instanttensor")
