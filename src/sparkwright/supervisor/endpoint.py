"""The engine and its gateway, asked on their own addresses.

The engine for its metrics every second or two, and now and then for a real token. The gateway now and then: a
certificate expires while it serves, a keys file gets damaged, an engine whose gateway does not answer serves nobody.
"""

import asyncio

from sparkwright.app.serve.certificates import MendedCertificates, mend_certificates
from sparkwright.app.serve.gateway import ENDPOINT, ca_folder, findings, gateway_name, shared
from sparkwright.checks.gateway import KEYS, MODES, PAIR, PORT
from sparkwright.domain.deployment import Answer
from sparkwright.domain.diagnosis import Cause
from sparkwright.domain.errors import NodeError, NotReady
from sparkwright.domain.finding import Finding
from sparkwright.domain.incident import Incident, IncidentEvent
from sparkwright.domain.live import GatewayUse, LiveCanary, LiveEngine
from sparkwright.domain.recipe import GatewayTls, ModelKind
from sparkwright.domain.service import Installation
from sparkwright.engines.cache_tiers import WORDS, cache_tiers
from sparkwright.engines.catalog import figures_of
from sparkwright.facts.engine_metrics import figures as page_figures
from sparkwright.facts.engine_metrics import read
from sparkwright.facts.service import parse_programs
from sparkwright.gateway.caddy import SERVICE, fingerprint, given_root, root_certificate
from sparkwright.ports import UNTRUSTED
from sparkwright.remote import gateway as commands
from sparkwright.remote import service
from sparkwright.supervisor.announcer import note_restart
from sparkwright.supervisor.context import LOOPBACK, DeploymentContext
from sparkwright.supervisor.core.detect.repetition import Repetition
from sparkwright.supervisor.core.detect.stall import has_work
from sparkwright.supervisor.core.events import Fault
from sparkwright.supervisor.core.recovery import of_cause
from sparkwright.supervisor.core.state import Recovery
from sparkwright.supervisor.event_bus import EventBus

REPEATING = "repeating"
# While requests run, whether anything moves is seen sooner.
_FIGURES_EVERY, _AT_WORK, _LATELY = 2.0, 1.0, 10.0
_TIERS_EVERY = 10.0
_LOOK_EVERY = 0.5
# One token does not show garbage; three answers at the start are what later ones are compared with.
QUESTION, TOKENS, RECORDED = "Write the numbers from one to five.", 8, 3


async def figures(bus: EventBus) -> None:
    """/metrics, again and again. A page that does not come is reported, too."""
    context, before, repetition, counted_at = bus.context, dict[int, int](), Repetition(), 0.0
    while True:
        lines = dict(context.seen.count)
        context.seen.engine, at = await read_engine(context), context.now()
        if abs(at - counted_at) >= _TIERS_EVERY:
            counted_at = at
            note_cache_tiers(context)
        bus.figures = bus.figures or context.seen.engine is not None
        bus.put(*bus.detectors.engine(context.seen.engine, at))
        repeats = repetition.add(context.seen.engine)
        asks = f"{repeats} (SUP011); sparkwright eval probes asks it questions with known answers"
        bus.set_trouble(REPEATING, asks if repeats else "")
        if bus.detectors.life.proved == at:  # work came out since the look before
            context.seen.answered(before, at)
        before = lines
        lately = has_work(context.seen.engine) or at - bus.detectors.life.proved < _LATELY
        await context.pause(_AT_WORK if lately else _FIGURES_EVERY)


async def read_engine(context: DeploymentContext) -> LiveEngine | None:
    """The engine's metrics now, None without an answer."""
    page = await context.services.endpoint.page(context.url, context.engine.metrics_page, context.key)
    context.seen.page = page or context.seen.page  # the last one is evidence
    return read(page, figures_of(context.desired.recipe), context.now()) if page else None


def note_cache_tiers(context: DeploymentContext) -> None:
    """Note what the engine's last page says about its tiers; of an engine that gives no page all is unknown."""
    recipe, seen = context.desired.recipe, context.seen
    names = {word: name for word, name in figures_of(recipe).items() if word in WORDS}
    counted = page_figures(seen.page, names) if seen.engine and names else {}
    seen.cache_tiers = cache_tiers(recipe, counted, seen.disk_cache, seen.restored)


async def canary(bus: EventBus) -> None:
    """One small request while nothing else proves that the engine computes; at once when its figures stay away."""
    context = bus.context
    while True:
        if _due(bus):
            bus.detectors.canaries.pending = context.now()
            lines = dict(context.seen.count)
            context.seen.canary = said = await ask_canary(context)
            if said.seconds is not None:
                bus.quality.answered += 1
                context.seen.answered(lines, said.at)
                if _records(bus):
                    bus.recorded += 1
                    bus.detectors.garbage.record(said.said)
            bus.put(*bus.detectors.canary(said, context.now()))
        await context.pause(_LOOK_EVERY)


def _due(bus: EventBus) -> bool:
    context, last = bus.context, bus.context.seen.canary
    if _keyless(context):
        return False
    if _records(bus) or last is None or last.seconds is None:
        return True
    silent = bus.figures and context.seen.engine is None
    waited = context.now() - last.at
    hurried = silent or bus.detectors.hurries(context.now())
    return bus.detectors.wants_canary(context.now()) and (hurried or waited >= context.policy.canary_every)


def _records(bus: EventBus) -> bool:
    """Answers that are no language are no reference."""
    return bool(bus.speaks) and bus.recorded < RECORDED


def _keyless(context: DeploymentContext) -> bool:
    """It would be refused for want of the key, which proves nothing about the engine."""
    return bool(context.desired.recipe.serving.api_key_env) and context.key is None


async def ask_canary(context: DeploymentContext) -> LiveCanary:
    """The answer, or why there is none."""
    at, limit = context.now(), context.policy.canary_limit
    if _keyless(context):
        return LiveCanary(at, None, "not asked: its key is not known here")
    try:
        async with asyncio.timeout(limit):
            with context.own_request():
                answer = await _answer(context)
    except TimeoutError:
        return LiveCanary(at, None, f"no answer within {limit:g} s")
    except NotReady as error:
        return LiveCanary(at, None, error.message, refused=True)
    return LiveCanary(at, answer.total, answer.text)


async def _answer(context: DeploymentContext) -> Answer:
    ask, model, kind = context.services.endpoint, context.outline.served_name, context.desired.recipe.model.kind
    if kind is ModelKind.CHAT:
        return await ask.greedy(context.url, model, QUESTION, TOKENS, context.key)
    return await ask.prove(context.url, model, kind, context.key)


async def weigh_suspects(bus: EventBus) -> None:
    while True:
        await weigh_suspect(bus, await bus.suspects.get())


async def weigh_suspect(bus: EventBus, cause: Cause) -> None:
    """Silence alone may be a long prefill: then only what a relaunch cannot fix anyway counts."""
    context, needs = bus.context, of_cause(cause.key)
    proof = tuple(f"{one.source}: {one.text}" for one in cause.proof)
    canary = await ask_canary(context)
    if canary.seconds is None and (canary.refused or needs.recovery is not Recovery.NONE):
        recovery = Recovery.RELAUNCH if needs.recovery is Recovery.NONE else needs.recovery
        bus.put(Fault(context.now(), cause.key, f"{cause.title}; {canary.said}", recovery, proof))
        return
    text = f"the log shows {cause.key} ({cause.code}): {'; '.join(proof[:1])}"
    await context.store.note(context.name, IncidentEvent(context.now(), "noticed", text))


_EVERY, _AGAIN = 300.0, 60.0
# Twice in vain: Caddy restarts within a second, and so does the service behind it.
_PROBE_EVERY, _PROBE_AGAIN, _IN_VAIN = 3.0, 2.0, 2
# Its answer to a request without a key, whatever the engine does meanwhile.
_NO_KEY = 401
AWAY, OTHER_CA, DAMAGED, TAKEN, USAGE = "door-away", "door-ca", "door-certificate", "door-port", "gateway-usage"
_MEND_EVERY = 5  # failed probes
# Until it has answered once, `up` sets it up: no client misses it yet. That takes a second, and several on a busy head.
_SET_UP = 60.0
_ANSWERED = "gateway answered"
# The first one that fails is followed by a look at the head, which is certain, and by a more patient probe.
_FIRST_WITHIN = 3.0
_OUTAGE = "outage:"
_OUTAGES = {
    AWAY: ("gateway does not answer", "sparkwright up RECIPE   # sets the gateway up again, the engine stays"),
    OTHER_CA: (
        "gateway's CA is not the one that clients have",
        "sparkwright up RECIPE   # writes the new ca.crt, which every client needs",
    ),
    DAMAGED: ("certificates of the gateway damaged on the head", "sparkwright status   # says what is left to do"),
    TAKEN: ("another program has the port of the gateway", "stop it, or set another serving.gateway.port"),
}
_WATCHED = (PAIR, KEYS, MODES)
_PROGRAMS_EVERY, _LEAST = 5.0, 1.0
_FLIGHTS_EVERY = 1.0
_PROCESS = "process:"
# By their services' names.
PROGRAMS = {"caddy": "gateway (Caddy)", "door": "key check", "console": "console"}


async def watch_gateway(bus: EventBus) -> None:
    """The findings of `up` again, every five minutes. Nothing is stopped for them; fixed, they are over."""
    while True:
        await inspect_gateway(bus)
        wrong = any(code in bus.lasting for code in _WATCHED)
        await bus.context.pause(_AGAIN if wrong else _EVERY)


async def inspect_gateway(bus: EventBus) -> None:
    context = bus.context
    await mend_store(bus)
    try:
        found = {one.code: one for one in await findings(context.services, context.outline, _where(context))}
    except NodeError as error:
        context.notice(f"the gateway's files cannot be inspected: {error.message}", warning=True)
        return
    for code in _WATCHED:
        one = found.get(code)
        bus.set_trouble(code, _said(one) if one else "")
    taken = found.get(PORT)
    bus.set_trouble(PORT, _said(taken) if taken and await _made(context) else "")


def _said(found: Finding) -> str:
    return f"gateway: {found.title} ({found.code}; {found.evidence}); {found.remedy}"


async def probe_gateway(bus: EventBus) -> None:
    """A trouble while clients do not get through the gateway, and an incident. Where none was made nothing is probed.

    The certificate is verified with the CA that clients were given: whatever else is on the head, they know that one.
    """
    context, good = bus.context, bus.context.now()
    vain = int(any(context.journal.recall().get(f"{_OUTAGE}{kind}") for kind in _OUTAGES))  # of the supervisor before
    why: dict[str, str] = {}
    while True:
        await context.pause(_PROBE_AGAIN if vain else _PROBE_EVERY)
        given, same = await _given_root(context)
        said = await _probed(context, given, _FIRST_WITHIN if not vain else None)
        well = said == _NO_KEY or not await _made(context)
        before, vain = vain, 0 if well else vain + 1
        if vain % _MEND_EVERY == 1:
            why = await damage(bus) or why
        elif well and before:
            why = {}
            await inspect_gateway(bus)
        if said == _NO_KEY and not context.journal.recall().get(_ANSWERED):
            context.remember({_ANSWERED: context.now()})
        missed = bool(context.journal.recall().get(_ANSWERED)) or context.now() - good >= _SET_UP
        untrusted = _untrusted(context, given) if said == UNTRUSTED and not well and not why else ""
        away = _away(context, said) if vain >= _IN_VAIN and not untrusted and not why else ""
        for kind in (DAMAGED, TAKEN):
            await note_outage(bus, kind, why.get(kind, ""), good)
        await note_outage(bus, OTHER_CA, untrusted, good)
        await note_outage(bus, AWAY, away if missed else "", good)
        bus.set_trouble(AWAY, away)
        bus.set_trouble(OTHER_CA, untrusted or ("" if same else _lost_ca(context, given)))
        good = context.now() if well else good


async def _probed(context: DeploymentContext, root: str, limit: float | None) -> int:
    """Status of an answer to a request without a key, as Endpoint.probe has it; 0 without one in time."""
    try:
        async with asyncio.timeout(limit):
            return await context.services.endpoint.probe(f"{_root(context)}/v1/models", root)
    except TimeoutError:
        return 0


async def damage(bus: EventBus) -> dict[str, str]:
    """The reasons on the head that keep clients out, by kind of incident. Certificates of the own CA are mended."""
    text = await mend_store(bus, away=True)
    if not text:
        await inspect_gateway(bus)
    found = {DAMAGED: text or bus.lasting.get(PAIR, ""), TAKEN: bus.lasting.get(PORT, "")}
    return {kind: what for kind, what in found.items() if what}


async def mend_store(bus: EventBus, away: bool = False) -> str:
    """Damaged certificates of the gateway's own CA made good; a CA that is lost is a trouble until it is back.

    away: clients do not get through, so that damage which is mended is a trouble, too.
    """
    context = bus.context
    if context.desired.recipe.serving.gateway.tls is not GatewayTls.INTERNAL or not await _made(context):
        return ""
    store, door = ca_folder(_where(context).state), f"{_gateway(context).home}/door"
    try:
        found = await mend_certificates(context.services, context.supervisor_node, store, door)
    except NodeError as error:
        context.notice(f"the gateway's certificates cannot be verified: {error.message}", warning=True)
        return ""
    text = _damaged(context, found) if found.text else ""
    if found.mended:
        context.notice(text, warning=True)
        await context.store.note(context.name, IncidentEvent(context.now(), "noticed", text))
    bus.set_trouble(DAMAGED, text if found.lost or away else "")
    return text


async def _given_root(context: DeploymentContext) -> tuple[str, bool]:
    """The CA certificate that clients were given, '' for none, and whether that on the head is still the same."""
    if context.desired.recipe.serving.gateway.tls is not GatewayTls.INTERNAL:
        return "", True
    state = _where(context).state
    try:
        done = await context.services.run(
            context.supervisor_node, commands.read_trust(state, root_certificate(ca_folder(state)))
        )
    except NodeError:
        return "", True
    return given_root(done.stdout)


async def note_outage(bus: EventBus, kind: str, what: str, good: float) -> None:
    """An incident of its own while clients do not reach an engine that serves. good: when they did last.

    Its number is in the journal: the next supervisor continues it.
    """
    context, key = bus.context, f"{_OUTAGE}{kind}"
    number = int(context.journal.recall().get(key, 0.0))
    if what and not number and bus.serving:
        began = await outage_began(context, good)
        made = Incident(context.name, kind, what, began, simulated=context.simulated)
        opened = await context.store.open(context.opened(made))
        title, fix = _OUTAGES[kind]
        await context.store.explain(opened.number, title, "", (fix,))
        context.remember({key: float(opened.number)})
    elif number and not (what and bus.serving):
        ended, at = ("recovered without a restart", context.now()) if bus.serving else ("the engine ended", 0.0)
        await context.store.close(number, context.now(), ended, at, context.uptime())
        context.remember({key: 0.0})
    else:
        return
    context.seen.incidents = await context.store.counts(context.name)


async def outage_began(context: DeploymentContext, since: float) -> float:
    """The time of the last byte of an answer through the gateway, or `since` if that is later or nothing is known."""
    use = await gateway_use(context)
    heard = context.now() - use.heard if use and use.heard is not None else 0.0
    return max(since, heard)


async def _made(context: DeploymentContext) -> bool:
    """True if `up` has made a gateway; an answering one needs no such look."""
    try:
        read = service.read(f"{_where(context).home}/door", ENDPOINT)
        return bool((await context.services.run(context.supervisor_node, read)).stdout.strip())
    except NodeError:
        return False


async def in_flight(bus: EventBus) -> None:
    """Requests that the engine got, whatever it reports: one that hangs shows its last figures."""
    context = bus.context
    while True:
        use = await gateway_use(context)
        flights = use.under_way if use else 0
        if use:
            bus.set_trouble(USAGE, f"gateway: {use.trouble}" if use.trouble else "")
        bus.put(*bus.detectors.gateway(flights, context.now()))
        await context.pause(_FLIGHTS_EVERY / 2 if flights else _FLIGHTS_EVERY)


async def gateway_use(context: DeploymentContext) -> GatewayUse | None:
    """None where the gateway's process does not answer."""
    return await context.services.endpoint.gateway_use(f"{_gateway(context).home}/door/{SERVICE}", context.name)


async def programs(bus: EventBus) -> None:
    """Restarts of the gateway's own programs: clients had no answer for a moment, and systemd reports none of it."""
    context = bus.context
    while True:
        await restarted(context)
        await context.services.clock.sleep(max(context.scaled(_PROGRAMS_EVERY), _LEAST))


async def restarted(context: DeploymentContext) -> None:
    """Noted when a program is another process than at the look before, also at that of another supervisor."""
    try:
        asked = commands.programs(_gateway(context).home, gateway_name(_port(context)), tuple(PROGRAMS))
        found = parse_programs(await context.services.run(context.supervisor_node, asked))
    except NodeError:
        return
    for name, pid in found.items():
        before, seen = int(context.journal.recall().get(f"{_PROCESS}{name}", 0.0)), {f"{_PROCESS}{name}": float(pid)}
        if before and pid != before:
            await note_restart(context, PROGRAMS[name], f"process {before} is {pid} now", seen)
        elif not before:
            context.remember(seen)


def _away(context: DeploymentContext, said: int) -> str:
    how = f"answers {said} instead of asking for a key" if said else "does not answer"
    name = gateway_name(_port(context))
    return (
        f"the gateway {how} ({_root(context)}): clients do not reach the engine; its programs are the services "
        f"sparkwright-caddy-{name} and sparkwright-door-{name} on {context.supervisor_node}, the same "
        "`sparkwright up` sets it up again"
    )


def _untrusted(context: DeploymentContext, given: str) -> str:
    return (
        "the gateway's CA is not the one that clients have: each gets CERTIFICATE_VERIFY_FAILED. They were given the "
        f"one with SHA-256 {fingerprint(given)[:16]}; its folder on {context.supervisor_node} was lost or replaced. "
        "The same `sparkwright up` writes the new ca.crt, which every client needs"
    )


def _damaged(context: DeploymentContext, found: MendedCertificates) -> str:
    cure = (
        ". Restore the folder from a backup; without one the same `sparkwright up` makes a new CA once Caddy no longer "
        "runs, and every client needs its ca.crt"
        if found.lost
        else "; Caddy makes new ones"
    )
    return f"certificates of the gateway were damaged on {context.supervisor_node}: {found.text}{cure}"


def _lost_ca(context: DeploymentContext, given: str) -> str:
    folder = ca_folder(_where(context).state)
    return (
        f"the gateway's CA is no longer in {folder} on {context.supervisor_node}: at its next start Caddy makes a new "
        "one, which no client trusts. Restore the folder from a backup "
        f"(SHA-256 of the CA: {fingerprint(given)[:16]}), or prepare to give every client a new ca.crt"
    )


def _root(context: DeploymentContext) -> str:
    gateway = context.desired.recipe.serving.gateway
    return f"{'http' if gateway.tls is GatewayTls.OFF else 'https'}://{LOOPBACK}:{gateway.port}"


def _port(context: DeploymentContext) -> int:
    return context.desired.recipe.serving.gateway.port


def _gateway(context: DeploymentContext) -> Installation:
    return shared(_where(context), _port(context))


def _where(context: DeploymentContext) -> Installation:
    state = context.state or context.services.cluster.node(context.supervisor_node).paths.state
    return Installation(context.supervisor_node, f"{state}/supervision/{context.name}", state, "", "")
