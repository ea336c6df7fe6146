"""The one change of MTU that may be made by itself: up to what the other end or the twin already has."""

from sparkwright.domain.finding import Fix
from sparkwright.remote.repair import mtu_fix
from sparkwright.rules.fabric import Rail
from sparkwright.rules.reading import known, running
from sparkwright.rules.rule import Context


def raised(context: Context, rail: Rail, mtu: int) -> Fix | None:
    """None while an engine may run there: the driver rebuilds its queues, and connections stand still."""
    facts = context.facts.get(rail.node)
    if facts is None or running(facts) != () or known(facts.gpu_processes) != ():
        return None
    return mtu_fix(rail.node, rail.name, mtu, rail.link.mtu)
