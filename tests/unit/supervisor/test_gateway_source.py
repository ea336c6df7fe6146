"""The gateway's files while it serves, and whether anybody answers at it."""

import asyncio
from dataclasses import replace

import pytest

from sparkwright.domain.live import DeploymentState, GatewayUse
from sparkwright.domain.recipe import Gateway, GatewayTls
from sparkwright.gateway.caddy import fingerprint
from sparkwright.ports import UNTRUSTED
from sparkwright.remote import gateway as gateway_commands
from sparkwright.remote import service
from sparkwright.supervisor import endpoint
from sparkwright.supervisor.announcer import live_view
from sparkwright.supervisor.core.events import Cleared, Event, Fault
from sparkwright.supervisor.core.state import Recovery, State
from unit.app.scene import recipe
from unit.supervisor.watchtower import Tower, make_tower

PAIR = (
    "@@ pair\n{}\nnotBefore=Nov  1 00:00:00 2025 GMT\nnotAfter=Nov 20 00:00:00 2026 GMT\nnow=Nov 22 00:00:00 2026 GMT\n"
)
FILES = Gateway(tls=GatewayTls.FILES, certificate="/etc/c.pem", key="/etc/k.pem")


CADDY = "/usr/bin/caddy\nv2.11.7\n"


def set_report(
    it: Tower, certificate: str, keys: str = '{"keys": []}', mode: str = "600", caddy: str = CADDY, port: str = ""
) -> None:
    """Sets the head's report from now on. port: `ss` about the gateway's, while no Caddy of ours runs."""
    text = f"@@ keys\n{keys}\n@@ keys-mode\n{mode}\n@@ keys-file\n/s/door/keys.json\n"
    text += f"@@ caddy\n{caddy}@@ image\n@@ host\nspark\n@@ addresses\n"
    text += f"@@ user\n1000:1000\n@@ port\n{port}@@ front\n{{}}\n@@ ours\n{'' if port else 'caddy run'}\n"
    it.scene.nodes[0].on(lambda command: "@@ pair" in " ".join(command.argv), text + PAIR.format(certificate))


async def test_a_certificate_that_expires_while_it_serves_is_a_trouble_until_it_is_renewed() -> None:
    """Guards that nobody has to call `up` to learn it, that nothing is stopped, and that it is over automatically."""
    serving = replace(recipe().serving, gateway=FILES)
    it = make_tower()
    it.context.desired = replace(it.context.desired, recipe=replace(it.context.desired.recipe, serving=serving))
    set_report(it, "good")
    await endpoint.inspect_gateway(it.bus)
    assert it.events == []
    set_report(it, "expired")
    await endpoint.inspect_gateway(it.bus)
    (fault,) = it.events
    assert isinstance(fault, Fault) and (fault.kind, fault.recovery) == ("DOOR003", Recovery.NONE)
    assert "has expired" in fault.what and "Nov 20 00:00:00 2026" in fault.what and "renew it" in fault.what
    it.bus.begin()
    assert it.events == [fault], "a start forgets what was wrong before"
    set_report(it, "good")
    await endpoint.inspect_gateway(it.bus)
    assert it.events == [Cleared(it.context.now(), "DOOR003")]


async def test_a_damaged_keys_file_is_a_trouble() -> None:
    """Guards a gateway that lets nobody in any more: it is reported where somebody looks."""
    it = make_tower()
    set_report(it, "good", keys="{ torn")
    await endpoint.inspect_gateway(it.bus)
    assert [event.kind for event in it.events if isinstance(event, Fault)] == ["DOOR007"]


@pytest.mark.parametrize(("mode", "what"), [("600", "it is empty"), ("", "it is gone")])
async def test_keys_that_are_lost_are_a_trouble(mode: str, what: str) -> None:
    """Guards a gateway that answers 401 to every client, while status says ready for ever."""
    it = make_tower()
    set_report(it, "good", keys="", mode=mode)
    await endpoint.inspect_gateway(it.bus)
    (fault,) = it.events
    assert (
        isinstance(fault, Fault) and f"the gateway's keys are lost (DOOR007; /s/door/keys.json: {what})" in fault.what
    )
    assert "sparkwright keys add NAME" in fault.what


async def test_without_caddy_there_are_no_keys_to_lose() -> None:
    """Guards a head without Caddy: its deployment serves, and is not degraded for a gateway that nobody has."""
    it = make_tower()
    set_report(it, "good", keys="", mode="", caddy="")
    await endpoint.inspect_gateway(it.bus)
    assert [event.kind for event in it.events if isinstance(event, Fault)] == []


async def test_what_is_wrong_is_looked_at_again_soon() -> None:
    """Guards who has followed the hint: status must not go on complaining for an hour."""
    it = make_tower()
    set_report(it, "good", mode="644")
    work = asyncio.create_task(endpoint.watch_gateway(it.bus))
    told: list[Event] = []
    async with asyncio.timeout(5):
        while not told:
            await asyncio.sleep(0)
            told = it.events
    assert isinstance(told[0], Fault) and told[0].kind == "DOOR005" and "chmod 600" in told[0].what
    set_report(it, "good")
    async with asyncio.timeout(5):
        while not it.bus.events.qsize():
            await asyncio.sleep(0)
    work.cancel()
    assert [event.kind for event in it.events if isinstance(event, Cleared)] == ["DOOR005"]
    assert it.scene.clock.elapsed <= 2 * 60.0


async def probed(it: Tower, said: int, times: int = 3) -> dict[str, Fault | Cleared]:
    """The reports of `times` probes with this answer."""
    it.scene.endpoint.said = said
    before = len(it.scene.endpoint.probed)
    work = asyncio.create_task(endpoint.probe_gateway(it.bus))
    async with asyncio.timeout(5):
        while len(it.scene.endpoint.probed) < before + times:
            await asyncio.sleep(0)
    work.cancel()
    return {event.kind: event for event in it.events if isinstance(event, Fault | Cleared)}


def set_endpoint(it: Tower, url: str) -> None:
    read = service.read("/home/ai/.local/state/sparkwright/supervision/twin/door", "endpoint")
    it.scene.nodes[0].on(lambda command: command == read, url)


async def test_a_gateway_that_does_not_answer_is_a_trouble() -> None:
    """Guards an endpoint that claims to be alive: the engine serves, and no client reaches it."""
    it = make_tower()
    set_endpoint(it, "https://spark-1.lan:8443/v1\n")
    assert await probed(it, 401) == {}
    assert it.scene.endpoint.probed[0] == "https://127.0.0.1:8443/v1/models"
    assert await probed(it, 0, times=1) == {}
    away = (await probed(it, 0))["door-away"]
    assert isinstance(away, Fault) and away.recovery is Recovery.NONE
    assert "does not answer (https://127.0.0.1:8443)" in away.what and "sparkwright-caddy-_gateway-8443" in away.what
    broken = (await probed(it, 503))["door-away"]
    assert isinstance(broken, Fault) and "answers 503 instead of asking for a key" in broken.what


async def test_a_gateway_that_answers_again_is_none_any_more() -> None:
    """Guards that it is over automatically."""
    it = make_tower()
    set_endpoint(it, "https://spark-1.lan:8443/v1\n")
    it.scene.endpoint.said = 0
    work = asyncio.create_task(endpoint.probe_gateway(it.bus))
    kinds = []
    for _ in range(200):
        await asyncio.sleep(0)
        kinds += [type(event) for event in it.events]
        if kinds:
            it.scene.endpoint.said = 401
    work.cancel()
    assert kinds == [Fault, Cleared]


async def test_a_gateway_that_gave_no_answer_is_asked_again_soon() -> None:
    """Guards `status`, which said `ready` for half a minute while no client got through, and complained too long."""
    it = make_tower()
    set_endpoint(it, "https://spark-1.lan:8443/v1\n")
    it.bus.serving = True
    await probed(it, 401, times=1)
    assert "door-away" in await probed(it, 0, times=3)
    assert it.scene.clock.elapsed < 13.0
    again = it.scene.clock.elapsed  # the next supervisor continues the incident, and may close it at once
    await probed(it, 401, times=1)
    assert it.scene.clock.elapsed < again + 3.0


async def test_usage_that_is_not_counted_is_a_trouble_in_status() -> None:
    """Guards limits of tokens that are off because of a damaged or unwritable usage.sqlite, and nobody knows."""
    it, why = make_tower(), "usage is not counted and limits of tokens do not hold: usage.sqlite: disk I/O error"
    it.scene.endpoint.uses = [GatewayUse(trouble=why), GatewayUse()]
    work = asyncio.create_task(endpoint.in_flight(it.bus))
    found: list[Event] = []
    async with asyncio.timeout(5):
        while not any(isinstance(event, Cleared) for event in found):
            await asyncio.sleep(0)
            found += it.events
    work.cancel()
    fault, cleared = found[:2]
    assert isinstance(fault, Fault) and (fault.what, fault.recovery) == (f"gateway: {why}", Recovery.NONE)
    assert isinstance(cleared, Cleared) and cleared.kind == fault.kind
    state = State(DeploymentState.READY, it.context.now(), troubles=((fault.kind, fault.what),))
    assert (fault.kind, fault.what) in live_view(it.bus, state).troubles


CERTIFICATE = "-----BEGIN CERTIFICATE-----\nAAAAAAAA\n-----END CERTIFICATE-----\n"


def set_trust(it: Tower, text: str) -> None:
    """The CA that clients were given, as the head prints it."""
    state = "/home/ai/.local/state/sparkwright"
    asked = gateway_commands.read_trust(state, f"{state}/door/ca/pki/authorities/local/root.crt")
    it.scene.nodes[0].on(lambda command: command == asked, text)


async def test_a_ca_that_clients_do_not_have_is_a_trouble_and_an_incident_until_it_is_theirs_again() -> None:
    """Guards the gateway's own probe: it trusts what clients were given, not what Caddy made after its CA was lost."""
    it = make_tower()
    set_endpoint(it, "https://spark-1.lan:8443/v1\n")
    set_trust(it, CERTIFICATE)
    it.bus.serving = True
    it.scene.endpoint.uses = [GatewayUse(heard=3.0)]
    assert await probed(it, 401) == {} and it.scene.endpoint.roots[0] == CERTIFICATE
    found = await probed(it, UNTRUSTED, times=2)
    fault = found["door-ca"]
    assert isinstance(fault, Fault) and "the gateway's CA is not the one that clients have" in fault.what
    assert fingerprint(CERTIFICATE)[:16] in fault.what and "door-away" not in found
    (incident,) = it.keep.store.incidents
    assert (incident.kind, incident.cause) == ("door-ca", "gateway's CA is not the one that clients have")
    assert incident.is_open
    await probed(it, UNTRUSTED, times=2)
    assert len(it.keep.store.incidents) == 1, "one outage, one incident"
    assert isinstance((await probed(it, 401, times=2))["door-ca"], Cleared)
    (incident,) = it.keep.store.incidents
    assert incident.outcome == "recovered without a restart" and incident.away is not None


async def test_a_ca_that_is_gone_from_the_disk_is_a_trouble_before_caddy_makes_another() -> None:
    """Guards the warning while it helps: clients are served, so there is no incident."""
    it = make_tower()
    set_endpoint(it, "https://spark-1.lan:8443/v1\n")
    set_trust(it, f"{CERTIFICATE}\nother\n")
    it.bus.serving = True
    fault = (await probed(it, 401, times=2))["door-ca"]
    assert isinstance(fault, Fault) and "is no longer in" in fault.what and "no client trusts" in fault.what
    assert it.keep.store.incidents == []


async def test_a_gateway_that_does_not_answer_is_an_incident() -> None:
    """Guards the history: clients got nothing, though no rank was restarted."""
    it = make_tower()
    set_endpoint(it, "https://spark-1.lan:8443/v1\n")
    it.bus.serving = True
    await probed(it, 401, times=1)
    await probed(it, 0, times=4)
    assert [(one.kind, one.is_open) for one in it.keep.store.incidents] == [("door-away", True)]
    await probed(it, 401, times=2)
    assert [one.is_open for one in it.keep.store.incidents] == [False]


async def test_a_gateway_that_is_still_being_set_up_is_no_incident() -> None:
    """Guards the history of a busy head, where `up` takes seconds to start it; one that never answers is one."""
    it = make_tower()
    set_endpoint(it, "https://spark-1.lan:8443/v1\n")
    it.bus.serving = True
    assert "door-away" in await probed(it, 503, times=4)
    assert it.keep.store.incidents == []
    await probed(it, 503, times=40)
    assert [one.kind for one in it.keep.store.incidents] == ["door-away"]


async def test_where_no_gateway_was_made_there_is_none_to_miss() -> None:
    """Guards heads without Caddy: `up` has reports it, and the engine serves without one."""
    it = make_tower()
    set_endpoint(it, "")
    assert await probed(it, 0, times=4) == {}


async def test_a_program_that_is_another_process_was_restarted() -> None:
    """Guards Caddy and the key check that systemd restores: counted, dated, in the log and the history; the first
    look knows of nothing before, and one that is down just now is no restart yet."""
    it = make_tower()
    for said in ("caddy 10\ndoor 11\n", "door 11\n", "caddy 20\ndoor 11\n", "caddy 20\ndoor 11\n"):
        it.scene.nodes[0].on(lambda command: "caddy" in command.argv and "door" in command.argv, said)
        await endpoint.restarted(it.context)
    assert it.keep.journal.figures["restarts:gateway (Caddy)"] == 1.0
    assert "restarts:key check" not in it.keep.journal.figures
    assert [(event.kind, number) for event, number in it.keep.store.events] == [("restarted", 0)]
    shown = live_view(it.bus, State(DeploymentState.READY, 1.0))
    assert [(one.who, one.count) for one in shown.restarts] == [("gateway (Caddy)", 1)]


async def test_a_restart_is_counted_in_the_write_that_knows_the_new_process() -> None:
    """Guards a supervisor that is killed between two writes: it would know the process and never count its restart."""
    it, written = make_tower(), list[dict[str, float]]()
    keep = it.context.journal.remember
    it.context.journal.remember = lambda figures: (written.append(dict(figures)), keep(figures))[1]  # type: ignore[method-assign]
    for said in ("door 11\n", "door 21\n"):
        it.scene.nodes[0].on(lambda command: "caddy" in command.argv and "door" in command.argv, said)
        await endpoint.restarted(it.context)
    assert [(one["process:door"], one.get("restarts:key check")) for one in written] == [(11.0, None), (21.0, 1.0)]


def found_damage(it: Tower, mended: str = "", lost: str = "") -> None:
    """Sets what the head's program says about the gateway's certificates."""
    state = "/home/ai/.local/state/sparkwright"
    asked = gateway_commands.certificates(f"{state}/door/ca", f"{state}/supervision/_gateway-8443/door", renew=False)
    text = f'{{"mended": [{mended}], "lost": "{lost}"}}\n'
    it.scene.nodes[0].on(lambda command: command == asked, text)


async def test_a_damaged_certificate_is_mended_and_an_incident_names_it() -> None:
    """Guards handshakes that fail for good, with a status that names only a gateway that does not answer."""
    it = make_tower()
    set_endpoint(it, "https://spark-1.lan:8443/v1\n")
    it.bus.serving = True
    found_damage(it, mended='"the certificate of localhost was damaged"')
    found = await probed(it, 0, times=3)
    fault = found["door-certificate"]
    assert isinstance(fault, Fault) and "the certificate of localhost was damaged; Caddy makes new ones" in fault.what
    assert "door-away" not in found
    (incident,) = it.keep.store.incidents
    assert (incident.kind, incident.is_open) == ("door-certificate", True)
    assert "damaged" in incident.cause
    assert ("noticed", 0) in [(event.kind, number) for event, number in it.keep.store.events]
    found_damage(it)
    assert isinstance((await probed(it, 401, times=3))["door-certificate"], Cleared)
    (incident,) = it.keep.store.incidents
    assert incident.outcome == "recovered without a restart"


async def test_a_ca_that_is_lost_is_a_trouble_while_clients_are_still_served() -> None:
    """Guards the warning while it helps: Caddy serves from memory until it is restarted."""
    it = make_tower()
    set_endpoint(it, "https://spark-1.lan:8443/v1\n")
    found_damage(it, lost="root.key is no key")
    await endpoint.inspect_gateway(it.bus)
    (fault,) = (event for event in it.events if isinstance(event, Fault) and event.kind == "door-certificate")
    assert "root.key is no key" in fault.what and "backup" in fault.what and "sparkwright up" in fault.what
    found_damage(it)
    await endpoint.inspect_gateway(it.bus)
    assert any(isinstance(event, Cleared) and event.kind == "door-certificate" for event in it.events)


async def test_the_incident_of_a_gateway_that_is_away_names_a_bad_certificate_of_the_recipe() -> None:
    """Guards `tls: files`: a Caddy that does not start for want of its certificate is not only away."""
    it = make_tower()
    serving = replace(recipe().serving, gateway=FILES)
    it.context.desired = replace(it.context.desired, recipe=replace(it.context.desired.recipe, serving=serving))
    set_endpoint(it, "https://spark-1.lan:8443/v1\n")
    set_report(it, "bad-certificate")
    it.bus.serving = True
    found = await probed(it, 0, times=3)
    assert "door-away" not in found
    (incident,) = it.keep.store.incidents
    assert incident.kind == "door-certificate" and "no PEM certificate" in incident.what


TAKEN = 'LISTEN 0 128 0.0.0.0:8443 0.0.0.0:* users:(("nc",pid=7,fd=3))\n'


async def test_a_gateway_whose_port_somebody_else_has_says_so_at_once() -> None:
    """Guards the operator: "the gateway does not answer" sends nobody to the program that has its port."""
    it = make_tower()
    set_endpoint(it, "https://spark-1.lan:8443/v1\n")
    set_report(it, "good", port=TAKEN)
    it.bus.serving = True
    found = await probed(it, 0, times=2)
    fault = found["DOOR006"]
    assert isinstance(fault, Fault) and "port 8443 is in use by nc" in fault.what and "door-away" not in found
    (incident,) = it.keep.store.incidents
    assert (incident.kind, incident.is_open) == ("door-port", True) and "in use by nc" in incident.what
    set_report(it, "good")
    assert isinstance((await probed(it, 401, times=2))["DOOR006"], Cleared)
    (incident,) = it.keep.store.incidents
    assert not incident.is_open


async def test_a_port_that_somebody_has_is_no_trouble_where_no_gateway_was_made() -> None:
    """Guards deployments that serve without a gateway: `up` has said so, and nothing gets worse."""
    it = make_tower()
    set_endpoint(it, "")
    set_report(it, "good", port=TAKEN)
    await endpoint.inspect_gateway(it.bus)
    assert [event.kind for event in it.events if isinstance(event, Fault)] == []
