"""The gateway made ready on the head node: its files, and which programs are to run."""

import asyncio
import json

from sparkwright.app.lease import run_or_raise
from sparkwright.app.serve.certificates import mend_certificates
from sparkwright.app.services import Services, together, understood
from sparkwright.app.setup import keys as key_work
from sparkwright.checks.gateway import CHECKS, DIFFERS, NO_CADDY, PAIR, PORT
from sparkwright.checks.supervision import NEW_CA
from sparkwright.domain.check import Context
from sparkwright.domain.codec import Unreadable, from_json, to_json
from sparkwright.domain.errors import Refused, SparkwrightError
from sparkwright.domain.finding import Finding
from sparkwright.domain.plan import Plan
from sparkwright.domain.recipe import Expose, Gateway, GatewayTls
from sparkwright.domain.replica import is_part_of
from sparkwright.domain.service import GatewayFacts, Installation, Service
from sparkwright.domain.values import dataclass, replace
from sparkwright.engines.catalog import routes_of
from sparkwright.facts import service as facts
from sparkwright.gateway.caddy import (
    GatewayConfig,
    certificate_folders,
    config,
    fingerprint,
    given_root,
    root_certificate,
)
from sparkwright.gateway.keys import FRONT, ROUTE, FrontSetting, RouteSetting, parse
from sparkwright.remote import gateway as commands
from sparkwright.remote import service as service_commands

_LOCAL = ("localhost", "127.0.0.1")
_NAMES = 24
NO_KEY_HERE = (
    "this machine has no key to the gateway: a key is only on the machine that made it; `sparkwright keys add NAME` "
    "makes one here"
)
AUTHORITY = "ca.crt"
ENDPOINT = "endpoint"
"""The file next to the gateway's own with its URL: no gateway was made where it is missing."""


@dataclass(frozen=True, slots=True)
class GatewayReach:
    """The clients' way to a gateway. url: theirs, with /v1. tunnel: `ssh` destination if only the head reaches it.

    key, authority: files on this machine, '' where there is none. findings: what clients have to know. second: URL of
    the standby's gateway, which serves while that of the head does not; '' without one.
    """

    url: str
    tunnel: str = ""
    key: str = ""
    authority: str = ""
    findings: tuple[Finding, ...] = ()
    second: str = ""


@dataclass(frozen=True, slots=True)
class GatewayInstall:
    """services: of the head node's gateway `name`, in the folder of where.home. Findings never stop the engine.

    key: the file here with a key that opens it, '' where this machine has none. moved: its port is another than before,
    so the gateway on the old port may have no deployment left. url: for clients, '' where it does not listen.
    """

    name: str
    where: Installation
    services: tuple[Service, ...]
    findings: tuple[Finding, ...] = ()
    said: tuple[str, ...] = ()  # lines for the user
    key: str = ""
    moved: bool = False
    url: str = ""

    @property
    def listens(self) -> bool:
        """True if Caddy listens; without it only the answering service and the figures run."""
        return len(self.services) > 1


def gateway_name(port: int) -> str:
    """The folder name of the head's gateway on a port, next to those of deployments; no deployment can have it."""
    return f"_gateway-{port}"


def shared(where: Installation, port: int) -> Installation:
    """The gateway's own place: it outlives each of the deployments behind it, and goes with the last."""
    return replace(where, home=f"{where.state}/supervision/{gateway_name(port)}")


async def install_gateway(services: Services, plan: Plan, where: Installation, replaces: str = "") -> GatewayInstall:
    """Idempotent, next to others on the same port too. A Caddy that runs takes over what has changed without cutting a

    stream. replaces: a deployment that leaves the gateway next, and has no say in its settings. Raises NodeError.
    """
    gateway = plan.recipe.serving.gateway
    at = shared(where, gateway.port)
    seen, before = await asyncio.gather(_look(services, plan, where, replaces), _routed_port(services, where))
    found = _judged(plan, seen)
    codes = {finding.code for finding in found}
    front = _front(plan, at, seen, replace(gateway, tls=GatewayTls.INTERNAL) if PAIR in codes else gateway)
    await run_or_raise(services, where.node, commands.folders(where.state, at.home, certificate_folders(front)))
    # A route that clients use now is never replaced by none.
    works, moved = before == gateway.port and seen.ours, before not in (0, gateway.port)
    none = bool(codes & {NO_CADDY, PORT, DIFFERS}) and not works
    route = _put(services, where, ROUTE, to_json(_route(plan, none)))
    await together([run_or_raise(services, where.node, commands.behind(where.home, gateway.port)), route])
    door = Service("door", at.argv("door"), cwd=f"{at.home}/door", watchdog=True)
    if DIFFERS in codes:
        return GatewayInstall(gateway_name(gateway.port), at, (), found, moved=moved)
    setting = _put(services, at, FRONT, to_json(_setting(front, where)))
    if none:
        await setting
        return GatewayInstall(gateway_name(gateway.port), at, (door,), found, moved=moved)
    url = endpoint(plan, seen.called)
    caddy = _put(services, at, "caddy.json", json.dumps(config(front), indent=1))
    await together([setting, caddy, _put(services, where, ENDPOINT, f"{url}\n")])
    if front.tls is GatewayTls.INTERNAL:
        await mend_certificates(services, where.node, front.store, f"{at.home}/door", renew=True)
    _, (key, said) = await asyncio.gather(
        run_or_raise(services, where.node, commands.reload(where.python, f"{at.home}/door")), _first_key(services, plan)
    )
    console = Service("console", at.argv("console"), cwd=f"{at.home}/door", watchdog=True)
    programs = (_caddy(gateway_name(gateway.port), at, seen, front), door, console)
    return GatewayInstall(gateway_name(gateway.port), at, programs, found, said, key, moved, url)


async def install_standby_gateway(services: Services, plan: Plan, where: Installation) -> GatewayInstall:
    """The files of the same gateway on the standby, in a state folder of its own; nothing is started.

    Without programs if it could not listen there: the findings say why. Raises NodeError.
    """
    gateway, expose, node = plan.recipe.serving.gateway, plan.recipe.serving.expose, plan.cluster.node(where.node)
    at = shared(where, gateway.port)
    seen = await _look(services, plan, where)
    judged = _judged(plan, seen)
    codes = {one.code for one in judged}
    # Two nodes that are one machine share its ports
    vain = codes & ({NO_CADDY} if node.is_local else {NO_CADDY, PORT})
    if vain or (expose is Expose.FABRIC and not node.fabric.address):
        return GatewayInstall(gateway_name(gateway.port), at, (), tuple(one for one in judged if one.code in vain))
    front = _front(plan, at, seen, replace(gateway, tls=GatewayTls.INTERNAL) if PAIR in codes else gateway)
    own = {Expose.ALL: ("",), Expose.FABRIC: (node.fabric.address or "", "127.0.0.1")}
    front = replace(front, addresses=own.get(expose, ("127.0.0.1",)))
    await run_or_raise(services, where.node, commands.folders(where.state, at.home, certificate_folders(front)))
    await run_or_raise(services, where.node, commands.behind(where.home, gateway.port))
    # Prompts are kept on the head only
    route = replace(_route(plan, none=False), remember=0)
    await together(
        [
            _put(services, where, ROUTE, to_json(route)),
            _put(services, at, FRONT, to_json(_setting(front, where))),
            _put(services, at, "caddy.json", json.dumps(config(front), indent=1)),
        ]
    )
    called = (node.fabric.address or "") if expose is Expose.FABRIC else seen.called or seen.hostname
    host = "127.0.0.1" if expose is Expose.LOOPBACK else f"[{called}]" if ":" in called else called
    url = f"{'http' if front.tls is GatewayTls.OFF else 'https'}://{host}:{gateway.port}/v1"
    door = Service("door", at.argv("door"), cwd=f"{at.home}/door")
    caddy = _caddy(f"standby-{gateway.port}", at, seen, front)
    return GatewayInstall(gateway_name(gateway.port), at, (caddy, door), (), url=url)


async def refuse_shared_change(services: Services, plan: Plan) -> None:
    """Raise Refused if other deployments keep the gateway's settings as they are and the recipe asks for new ones.

    Changes nothing. A deployment that no client reaches through the gateway is not concerned. Raises NodeError.
    """
    state, gateway = services.state_on(plan.supervisor_node), plan.recipe.serving.gateway
    where = Installation(plan.supervisor_node, f"{state}/supervision/{plan.deployment}", state, "", "")
    if await _routed_port(services, where) != gateway.port:
        return
    seen = await _look(services, plan, where)
    found = tuple(one for one in _judged(plan, seen) if one.code == DIFFERS)
    if found:
        others = ", ".join(name for name in seen.behind if name != plan.deployment)
        said = f"{plan.deployment}: its gateway settings cannot change while {others} is behind the same port"
        raise Refused(f"{said} {gateway.port}; nothing was changed", found, str(found[0].remedy))


async def _routed_port(services: Services, where: Installation) -> int:
    """Port of the gateway that leads to the deployment now, 0 if none does."""
    told = await services.run(where.node, service_commands.read(where.home, f"door/{ROUTE}"))
    try:
        return from_json(RouteSetting, told.stdout).port
    except Unreadable:
        return 0


async def findings(services: Services, plan: Plan, where: Installation) -> tuple[Finding, ...]:
    """Findings about the gateway's files and programs as they are; changes nothing. Raises NodeError."""
    return _judged(plan, await _look(services, plan, where))


def _judged(plan: Plan, seen: GatewayFacts) -> tuple[Finding, ...]:
    context = Context(plan.cluster, recipe=plan.recipe, deployment=plan.deployment, gateway=seen)
    return tuple(finding for check in CHECKS for finding in check.findings(context))


async def _look(services: Services, plan: Plan, where: Installation, replaces: str = "") -> GatewayFacts:
    """Raises CommandFailed."""
    gateway = plan.recipe.serving.gateway
    home, pair = shared(where, gateway.port).home, (gateway.certificate, gateway.key)
    asked = facts.gateway_fact(where.node, where.state, home, gateway.port, pair)
    seen = understood(where.node, "what it has for a gateway", await services.read(where.node, asked))
    model = plan.replica.of if plan.replica else ""
    others = (name for name in seen.behind if name != replaces and not (model and is_part_of(model, name)))
    seen = replace(seen, behind=tuple(others))
    seen = replace(seen, called=await services.hosts[where.node].address() or seen.hostname)
    seen = replace(seen, kept=_kept(seen).open_to, asked=_front(plan, where, seen, gateway).open_to)
    if seen.keys is None:
        made = seen.front and (seen.caddy or seen.image)  # without Caddy there is no gateway to have keys for
        return replace(seen, keys_wrong="it is gone" if made else "")
    try:
        parse(seen.keys)
    except Unreadable as error:
        return replace(seen, keys_wrong=str(error))
    return seen


def _front(plan: Plan, where: Installation, seen: GatewayFacts, gateway: Gateway) -> GatewayConfig:
    return GatewayConfig(
        addresses=_addresses(plan),
        port=gateway.port,
        store=ca_folder(where.state),
        tls=gateway.tls,
        names=tuple(dict.fromkeys((*_names(plan, seen, gateway, where.node), *_kept(seen).names)))[:_NAMES],
        certificate=gateway.certificate,
        key=gateway.key,
    )


def ca_folder(state: str) -> str:
    return f"{state}/door/ca"


def _addresses(plan: Plan) -> tuple[str, ...]:
    fabric = tuple(dict.fromkeys((_on_fabric(plan), "127.0.0.1")))
    return {Expose.ALL: ("",), Expose.FABRIC: fabric}.get(plan.recipe.serving.expose, ("127.0.0.1",))


def _on_fabric(plan: Plan) -> str:
    """The fabric address of the gateway's node; only rank 0 of a replica elsewhere is on another one."""
    return plan.replica.gateway if plan.replica and plan.replica.gateway else plan.bind


def _names(plan: Plan, seen: GatewayFacts, gateway: Gateway, of: str) -> tuple[str, ...]:
    """Names that clients may use for the node; a request without a name gets the first one's certificate."""
    node = plan.cluster.node(of)
    ours = (seen.called, node.host, node.name, f"{seen.hostname}.local")
    names = (seen.hostname, *gateway.names, *ours, *_LOCAL, *seen.addresses)
    return tuple(dict.fromkeys(name for name in names if name))[:_NAMES]


def _kept(seen: GatewayFacts) -> FrontSetting:
    """The settings of the existing gateway on this port, as far as other deployments are behind it."""
    try:
        return from_json(FrontSetting, seen.front) if seen.behind else FrontSetting(seen.port, "")
    except Unreadable:
        return FrontSetting(seen.port, "")


def _setting(front: GatewayConfig, where: Installation) -> FrontSetting:
    keys = f"{where.state}/door/keys.json"
    return FrontSetting(front.port, keys, front.port + 1, front.open_to, front.names)


def _route(plan: Plan, none: bool) -> RouteSetting:
    """none: no gateway leads to it, and only its figures are shown."""
    serving, engine = plan.recipe.serving, routes_of(plan.recipe)
    return RouteSetting(
        plan.deployment,
        engine=f"{plan.bind}:{plan.port}",
        limit=serving.gateway.body_limit,
        port=0 if none else serving.gateway.port,
        metrics=serving.gateway.port + 1,
        key_env=serving.api_key_env,
        models=(plan.served_name,),
        routes=(*engine.calls, *serving.gateway.routes),
        websockets=engine.websockets,
        patience=serving.wait_seconds if serving.on_demand else 0.0,
        end_loops=serving.gateway.end_loops,
        reasoning_tokens=serving.gateway.reasoning_tokens,
        answer_tokens=serving.gateway.answer_tokens,
        context=serving.context,
        remember=serving.remember,
        remember_hours=serving.remember_hours,
        replica_of=plan.replica.of if plan.replica else "",
    )


def _caddy(name: str, where: Installation, seen: GatewayFacts, front: GatewayConfig) -> Service:
    """The system's own program, else the container that is there already."""
    folder = f"{where.home}/door"
    if seen.caddy:
        return Service("caddy", (seen.caddy, "run", "--config", "caddy.json"), cwd=folder)
    pair = (front.certificate, front.key) if front.tls is GatewayTls.FILES else ()
    return Service(
        "caddy", commands.contained(f"sparkwright-caddy-{name}", seen.user, (folder, front.store), pair), cwd=folder
    )


def endpoint(plan: Plan, called: str) -> str:
    """The URL that clients use. called: host name or address by which this machine reaches the head."""
    serving = plan.recipe.serving
    scheme = "http" if serving.gateway.tls is GatewayTls.OFF else "https"
    host = f"[{called}]" if ":" in called else called
    at = {Expose.LOOPBACK: "127.0.0.1", Expose.FABRIC: _on_fabric(plan), Expose.ALL: (*serving.gateway.names, host)[0]}
    return f"{scheme}://{at[serving.expose]}:{serving.gateway.port}/v1"


async def _first_key(services: Services, plan: Plan) -> tuple[str, tuple[str, ...]]:
    """The file with a key, and what to print of it."""
    try:
        path = await key_work.ensure_key(services, plan.replica.of if plan.replica else plan.deployment)
    except SparkwrightError as error:
        return "", (f"no key could be made: {error.message}; {error.hint or '`sparkwright keys add NAME` later'}",)
    if path or not services.keyring:
        return path, ()
    return "", (NO_KEY_HERE,)


async def settled(
    services: Services, plan: Plan, where: Installation, url: str
) -> tuple[GatewayReach | None, tuple[str, ...]]:
    """Wait until the gateway at `url` listens, after its programs were started; lines to print. Raises NodeError."""
    gateway = plan.recipe.serving.gateway
    at, route = shared(where, gateway.port), f"{where.home}/door/{ROUTE}"
    root = root_certificate(ca_folder(where.state))
    asked = commands.settled(where.python, f"{at.home}/door", gateway.port, root, route)
    done = await services.run(where.node, asked)
    if not done.ok:
        return None, (f"the gateway does not answer on {where.node}: {done.stderr.strip()[-300:]}",)
    taken = f"port {gateway.port + 1} is taken; set a serving.gateway.port that is free with the next"
    no_figures = (f"no figures for Prometheus: {taken}",) if commands.NO_FIGURES in done.stderr else ()
    head, loopback = plan.cluster.node(plan.supervisor_node), plan.recipe.serving.expose is Expose.LOOPBACK
    tunnel = head.ssh if loopback and not head.is_local else ""
    path, changed = await _give_root(services, plan, where, done.stdout) if done.stdout else ("", ())
    return GatewayReach(url, tunnel, authority=path, findings=changed), no_figures


async def _give_root(services: Services, plan: Plan, where: Installation, root: str) -> tuple[str, tuple[Finding, ...]]:
    """The CA's certificate stored on this machine and noted on the head; a finding if clients have another one."""
    ring, cluster = services.keyring, plan.cluster.name
    here = ring.text(cluster, AUTHORITY) if ring else ""
    done = await services.run(where.node, commands.read_trust(where.state, root_certificate(ca_folder(where.state))))
    given, _ = given_root(done.stdout)
    older = next((one for one in (here, given) if one and one.strip() != root.strip()), "")
    if given.strip() != root.strip():
        await run_or_raise(services, where.node, commands.note_trust(where.state, root))
    kept = ring.save(cluster, f"ca-{fingerprint(older)[:8]}.crt", older) if ring and older == here and older else ""
    path = ring.save(cluster, AUTHORITY, root) if ring else ""
    if not older:
        return path, ()
    evidence = f"SHA-256 of the CA: {fingerprint(older)[:16]} before, {fingerprint(root)[:16]} now"
    fix = f"give every client {path or 'the new ca.crt'}; until then it gets CERTIFICATE_VERIFY_FAILED"
    fix += f" (the earlier one is kept as {kept})" if kept else ""
    return path, (NEW_CA.on(plan.supervisor_node, evidence, fix=fix),)


async def _put(services: Services, where: Installation, name: str, content: str) -> None:
    await services.hosts[where.node].put(content.encode(), f"{where.home}/door/{name}", 0o600)
