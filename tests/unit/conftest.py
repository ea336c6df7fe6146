"""What all unit tests share."""

import gc


def pytest_collection_finish() -> None:
    """Modules and collected tests stay until the end: the collector need not walk over them again and again."""
    gc.collect()
    gc.freeze()
