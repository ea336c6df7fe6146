"""Driver versions of those nodes for which they matter."""

import re
from collections.abc import Iterator

from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.host_facts import Package
from sparkwright.rules.reading import gpu_may_be_used, known, not_gb10
from sparkwright.rules.rule import Context

_PACKAGE = re.compile(r"nvidia-driver-[0-9]{3}(-open|-server|-server-open)?", re.ASCII)
_VERSION = re.compile(r"([0-9]{2,4})(\.[0-9]+)+", re.ASCII)


def driver_versions(context: Context) -> Iterator[tuple[str, str, int]]:
    """(node, `580.142`, 580) of GB10 nodes whose GPU may be used and whose loaded module is known."""
    for facts in context.facts.values():
        driver = known(facts.driver)
        match = _VERSION.fullmatch(driver.version) if driver and isinstance(driver.version, str) else None
        if match and gpu_may_be_used(context, facts.node) and not not_gb10(facts):
            yield facts.node, match[0], int(match[1])


def driver_package(facts: NodeFacts) -> Package | None:
    """The package that stands for the driver as a whole: `nvidia-driver-580-open`."""
    return next((p for p in known(facts.packages) or () if _PACKAGE.fullmatch(p.name)), None)


def upstream(version: str) -> str:
    """`580.142` of `580.142-0ubuntu0.24.04.1`, without an epoch."""
    return version.rpartition(":")[2].partition("-")[0]


def library_differs(facts: NodeFacts) -> tuple[str, str] | None:
    """(loaded module, libcuda) when both are known and are not of one version: CUDA refuses such a pair."""
    driver, board = known(facts.driver), known(facts.board)
    library = known(board.libcuda) if board else None
    loaded = known(driver.version) if driver else None
    if not loaded or not library or not library.version or library.version == loaded:
        return None
    return loaded, library.version
