"""What all unit tests share."""

import gc

import pytest
from hypothesis import settings

# Examples of a property that names no number. More of them: pytest --hypothesis-profile=deep
settings.register_profile("unit", max_examples=40, deadline=None)
settings.register_profile("deep", max_examples=1000, deadline=None)
settings.load_profile("unit")

gc.disable()  # until all is collected: what is imported stays


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Properties are for `make unit-full`, as is every test that is marked `full`."""
    for item in items:
        if item.get_closest_marker("hypothesis"):
            item.add_marker("full")


def pytest_collection_finish() -> None:
    """Modules and collected tests stay until the end: the collector need not walk over them again and again."""
    gc.collect()
    gc.freeze()
    gc.enable()
