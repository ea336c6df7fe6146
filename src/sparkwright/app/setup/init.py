"""`init`: what a cluster's nodes still need, as steps that are recorded on the node before they are made there."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence

from sparkwright.app.check.checking import CheckReport, check_nodes
from sparkwright.app.check.fix import (
    FixOutcome,
    Result,
    WantedFix,
    begin_change,
    make_fixes,
    record_of,
    rights_of,
    settle,
    value_of,
)
from sparkwright.app.lease import holding
from sparkwright.app.services import Services, by_node, together, understood
from sparkwright.app.setup.init_fabric import Ends, set_fabric
from sparkwright.app.setup.init_layout import pinged, planned, wires_of
from sparkwright.app.setup.init_wake import wake_cards
from sparkwright.checks.reading import is_gb10
from sparkwright.domain.command import Secret
from sparkwright.domain.errors import Refused, UsageError
from sparkwright.domain.fabric_facts import WakeCard
from sparkwright.domain.facts import DockerTrouble, NodeFacts
from sparkwright.domain.finding import AppliedFix, Fix, Rights
from sparkwright.domain.service import Reach
from sparkwright.domain.unknown import Unknown, known_or_none
from sparkwright.domain.values import dataclass, replace
from sparkwright.facts.cabling import Cabling
from sparkwright.facts.changes import RIGHTS, rights_with
from sparkwright.facts.fact import Plain
from sparkwright.facts.service import parse_reach
from sparkwright.planner.addressing import Layout, PlannedPort
from sparkwright.remote import cabling, node_ssh, repair, service
from sparkwright.remote.host import script

PEERS = ".config/sparkwright/peers"
_SYSCTLS = ("MEM009", "MEM019")


@dataclass(frozen=True, slots=True)
class InitSurvey:
    """steps: what `prepare` may make, in order. ready: (node, step, text) of those that hold already.

    notes: for the user. reaches: how each node is reached by the others. homes: of the ssh users.
    wakes: node -> the card that could wake it, which the cluster file does not name yet.
    """

    checked: CheckReport
    layout: Layout
    steps: tuple[WantedFix, ...]
    ready: tuple[tuple[str, str, str], ...]
    notes: tuple[str, ...]
    reaches: Mapping[str, Reach]
    homes: Mapping[str, str]
    wakes: Mapping[str, WakeCard]


async def rights_there(services: Services, password: Secret | None) -> dict[str, Rights]:
    """The root rights on all nodes. password: tried once on each node that asks for one."""
    rights = await rights_of(services, services.cluster.names, RIGHTS)
    asking = [name for name, one in rights.items() if one.asks]
    return {**rights, **(await rights_of(services, asking, rights_with(password)) if password else {})}


async def survey(services: Services, rights: Mapping[str, Rights], forced: bool = False) -> InitSurvey:
    """Changes nothing. forced: machines that are no GB10 are accepted. Raises Refused for them, and NodeError."""
    checked = await check_nodes(services)
    for error in checked.lost:
        raise error
    facts = checked.facts
    if not forced and (foreign := _foreign(facts)):
        hint = "--force REASON prepares them all the same; clock cap and sysctl are for GB10 only"
        raise Refused(f"{', '.join(foreign)}: no GB10 was found there", hint=hint)
    wires = await by_node(services.cluster.names, lambda name: wires_of(services, name, facts[name], rights[name]))
    wires = await pinged(services, facts, wires)
    layout, notes = await planned(services, rights, facts, wires)
    homes = {name: identity.home for name in facts if (identity := known_or_none(facts[name].identity))}
    if lost := [name for name in facts if not Plain.FOLDER.fits(homes.get(name))]:
        raise UsageError(f"{', '.join(lost)}: the ssh user's home could not be read", "sparkwright facts shows why")
    reaches = await by_node(services.cluster.names, lambda name: _reach(services, name, layout))
    notes += [*_notes(services, facts, wires, layout), *_hidden(rights, layout)]
    fixes = [("peers", _key_fix(services, name, homes[name])) for name in facts if len(facts) > 1]
    fixes += [("peers", fix) for fix in await _introductions(services, homes, reaches)]
    fixes += _fabric_fixes(services, wires, layout) if not layout.apart else []
    fixes += [pair for name, found in facts.items() for pair in _system_fixes(name, found)]
    fixes += [("sysctl", one.fix) for one in checked.findings if one.code in _SYSCTLS and one.fix]
    asked = [WantedFix(code, fix, rights[fix.node]) for code, fix in fixes]
    now = await together(value_of(services, one.fix) for one in asked)
    wanted = tuple(one for one, value in zip(asked, now, strict=True) if value != one.fix.sets)
    ready = tuple((w.fix.node, w.code, w.fix.says) for w in asked if w not in wanted)
    wakes = wake_cards(services.cluster, facts)
    return InitSurvey(checked, layout, wanted, ready, tuple(notes), reaches, homes, wakes)


def _foreign(facts: Mapping[str, NodeFacts]) -> list[str]:
    return [name for name, found in facts.items() if not is_gb10(found)]


async def prepare(
    services: Services, found: InitSurvey, wanted: Sequence[WantedFix], seize: bool, reason: str = ""
) -> tuple[Result, ...]:
    """Makes the steps, each for all nodes before the next one begins. reason: of a --force. Raises Busy."""
    async with holding(services, services.cluster.names, "init", seize):
        forced = script("true", changes=f"init on a machine that is no GB10: {reason}")
        await together(services.run(name, forced) for name in (_foreign(found.checked.facts) if reason else ()))
        results = [*await make_fixes(services, [one for one in wanted if one.code == "peers"])]
        if results:
            await _point(services, found)
            fixes = await _introductions(services, found.homes, found.reaches)
            made = await make_fixes(services, [WantedFix("peers", fix, Rights()) for fix in fixes])
            results += [one for one in made if one.outcome is not FixOutcome.SKIPPED]
        fabric = [one for one in wanted if one.code == "fabric"]
        refused = {one.wanted.fix for one in results if one.outcome is FixOutcome.FAILED}
        if any(one.code == "peers" and (one not in wanted or one.fix in refused) for one in found.steps) or refused:
            results += [Result(one, FixOutcome.SKIPPED, "first the nodes must let each other in") for one in fabric]
        elif fabric:
            folders = {name: _folder(home) for name, home in found.homes.items()}
            results += await set_fabric(services, fabric, Ends(found.layout, folders))
        results += await make_fixes(services, [one for one in wanted if one.code not in ("peers", "fabric")])
    return tuple(results)


async def _point(services: Services, found: InitSurvey) -> None:
    """Each node gets the addresses and host keys of the others, for its own key."""
    for name, home in found.homes.items():
        ways = [(other, reach) for other, reach in found.reaches.items() if other != name]
        place, host = f"{_folder(home)}/ssh", services.hosts[name]
        await host.put(node_ssh.known_hosts(ways).encode(), f"{place}/known_hosts", 0o600)
        await host.put(node_ssh.config(_folder(home), ways).encode(), f"{place}/config", 0o600)


async def _introductions(services: Services, homes: Mapping[str, str], reaches: Mapping[str, Reach]) -> list[Fix]:
    """Fixes that let every node with a key into every other node."""
    told = await by_node(tuple(homes), lambda name: services.run(name, node_ssh.public_key(_folder(homes[name]))))
    keys = {name: done.stdout.strip() for name, done in told.items() if Plain.HOST_KEY.fits(done.stdout.strip())}
    lines = {n: node_ssh.authorized_line(keys[n], reaches[n].addresses, _tag(services, n)) for n in keys}
    return [node_ssh.admit_node(name, lines[n], _tag(services, n)) for n in keys for name in homes if name != n]


def _tag(services: Services, node: str) -> str:
    return f"sparkwright-init:{node}.{services.cluster.name}"


def _folder(home: str) -> str:
    return f"{home}/{PEERS}"


def _key_fix(services: Services, node: str, home: str) -> Fix:
    folder = _folder(home)
    look = script('[ ! -s "$1/ssh/id_ed25519.pub" ] || echo made', folder)
    text = 'rm -rf -- "$1"; d="${1%/*}"; rmdir -- "$d" "${d%/*}" 2>/dev/null; exit 0'
    undo = replace(script(text, folder, changes=f"remove {folder}"), typed=f"rm -r ~/{PEERS}")
    says = f"ssh key of its own in ~/{PEERS}, which the other nodes let in for commands"
    return Fix(node, says, (node_ssh.make_key(folder, _tag(services, node)),), (undo,), look, "made", root=False)


async def _reach(services: Services, node: str, layout: Layout) -> Reach:
    """Fabric addresses first: those that it is about to have."""
    found = understood(node, "how others reach it", parse_reach(await services.run(node, service.read_reach())))
    fabric = [str(port.address.ip) for port in layout.of(node)]
    return Reach(found.user, tuple(dict.fromkeys((*fabric, *found.addresses))), found.port, found.keys)


def _fabric_fixes(services: Services, wires: Mapping[str, Cabling], layout: Layout) -> list[tuple[str, Fix]]:
    """Fixes that configure the fabric; () if no known program manages a port of any node: half a fabric is none."""
    managers = {port: wires[port.node].managers.get(port.name, "") for port in layout.ports}
    each = {port.node: {managers[one] for one in layout.of(port.node)} for port in layout.ports}
    if any(len(found) > 1 or "" in found for found in each.values()):
        return []
    one = {node: next(iter(found)) for node, found in each.items()}
    after = cabling.HEALS_AFTER * services.time_scale
    settings = {node: [(port.name, str(port.address), port.routes) for port in layout.of(node)] for node in one}
    return [("fabric", cabling.fabric_fix(node, one[node], settings[node], after)) for node in one]


def _system_fixes(node: str, facts: NodeFacts) -> Iterator[tuple[str, Fix]]:
    docker, identity, memory = known_or_none(facts.docker), known_or_none(facts.identity), known_or_none(facts.memory)
    there = docker is not None and docker.trouble is not DockerTrouble.NOT_INSTALLED and not docker.rootless
    if there and identity and identity.user != "root" and Plain.USER.fits(identity.user):
        yield "docker", repair.group_fix(node, identity.user)
    if memory and memory.swap_total and is_gb10(facts):
        yield "swap", repair.swap_fix(node)
    if known_or_none(facts.upkeep) and is_gb10(facts):
        yield "clock", repair.clock_fix(node)
    upkeep = known_or_none(facts.upkeep)
    found = known_or_none(upkeep.watchdog) if upkeep else None
    if found and is_gb10(facts) and (found.device or found.driver) and found.armed is False:
        yield "watchdog", repair.watchdog_fix(node, "" if found.device else found.driver)


def _unread(node: str, facts: NodeFacts) -> Iterator[str]:
    """Steps that are left out because it is not known whether they are due."""
    needed = {"docker": facts.docker, "swap": facts.memory, "sysctl and clock": facts.upkeep}
    for step, fact in needed.items():
        if isinstance(fact, Unknown):
            yield f"{node}: {step} left out, for what it depends on could not be read: {fact.why}"


def _hidden(rights: Mapping[str, Rights], layout: Layout) -> Iterator[str]:
    """Reasons why an unseen cable may exist nevertheless."""
    for node, one in rights.items():
        if one.why and len(rights) > 1 and not layout.ports:
            yield f"{node}: {one.why}: without root a neighbour is found only where both ports have IPv6"


def _notes(
    services: Services, facts: Mapping[str, NodeFacts], wires: Mapping[str, Cabling], layout: Layout
) -> Iterator[str]:
    nodes = services.cluster.names
    for node in nodes:
        cages = wires[node].macs
        for name in sorted(wires[node].guarded & set(cages)):
            yield f"{node}: {name} carries the default route or this ssh session: it is left as it is"
        mine = [port for port in layout.of(node) if not _is_set(port, facts[node])]
        bare = [port.name for port in mine if port.name not in wires[node].managers]
        if bare:
            yield f"{node}: neither NetworkManager nor systemd-networkd manages {', '.join(bare)}: set it up by hand"
        network = known_or_none(facts[node].network)
        yield from _unread(node, facts[node])
        if network and network.firewall and layout.ports:
            yield f"{node}: {network.firewall.name} is on: it must let in what comes over the fabric"
        if len(nodes) > 1 and not layout.of(node):
            ports = ", ".join(sorted(cages)) or "it has none of a ConnectX-7"
            yield f"{node}: no other node was found on its fabric ports ({ports}): is the cable in?"
    for one, other in layout.apart if layout.ports else ():
        yield f"{one} and {other} have no cable or switch between them: RoCE is not routed; the fabric is left as it is"


def _is_set(port: PlannedPort, facts: NodeFacts) -> bool:
    """True if the port has its address and MTU now, whoever set them."""
    links = [
        link for link in known_or_none(facts.interfaces) or () if link.name == port.name and link.mtu == cabling.MTU
    ]
    return any(f"{one.ipv4}/{one.prefix}" == str(port.address) for link in links for one in link.addresses)


def login_fix(node: str, key: str) -> Fix:
    """This machine's key, as `TYPE BASE64`, lets its user in."""
    tag = f"sparkwright-init:{hashlib.sha256(key.encode()).hexdigest()[:12]}"
    return node_ssh.admit_node(node, f"{key} {tag}", tag)


async def record_login(services: Services, key: str) -> None:
    """Records the login key so that --undo removes it, also one that an interrupted call installed."""

    async def one(node: str) -> None:
        fix = login_fix(node, key)
        recorded = await record_of(services, node)
        known = any(change.code == "ssh" and change.fix.undo == fix.undo for change in recorded)
        if not known and await value_of(services, fix) == fix.sets:
            change = await begin_change(services, AppliedFix("ssh", fix, "", services.clock.now(), services.who))
            await settle(services, change)

    await together(one(node.name) for node in services.cluster.nodes if not node.is_local)
