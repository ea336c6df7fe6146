"""What all unit tests share."""

import gc

from hypothesis import settings

# Examples of a property that names no number. More of them: pytest --hypothesis-profile=deep
settings.register_profile("unit", max_examples=40, deadline=None)
settings.register_profile("deep", max_examples=1000, deadline=None)
settings.load_profile("unit")

gc.disable()  # until all is collected: what is imported stays


def pytest_collection_finish() -> None:
    """Modules and collected tests stay until the end: the collector need not walk over them again and again."""
    gc.collect()
    gc.freeze()
    gc.enable()
