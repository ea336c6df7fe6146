"""The program of ours on a head node: what can run it there, and its files."""

from collections.abc import Sequence

from sparkwright.app.lease import run_or_raise
from sparkwright.app.services import Services, understood
from sparkwright.checks import supervision as sup
from sparkwright.domain.finding import Finding
from sparkwright.domain.service import Installation, Manager, Service, ServiceHost
from sparkwright.domain.values import replace
from sparkwright.emit.systemd import unit_name, unit_text
from sparkwright.facts.service import parse_service_host
from sparkwright.remote import service

Kept = tuple[Manager, ServiceHost]  # what keeps services running, and what is known of their node


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
        await run_or_raise(services, name, service.unpack(state, digest, services.program.archive()))
    return digest, f"{state}/runtime/{digest}"


async def manager_of(services: Services, node: str, service_host: ServiceHost) -> tuple[Manager, tuple[Finding, ...]]:
    """The manager that keeps services there, and findings about what it cannot do. Raises NodeError."""
    if services.cluster.simulated:
        return Manager.NONE, ()  # embedded nodes: units of this machine's own systemd are left alone
    if service_host.manager is Manager.USER and not service_host.lingers:
        done = await services.run(node, service.enable_linger(service_host.state))
        if not done.ok:
            why = f"linger cannot be enabled for {service_host.user}: {done.stderr.strip()[-200:]}"
            return Manager.NONE, (sup.NO_START_AT_BOOT.on(node, why),)
    if service_host.manager is Manager.NONE:
        why = service_host.why or "systemd runs there, but not for this user, and sudo wants a password"
        return Manager.NONE, (sup.NO_START_AT_BOOT.on(node, why),)
    return service_host.manager, ()


async def keep_running(
    services: Services, where: Installation, deployment: str, programs: Sequence[Service], kept: Kept
) -> None:
    """Ranks that the supervisor starts on its own node must find what those find that `up` starts there over ssh."""
    manager, service_host = kept
    env = (*service_host.env, *services.cluster.node(where.node).env)
    runtime = f"{where.runtime.rpartition('/')[2]}\n".encode()
    await run_or_raise(services, where.node, service.write(where.home, "runtime", runtime))
    await run_or_raise(services, where.node, service.write(where.home, service.RESTORE, service.restore_script()))
    for bare in programs:
        ours = where.runtime in bare.argv
        argv = service.restored_first(where.home, where.runtime, bare.argv) if ours else bare.argv
        one = replace(bare, argv=argv, env=(*env, *bare.env))
        if manager is Manager.NONE:
            command = service.detach(one, where.home, repr(one))
        else:
            text = unit_text(one, deployment, where.home, manager, service_host.user)
            command = service.install(manager, unit_name(one, deployment), text)
        await run_or_raise(services, where.node, command)
