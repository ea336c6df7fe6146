"""The door's files while it serves."""

from dataclasses import replace

from sparkwright.app.supervise.sources import door
from sparkwright.domain.recipe import Door, DoorTls
from sparkwright.supervision.events import Cleared, Fault
from sparkwright.supervision.state import Recovery
from unit.app.scene import recipe
from unit.app.supervise.watchtower import Tower, tower

PAIR = (
    "@@ pair\n{}\nnotBefore=Nov  1 00:00:00 2025 GMT\nnotAfter=Nov 20 00:00:00 2026 GMT\nnow=Nov 22 00:00:00 2026 GMT\n"
)
FILES = Door(tls=DoorTls.FILES, certificate="/etc/c.pem", key="/etc/k.pem")


def seen(it: Tower, certificate: str, keys: str = "") -> None:
    """What the head has from now on."""
    text = f"@@ keys\n{keys}\n@@ keys-mode\n600\n@@ keys-file\n/s/door/keys.json\n@@ caddy\n/usr/bin/caddy\nv2.11.7\n"
    text += "@@ image\n@@ host\nspark\n@@ addresses\n@@ user\n1000:1000\n@@ port\n@@ ours\ncaddy run\n"
    it.scene.nodes[0].on(lambda command: "@@ pair" in " ".join(command.argv), text + PAIR.format(certificate))


async def test_a_certificate_that_expires_while_it_serves_is_a_trouble_until_it_is_renewed() -> None:
    """Guards that nobody has to call `up` to learn it, that nothing is stopped, and that it is over by itself."""
    serving = replace(recipe().serving, door=FILES)
    it = tower()
    it.site.desired = replace(it.site.desired, recipe=replace(it.site.desired.recipe, serving=serving))
    seen(it, "good")
    await door.look(it.senses)
    assert {type(event) for event in it.events} == {Cleared}
    seen(it, "expired")
    await door.look(it.senses)
    fault, keys = it.events
    assert isinstance(fault, Fault) and (fault.kind, fault.recovery) == ("DOOR003", Recovery.NONE)
    assert "has expired" in fault.what and "Nov 20 00:00:00 2026" in fault.what and "renew it" in fault.what
    assert keys == Cleared(it.site.now(), "DOOR007")


async def test_a_damaged_keys_file_is_a_trouble() -> None:
    """Guards a door that lets nobody in any more: it is said where somebody looks."""
    it = tower()
    seen(it, "good", keys="{ torn")
    await door.look(it.senses)
    assert [event.kind for event in it.events if isinstance(event, Fault)] == ["DOOR007"]
