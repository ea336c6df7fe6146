"""Keys made, listed and revoked on a head that answers as reported."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from fakes.host import FakeHost
from fakes.hosts import FakeHosts
from sparkwright.app.services import Services
from sparkwright.app.setup import connect, keys
from sparkwright.domain.cluster import Cluster, Node
from sparkwright.domain.command import Command, Completed, Secret
from sparkwright.domain.errors import CommandFailed, UsageError
from sparkwright.gateway.keys import Keys, digest, parse, text_of
from unit.app.scene import make_scene


class Ring:
    """Implements ports.Keyring."""

    def __init__(self) -> None:
        self.files: dict[tuple[str, str], str] = {}

    def fresh(self) -> bytes:
        return bytes(24)

    def save(self, cluster: str, name: str, content: str) -> str:
        self.files[cluster, name] = content
        return f"keys/{cluster}/{name}"

    def text(self, cluster: str, name: str) -> str:
        return self.files.get((cluster, name), "")

    def saved(self, cluster: str) -> tuple[tuple[str, Secret], ...]:
        return tuple((f"keys/{at}/{name}", Secret(key.strip())) for (at, name), key in self.files.items())


class FullRing(Ring):
    def save(self, cluster: str, name: str, content: str) -> str:
        raise UsageError("no space left")


class KeysHead:
    """Keeps a keys file as the real script does. between: what others write, one before each swap."""

    def __init__(self, text: str = "", between: Sequence[str] = ()) -> None:
        self.text, self._between = text, list(between)
        self.host = FakeHost("spark-1").on("cat ", self._read).on("flock", self._swap)

    def _read(self, _: Command) -> str:
        return self.text

    def _swap(self, command: Command) -> Completed:
        self.text = self._between.pop(0) if self._between else self.text
        known = hashlib.sha256(self.text.encode()).hexdigest() if self.text else ""
        if command.argv[-1] != known:
            return Completed(75, "")
        self.text = (command.stdin or b"").decode()
        return Completed(0, "")

    @property
    def names(self) -> list[str]:
        return [key.name for key in parse(self.text).keys]


def services(head: KeysHead, ring: Ring | None) -> Services:
    cluster = Cluster("desk", (Node("spark-1", "spark-1"),), "spark-1")
    return replace(make_scene().services, cluster=cluster, hosts=FakeHosts(head.host), keyring=ring)


async def test_a_key_is_made_here_and_only_its_hash_goes_there() -> None:
    """Guards that the key itself is in no command and in one file only."""
    head, ring = KeysHead(), Ring()
    made = await keys.create_key(services(head, ring), "laptop", "big")
    key = made.secret.reveal()
    assert ring.files == {("desk", "laptop@big.key"): key + "\n"}
    assert key not in repr(head.host.commands) and key not in head.text
    (known,) = parse(head.text).keys
    assert (known.name, known.deployment, known.sha256, known.by) == ("laptop", "big", digest(key), "anna@laptop")


async def test_a_second_laptop_is_told_where_keys_are() -> None:
    """Guards `connect` and the hint where a key of another machine opens the gateway: who made it, and two ways on."""
    head = KeysHead()
    await keys.create_key(services(head, Ring()), "laptop", "")
    with pytest.raises(UsageError) as raised:
        await connect._key(services(head, Ring()), "big", "")
    assert "no key on this machine opens big" in raised.value.message
    assert "the head knows laptop (made by anna@laptop), and each is only on the machine" in raised.value.message
    assert "`sparkwright keys add NAME` makes one here" in raised.value.hint
    assert "copy the .key file from the machine where `up` was called" in raised.value.hint


async def test_one_name_for_two_deployments_is_two_files() -> None:
    """Guards the first key: no other copy of it exists."""
    head, ring = KeysHead(), Ring()
    for deployment in ("", "big", "small"):
        await keys.create_key(services(head, ring), "laptop", deployment)
    assert len(set(ring.files)) == 3 and len(head.names) == 3


async def test_a_key_that_cannot_be_kept_here_is_none() -> None:
    """Guards a name that is taken by a key that nobody has."""
    head = KeysHead()
    with pytest.raises(UsageError, match="no space left"):
        await keys.create_key(services(head, FullRing()), "laptop")
    assert head.names == []


async def test_what_somebody_else_wrote_meanwhile_stays() -> None:
    """Guards that the second writer reads again instead of writing over it."""
    head = KeysHead(between=await others(1))
    await keys.create_key(services(head, Ring()), "laptop")
    assert head.names == ["other0", "laptop"]


async def test_of_twenty_who_write_at_once_each_gets_a_key() -> None:
    """Guards a class room: the last one is as good as the first, who has gone when she comes."""
    head = KeysHead(between=await others(19))
    await keys.create_key(services(head, Ring()), "laptop")
    assert len(head.names) == 20 and head.names[-1] == "laptop"


async def others(count: int) -> list[str]:
    """The file after each of them."""
    head, texts = KeysHead(), []
    for number in range(count):
        await keys.create_key(services(head, Ring()), f"other{number}")
        texts.append(head.text)
    return texts


async def test_the_first_key_is_made_once() -> None:
    """Guards that `up` makes a key where none opens, and later names the file of that key only where it is."""
    head, ring = KeysHead(), Ring()
    assert await keys.ensure_key(services(head, None), "big") == ""
    made = await keys.ensure_key(services(head, ring), "big")
    assert made and await keys.ensure_key(services(head, ring), "big") == made
    assert await keys.ensure_key(services(head, Ring()), "big") == "", "another machine has the key"
    assert head.names == ["default"]


async def test_revoking() -> None:
    """Guards that what is gone is reported, and that an unknown name changes nothing."""
    head = KeysHead()
    await keys.create_key(services(head, Ring()), "laptop")
    before = head.text
    with pytest.raises(UsageError, match="no key phone"):
        await keys.revoke(services(head, None), "phone")
    assert head.text == before
    assert [key.name for key in await keys.revoke(services(head, None), "laptop")] == ["laptop"]
    assert head.names == []


async def test_a_broken_file_is_reported_and_never_written_over() -> None:
    """Guards that keys are not lost because the file could not be read."""
    head = KeysHead('{"keys": [')
    with pytest.raises(CommandFailed, match="cannot be read") as caught:
        await keys.create_key(services(head, Ring()), "laptop")
    assert "move it away" in caught.value.hint
    assert head.text == '{"keys": ['


async def test_a_disk_that_is_full_is_reported() -> None:
    """Guards that a key that could not be stored is not reported as made."""
    head, ring = KeysHead(), Ring()
    head.host.on("flock", Completed(1, "", "No space left on device"))
    with pytest.raises(CommandFailed, match="No space left"):
        await keys.create_key(services(head, ring), "laptop")
    assert ring.files == {}


async def test_listing_shows_all() -> None:
    """Guards that a head without a file has no keys, and is not in trouble."""
    assert await keys.listed(services(KeysHead(), None)) == Keys()
    text = text_of(Keys()) + "\n"
    assert json.loads(text)["version"] == 1
