"""The program of ours on a head node: what can run it there, and its files."""

from sparkwright.app.lease import did
from sparkwright.app.services import Services, understood
from sparkwright.domain.service import ServiceHost
from sparkwright.facts.service import parse_service_host
from sparkwright.remote import service


async def service_host_of(services: Services, name: str) -> ServiceHost:
    """The node's means to run services. Raises CommandFailed."""
    node = services.cluster.node(name)
    more = (services.python,) if node.is_local else ()
    found = parse_service_host(await services.run(name, service.service_host(node.paths.state, more)))
    return understood(name, "what it has for services", found)


async def unpacked(services: Services, name: str, service_host: ServiceHost) -> tuple[str, str]:
    """The digest of the program and its folder on the node, where it is afterwards."""
    assert services.program, "supervising needs the program"
    digest, state = services.program.digest, service_host.state
    if digest not in service_host.runtimes:
        await did(services, name, service.unpack(state, digest, services.program.archive()))
    return digest, f"{state}/runtime/{digest}"
