"""Programs that run on nodes around or inside an engine, each self-contained (Python >= 3.10, its library only)."""

from functools import cache
from importlib.resources import files

from sparkwright.domain.plan import RankFile


@cache
def script(name: str) -> RankFile:
    """A launcher's text, to be copied next to the rank that runs it."""
    return RankFile(name, (files("sparkwright.engines.launchers") / name).read_text(encoding="utf-8"))
