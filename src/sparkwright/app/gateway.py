"""The gateway made ready on the head node: its files, and which programs are to run."""

import json
from dataclasses import dataclass, replace
from hashlib import sha256

from sparkwright.app import keys as key_work
from sparkwright.app.lease import did
from sparkwright.app.services import Services, understood
from sparkwright.checks.gateway import CHECKS, NO_CADDY, PAIR, PORT
from sparkwright.domain.check import Context
from sparkwright.domain.codec import Unreadable, to_json
from sparkwright.domain.errors import SparkwrightError
from sparkwright.domain.finding import Finding
from sparkwright.domain.plan import Plan
from sparkwright.domain.recipe import Expose, Gateway, GatewayTls
from sparkwright.domain.service import GatewayFacts, Installation, Service
from sparkwright.engines.tables import routes
from sparkwright.facts import service as facts
from sparkwright.gateway.caddy import GatewayConfig, certificate_folders, config, root_certificate
from sparkwright.gateway.keys import FILE, GatewaySetting, parse
from sparkwright.remote import gateway as commands

_LOCAL = ("localhost", "127.0.0.1")
_NAMES = 24
ENDPOINT = "endpoint"
"""The file next to the gateway's own with its URL: no gateway was made where it is missing."""


@dataclass(frozen=True, slots=True)
class Reach:
    """How clients come to a gateway. url: theirs, with /v1. tunnel: `ssh` destination where only the head reaches it.

    key, authority: files on this machine, '' where there is none.
    """

    url: str
    tunnel: str = ""
    key: str = ""
    authority: str = ""


@dataclass(frozen=True, slots=True)
class GatewayInstall:
    """services: to be run in the gateway's folder of where.home. Findings never stop the engine.

    Caddy comes first: until another deployment's Caddy on the same port has gone both answer (SO_REUSEPORT), and only
    then is the port of the figures free for the service.
    key: the file here with a key that opens it, '' where this machine has none.
    """

    services: tuple[Service, ...]
    findings: tuple[Finding, ...] = ()
    said: tuple[str, ...] = ()  # lines for the user
    key: str = ""

    @property
    def before(self) -> tuple[Service, ...]:
        """What can run next to the gateway that is replaced."""
        return tuple(one for one in self.services if one.name == "caddy")

    @property
    def after(self) -> tuple[Service, ...]:
        return tuple(one for one in self.services if one.name != "caddy")

    @property
    def listens(self) -> bool:
        """Without Caddy, only the service that answers it is there, and the figures."""
        return len(self.services) > 1


async def install_gateway(services: Services, plan: Plan, where: Installation, handed: int = 0) -> GatewayInstall:
    """Idempotent. A Caddy that runs takes over what has changed without cutting a stream. Raises NodeError.

    handed: a port that another deployment's gateway holds and gives up for this one.
    """
    seen = await _look(services, plan, where)
    found = tuple(f for f in _judged(plan, seen) if f.code != PORT or plan.recipe.serving.door.port != handed)
    codes = {finding.code for finding in found}
    gateway = plan.recipe.serving.door
    front = _front(plan, where, seen, replace(gateway, tls=GatewayTls.INTERNAL) if PAIR in codes else gateway)
    await did(services, where.node, commands.folders(where.state, where.home, certificate_folders(front)))
    setting = to_json(_setting(plan, where))
    # It reads its setting once: with another one its unit differs, and it is started again.
    mark = (("SPARKWRIGHT_SETTING", sha256(setting.encode()).hexdigest()[:12]),)
    service = Service("door", where.argv("door"), mark, cwd=f"{where.home}/door")
    console = Service("console", where.argv("console"), cwd=f"{where.home}/door")
    await _put(services, where, FILE, setting)
    if codes & {NO_CADDY, PORT}:
        return GatewayInstall((service,), found)
    await _put(services, where, "caddy.json", json.dumps(config(front), indent=1))
    await _put(services, where, ENDPOINT, endpoint(plan, seen.hostname) + "\n")
    await did(services, where.node, commands.reload(where.python, f"{where.home}/door"))
    key, said = await _first_key(services, plan)
    return GatewayInstall((service, console, _caddy(plan, where, seen, front)), found, said, key)


async def findings(services: Services, plan: Plan, where: Installation) -> tuple[Finding, ...]:
    """What is wrong with the gateway's files and programs now; changes nothing. Raises NodeError."""
    return _judged(plan, await _look(services, plan, where))


def _judged(plan: Plan, seen: GatewayFacts) -> tuple[Finding, ...]:
    context = Context(plan.cluster, recipe=plan.recipe, gateway=seen)
    return tuple(finding for check in CHECKS for finding in check.findings(context))


async def _look(services: Services, plan: Plan, where: Installation) -> GatewayFacts:
    """Raises CommandFailed."""
    gateway = plan.recipe.serving.door
    asked = facts.fact(where.node, where.state, where.home, gateway.port, (gateway.certificate, gateway.key))
    seen = understood(where.node, "what it has for a gateway", await services.read(where.node, asked))
    try:
        parse(seen.keys or "")
    except Unreadable as error:
        return replace(seen, keys_wrong=str(error))
    return seen


def _front(plan: Plan, where: Installation, seen: GatewayFacts, gateway: Gateway) -> GatewayConfig:
    return GatewayConfig(
        addresses=_addresses(plan),
        port=gateway.port,
        store=_store(where),
        tls=gateway.tls,
        names=_names(plan, seen, gateway),
        certificate=gateway.certificate,
        key=gateway.key,
        limit=gateway.body_limit,
        websockets=routes(plan.recipe.engine.name).websockets,
    )


def _store(where: Installation) -> str:
    return f"{where.state}/door/ca"


def _addresses(plan: Plan) -> tuple[str, ...]:
    fabric = tuple(dict.fromkeys((plan.bind, "127.0.0.1")))
    return {Expose.ALL: ("",), Expose.FABRIC: fabric}.get(plan.recipe.serving.expose, ("127.0.0.1",))


def _names(plan: Plan, seen: GatewayFacts, gateway: Gateway) -> tuple[str, ...]:
    """What clients may call the head node; what is asked for without a name gets the first one's certificate."""
    head = plan.cluster.node(plan.head)
    host = "" if head.is_local else head.ssh.rpartition("@")[2]
    names = (seen.hostname, *gateway.names, host, head.name, f"{seen.hostname}.local", *_LOCAL, *seen.addresses)
    return tuple(dict.fromkeys(name for name in names if name))[:_NAMES]


def _setting(plan: Plan, where: Installation) -> GatewaySetting:
    serving = plan.recipe.serving
    return GatewaySetting(
        plan.deployment,
        keys=f"{where.state}/door/keys.json",
        limit=serving.door.body_limit,
        key_env=serving.api_key_env,
        metrics=serving.door.port + 1,
        routes=(*routes(plan.recipe.engine.name).calls, *serving.door.routes),
        engine=f"{plan.bind}:{plan.port}",
        models=(plan.served_name,),
        port=serving.door.port,
    )


def _caddy(plan: Plan, where: Installation, seen: GatewayFacts, front: GatewayConfig) -> Service:
    """The system's own program, else the container that is there already."""
    folder = f"{where.home}/door"
    if seen.caddy:
        return Service("caddy", (seen.caddy, "run", "--config", "caddy.json"), cwd=folder)
    name = f"sparkwright-caddy-{plan.deployment}"
    pair = (front.certificate, front.key) if front.tls is GatewayTls.FILES else ()
    return Service("caddy", commands.contained(name, seen.user, (folder, front.store), pair), cwd=folder)


def endpoint(plan: Plan, hostname: str) -> str:
    """The URL that clients use."""
    serving, head = plan.recipe.serving, plan.cluster.node(plan.head)
    scheme = "http" if serving.door.tls is GatewayTls.OFF else "https"
    host = hostname if head.is_local else head.ssh.rpartition("@")[2]
    at = {Expose.LOOPBACK: "127.0.0.1", Expose.FABRIC: plan.bind, Expose.ALL: (*serving.door.names, host)[0]}
    return f"{scheme}://{at[serving.expose]}:{serving.door.port}/v1"


async def _first_key(services: Services, plan: Plan) -> tuple[str, tuple[str, ...]]:
    """The file with a key, and what to print of it."""
    try:
        path = await key_work.first(services, plan.deployment)
    except SparkwrightError as error:
        return "", (f"no key could be made: {error.message}; {error.hint or '`sparkwright keys add NAME` later'}",)
    if path or not services.keyring:
        return path, ()
    return "", ("this machine has no key to it: `sparkwright keys add NAME` makes one",)


async def settled(services: Services, plan: Plan, where: Installation) -> tuple[Reach | None, tuple[str, ...]]:
    """Once its programs have been started: waits until the gateway listens; what to print of it. Raises NodeError."""
    gateway = plan.recipe.serving.door
    asked = commands.settled(where.python, f"{where.home}/door", gateway.port, root_certificate(_store(where)))
    done = await services.run(where.node, asked)
    if not done.ok:
        return None, (f"the gateway does not answer on {where.node}: {done.stderr.strip()[-300:]}",)
    taken = f"port {gateway.port + 1} is taken; set a serving.door.port that is free with the next"
    no_figures = (f"no figures for Prometheus: {taken}",) if commands.NO_FIGURES in done.stderr else ()
    head, loopback = plan.cluster.node(plan.head), plan.recipe.serving.expose is Expose.LOOPBACK
    tunnel = head.ssh if loopback and not head.is_local else ""
    ring = services.keyring if done.stdout else None
    path = ring.save(plan.cluster.name, "ca.crt", done.stdout) if ring else ""
    return Reach(endpoint(plan, where.node), tunnel, authority=path), no_figures


async def _put(services: Services, where: Installation, name: str, content: str) -> None:
    await services.hosts[where.node].put(content.encode(), f"{where.home}/door/{name}", 0o600)
