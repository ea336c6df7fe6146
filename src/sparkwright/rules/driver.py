"""Driver versions of those nodes for which they matter."""

import re
from collections.abc import Iterator

from sparkwright.rules.reading import gpu_may_be_used, known, not_gb10
from sparkwright.rules.rule import Context

_VERSION = re.compile(r"([0-9]{2,4})(\.[0-9]+)+", re.ASCII)


def driver_versions(context: Context) -> Iterator[tuple[str, str, int]]:
    """(node, `580.142`, 580) of GB10 nodes whose GPU may be used and whose loaded module is known."""
    for facts in context.facts.values():
        driver = known(facts.driver)
        match = _VERSION.fullmatch(driver.version) if driver and isinstance(driver.version, str) else None
        if match and gpu_may_be_used(context, facts.node) and not not_gb10(facts):
            yield facts.node, match[0], int(match[1])
