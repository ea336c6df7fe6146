"""Loaders of weights as data: strict rows, and what the plan shows of them."""

from sparkwright.engines.tables import load_table, loader
from sparkwright.planner.speed import loader_costs
from unit.for_each import for_each
from unit.planner.memory_samples import recipe


@for_each("name", sorted(load_table("loaders")))
def test_every_loader_has_a_range_a_rate_and_a_source(name: str) -> None:
    """A row is written by somebody who knows loaders and not this code: what lacks or is reversed is found here."""
    found = loader(name)
    for likely, least, most in (found.buffers, found.keeps):
        assert 0 <= least <= likely <= most
    for fast, likely, slow in (found.disk, found.cached, found.rate):
        assert fast >= likely >= slow > 0
    assert all(there >= disk for there, disk in zip(found.cached, found.disk, strict=True))
    assert found.what and all(url.startswith("https://") for url in found.see)


def test_an_unknown_loader_counts_as_the_default_one() -> None:
    """A name that a build adds is planned with, not refused."""
    assert loader("brand-new") == loader("default") != loader("instanttensor")


def costs_by_loader(engine: str, name: str = "") -> dict[str, bool | None]:
    flags = {"load_format": name} if name else {}
    return {cost.name: cost.there for cost in loader_costs(recipe(None, engine, flags=flags), 80 * 10**9)}


def test_the_versions_of_a_loader_are_those_whose_options_were_read() -> None:
    """A version between two that were read may have it or not: that is not guessed."""
    assert costs_by_loader("vllm 0.21.0")["fastsafetensors"] is True
    assert (
        costs_by_loader("sglang 0.5.20")["instanttensor"] is False
        and costs_by_loader("sglang 0.5.23")["instanttensor"] is True
    )
    assert (
        costs_by_loader("vllm 0.24.0")["fastsafetensors"] is None
        and costs_by_loader("vllm 0.22.1")["instanttensor"] is None
    )


def test_the_recipe_s_own_loader_comes_first() -> None:
    """Names for the same thing are one row; without weights, or without a choice, nothing is shown."""
    assert next(iter(costs_by_loader("vllm 0.21.0", "instanttensor"))) == "instanttensor"
    assert list(costs_by_loader("vllm 0.21.0", "safetensors")) == list(costs_by_loader("vllm 0.21.0"))
    assert costs_by_loader("vllm 0.21.0", "brand-new")["brand-new"] is False
    assert costs_by_loader("vllm 0.21.0", "dummy") == costs_by_loader("llama-cpp b10269") == {}
