"""The common fixtures of all unit tests."""

import gc

import pytest
from hypothesis import is_hypothesis_test, settings

from cpu_limit import pytest_runtest_call
from sparkwright.app.diagnose.examine import examine

__all__ = ["pytest_collection_finish", "pytest_collection_modifyitems", "pytest_runtest_call"]

# Examples of a property that names no number. More of them: pytest --hypothesis-profile=deep
settings.register_profile("unit", max_examples=40, deadline=None)
settings.register_profile("deep", max_examples=1000, deadline=None)
settings.load_profile("unit")

DIAGNOSING = {"causes", "checks", "app", "cli"}  # folders whose tests look through logs

gc.disable()  # until all is collected: what is imported stays


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Properties are for `make unit-full`, as is what is marked `full`, and the house tests, which read the whole tree
    (`make check` runs them, too). Those come first and one after the other: only one worker reads the tree."""
    for item in items:
        if item.path.name == "test_house.py":
            item.add_marker("house")
            item.add_marker("full")
        elif is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker("full")
    items.sort(key=lambda item: item.path.name != "test_house.py")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build what many tests share before they are timed and before workers fork. Modules and collected tests stay until
    the end: the collector need not walk over them again and again."""
    if any(DIAGNOSING & set(item.path.parts) for item in session.items):
        examine([("log", [b"Error: no such file"])], 2026, {})
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()
