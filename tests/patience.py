"""The one way to wait in tests: no test asserts how long something takes, since test machines are shared."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 300.0  # seconds: what has not come by then never comes, also beside four busy loops; a test has 900
CALL = 600.0  # seconds for one whole command


def wait_until(true: Callable[[], object], what: str | Callable[[], str] = "", poll: float = 0.05) -> float:
    """Seconds that it took. Raises AssertionError with what did not happen."""
    began = time.monotonic()
    while not true():
        if time.monotonic() - began > PATIENCE:
            raise AssertionError(f"not within {PATIENCE:g} s: {what() if callable(what) else what}")
        time.sleep(poll)
    return time.monotonic() - began
