"""JSON from servers, clients and files that nobody of ours has written."""

import json
from math import isfinite
from typing import Any


def read_json(text: str | bytes) -> Any:
    """Parse JSON. Raises ValueError and nothing else: also for a nest that is too deep, and for a number like `1e999`,

    which no float holds and on which int() would fail somewhere else.
    """
    try:
        return json.loads(text, parse_float=_finite)
    except RecursionError:
        raise ValueError("JSON that is nested too deeply") from None


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"a number beyond all bounds: {text[:40]}")
    return number
