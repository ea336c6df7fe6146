"""A unit test that uses more than half a second of CPU fails, unless it is marked `full`.

CPU time is that of this process and of the children that the test waited for, without fixtures. A module that the test
is the first to import is paid by an allowance. A busy or slow machine needs more CPU time for the same work, so a test
over the limit counts in units of a fixed piece of work that is measured at that moment.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Generator

import pytest

LIMIT = 0.5  # CPU seconds of a machine that does the fixed work in REFERENCE
REFERENCE = 0.025
NOISE = 1.6  # CPU time of the same work varies that much on a machine that runs other things
PER_MODULE = 0.01  # seconds; what an import takes at most, but for a few


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    modules, began = len(sys.modules), cpu_seconds()
    result = yield
    used = cpu_seconds() - began - PER_MODULE * (len(sys.modules) - modules)
    if used > LIMIT and not item.get_closest_marker("full") and used > (limit := LIMIT * NOISE * slowness()):
        reason = f"used {used:.2f} s of CPU, allowed are {limit:.2f} s here: make it shorter or mark it `full`"
        pytest.fail(reason, pytrace=False)
    return result


def cpu_seconds() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def slowness() -> float:
    """The factor by which fixed work takes longer now than on the machine that the limit was set on; at least 1."""
    return max(1.0, *(fixed_work() / REFERENCE for _ in range(3)))


def fixed_work() -> float:
    """CPU seconds that it took."""
    began = time.process_time()
    total = 0
    for number in range(500_000):
        total += number
    return time.process_time() - began
