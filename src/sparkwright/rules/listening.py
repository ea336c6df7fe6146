"""Which programs on a node listen to more than themselves and the fabric."""

from collections.abc import Iterator
from ipaddress import ip_address

from sparkwright.domain.facts import Listener, NodeFacts
from sparkwright.domain.finding import Severity
from sparkwright.rules.fabric import fabric_netdevs
from sparkwright.rules.reading import known, running
from sparkwright.rules.rule import Context

# Names that hide what runs: Docker's forwarder and interpreters.
_ANYTHING = ("docker-proxy", "python", "uvicorn", "gunicorn", "node", "rootlessport")


def exposed(context: Context) -> Iterator[tuple[NodeFacts, Listener]]:
    """Sockets that other machines may reach, beside those of our ranks; none of a node whose ranks are not known.

    None with a recipe: what others have opened is no matter of its start.
    """
    for facts in context.facts.values() if not context.cluster.simulated and not context.recipe else ():
        ours = running(facts)
        ports = {rank.port for rank in ours or ()}
        for listener in known(facts.listeners) or () if ours is not None else ():
            if listener.port not in ports and _beyond(facts, listener.address):
                yield facts, listener


def runs(facts: NodeFacts, engine: str) -> bool:
    """Whether a rank of ours with that engine runs there: its helpers' ports are not foreign."""
    return any(rank.engine.startswith(engine) for rank in running(facts) or ())


def judged(facts: NodeFacts, severity: Severity) -> Severity:
    """Behind a firewall it is only worth knowing."""
    network = known(facts.network)
    return Severity.INFO if network and network.firewall else severity


def likely(listener: Listener, *programs: str) -> bool:
    """Whether a port's usual owner may be behind it: one of `programs`, no name told, or one that says nothing."""
    return not listener.process or listener.process.startswith((*programs, *_ANYTHING))


def said(listener: Listener) -> str:
    return f"ss: {listener.address}:{listener.port} {listener.process or '(no name told)'}"


def _beyond(facts: NodeFacts, address: str) -> bool:
    bare = address.removeprefix("::ffff:")
    fabric = fabric_netdevs(facts)
    own = {a.ipv4 for link in known(facts.interfaces) or () if link.name in fabric for a in link.addresses}
    try:
        return bare not in own and not ip_address(bare).is_loopback
    except ValueError:
        return bare == "*"
