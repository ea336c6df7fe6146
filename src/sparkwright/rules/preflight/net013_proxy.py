"""A proxy catches what is meant for the nodes themselves.

Detects: an http proxy in a node's environment or in Docker's daemon, whose list of exceptions has neither `*` nor
  loopback, or lacks the node's fabric addresses.
Why: HTTP clients of engines and health checks then ask the proxy for 127.0.0.1 and for the peer, and get its error
  page or nothing.
Evidence: where it is set, and the exceptions.
Remedy: name them in no_proxy; networks (`192.168.100.0/24`) are understood by some programs only.
References: https://docs.docker.com/engine/cli/proxy/
"""

from collections.abc import Iterator

from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.fabric import parsed, rails
from sparkwright.rules.reading import known, simulated
from sparkwright.rules.rule import Context

CODE = "NET013"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "a proxy catches local addresses"

_LOOPBACK = "127.0.0.1"


def check(context: Context) -> Iterator[Finding]:
    for facts in context.facts.values() if not simulated(context) else ():
        for where, proxy, exceptions in _proxies(facts):
            wanted = [_LOOPBACK, *(a.ipv4 for rail in rails(facts) for a in rail.link.addresses)]
            caught = [address for address in wanted if not _excepted(address, exceptions)]
            if caught:
                yield Finding(
                    CODE,
                    SEVERITY,
                    facts.node,
                    f"the proxy of {where} catches {caught[0]}",
                    f"{where}: proxy {proxy}, no_proxy {exceptions or '(not set)'}",
                    "requests to the node itself and to its peers go to the proxy",
                    f"no_proxy={','.join(['localhost', *caught])} beside it, and the same for NO_PROXY",
                )


def _proxies(facts: NodeFacts) -> Iterator[tuple[str, str, str]]:
    """(where, proxy, exceptions) of the environment and of the daemon."""
    settings, docker = known(facts.settings), known(facts.docker)
    entries = settings.proxies if settings else ()
    for where in dict.fromkeys(entry.where for entry in entries):
        here = {entry.name.lower(): entry.value for entry in entries if entry.where == where}
        proxy = here.get("http_proxy") or here.get("all_proxy")
        if proxy:
            yield where, proxy, here.get("no_proxy", "")
    if docker and docker.proxy:
        yield "the Docker daemon", docker.proxy, docker.no_proxy


def _excepted(address: str, exceptions: str) -> bool:
    for entry in exceptions.replace(" ", ",").split(","):
        network, single = parsed(entry), parsed(address)
        inside = network is not None and single is not None and single.subnet_of(network)
        if entry == "*" or (entry == "localhost" and address == _LOOPBACK) or inside:
            return True
    return False
