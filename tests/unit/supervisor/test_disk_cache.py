"""The engine's cache on disks, as the supervisor sees it: shown, named when it fails, and never a reason to stop."""

import asyncio
import json
from dataclasses import replace

import pytest

from fakes.endpoint import make_reply
from patience import PATIENCE
from sparkwright.app.serve.cache_disks import STARTED_WITHOUT
from sparkwright.domain.command import Command, Completed
from sparkwright.domain.live import LiveEngine
from sparkwright.domain.progress import Notice
from sparkwright.supervisor import disk_cache
from sparkwright.supervisor.core.events import Fault
from sparkwright.supervisor.core.state import Recovery
from sparkwright.supervisor.endpoint import note_cache_tiers
from unit.supervisor.watchtower import Tower, make_tower

SIZE = 200 * 1024**3


def is_rename(command: Command) -> bool:
    return command.changes.startswith("rename /data/kv/")


def cached_tower(engine: str = "vllm", version: str = "0.33.0") -> Tower:
    it = make_tower()
    recipe = it.context.desired.recipe
    serving = replace(recipe.serving, disk_cache="/data/kv", disk_cache_size=SIZE, sequences=2)
    recipe = replace(recipe, serving=serving, engine=replace(recipe.engine, name=engine, version=version))
    it.context.desired = replace(it.context.desired, recipe=recipe)
    it.scene.nodes[0].on(is_rename, "")
    return it


async def test_its_use_is_shown_and_a_lost_disk_is_a_trouble() -> None:
    """Nothing is stopped for it; mounted again, it is over."""
    it = cached_tower()
    for n, text in ((0, "used 1000 9000\n"), (1, "gone\n")):
        it.scene.nodes[n].on(lambda command: "du -s" in " ".join(command.argv), text)
    await disk_cache.look_at_disks(it.bus)
    assert [(one.node, one.used, one.size, one.free) for one in it.context.seen.disk_cache] == [
        ("spark-1", 1000, SIZE, 9000)
    ]
    (fault,) = it.events
    assert isinstance(fault, Fault) and fault.recovery is Recovery.NONE
    assert "spark-2: /data/kv/" in fault.what and "contexts are not kept there" in fault.what
    it.scene.nodes[1].on(lambda command: "du -s" in " ".join(command.argv), f"used {SIZE + 5} 9000\n")
    await disk_cache.look_at_disks(it.bus)
    (fault,) = it.events
    assert isinstance(fault, Fault) and "the next start removes the oldest" in fault.what
    it.scene.nodes[1].on(lambda command: "du -s" in " ".join(command.argv), Completed(1, "", "odd"))
    await disk_cache.look_at_disks(it.bus)
    assert "does not answer" in it.events[0].what  # type: ignore[union-attr]


async def test_slots_are_restored_and_saved_after_work() -> None:
    """Guards llama.cpp, which does neither by itself: after the judged answers, and only when more was computed."""
    it = with_files(cached_tower("llama-cpp", "b7000"), "slot-0.bin", "slot-1.bin")
    it.scene.endpoint.answers = {
        f"/slots/{slot}?action={what}": make_reply({}) for slot in (0, 1) for what in ("save", "restore")
    }
    it.context.seen.engine = LiveEngine(1.0, prompt_tokens=10.0)
    it.bus.serving, it.bus.speaks = True, None
    task = asyncio.create_task(disk_cache.keep_slots(it.bus))
    await asyncio.sleep(0.02)
    assert not it.scene.endpoint.asked
    it.bus.speaks = True
    async with asyncio.timeout(PATIENCE):
        while len(it.scene.endpoint.asked) < 2:
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.02)
    assert [path for path, _ in it.scene.endpoint.asked] == ["/slots/0?action=restore", "/slots/1?action=restore"]
    it.context.seen.engine = LiveEngine(2.0, prompt_tokens=500.0)
    async with asyncio.timeout(PATIENCE):
        while len(it.scene.endpoint.asked) < 4:
            await asyncio.sleep(0.01)
    path, body = it.scene.endpoint.asked[3]
    assert path == "/slots/1?action=save" and json.loads(body) == {"filename": "slot-1.new"}
    task.cancel()


async def test_what_the_slots_got_back_and_the_engine_tells_is_noted() -> None:
    """Guards `status`: tokens by llama.cpp's own `n_restored`; vLLM's figures from its last page, none while it is
    away."""
    it = with_files(cached_tower("llama-cpp", "b7000"), "slot-0.bin")
    it.scene.endpoint.answers = {"/slots/0?action=restore": make_reply({"n_restored": 14_955})}
    await disk_cache.restore_slots(it.bus)
    note_cache_tiers(it.context)
    (tier,) = it.context.seen.cache_tiers
    assert (tier.tier, tier.restored, tier.hits) == ("disk", 14_955.0, None)
    it = cached_tower()
    it.context.seen.page = 'vllm:prompt_tokens_cached_by_source_total{source="disk"} 300.0\n'
    note_cache_tiers(it.context)
    assert it.context.seen.cache_tiers[0].hits is None
    it.context.seen.engine = LiveEngine(1.0)
    note_cache_tiers(it.context)
    assert it.context.seen.cache_tiers[0].hits == 300.0


async def test_a_save_that_fails_is_a_trouble_and_a_restore_is_not() -> None:
    """A slot that was never saved cannot be restored; a full disk is named."""
    it = cached_tower("llama-cpp", "b7000")
    it.scene.endpoint.answers = {}
    await disk_cache.restore_slots(it.bus)
    assert it.events == []
    await disk_cache.save_slots(it.bus)
    (fault,) = it.events
    assert isinstance(fault, Fault) and "contexts could not be saved to the disk cache: HTTP 404" in fault.what
    it.scene.endpoint.answers = None
    it.bus.serving = True
    await disk_cache.save_before_stop(it.bus)
    assert "connection refused" in it.events[0].what  # type: ignore[union-attr]


async def test_engines_that_write_by_themselves_are_not_asked() -> None:
    """Guards vLLM and SGLang, which know no slots."""
    it = cached_tower()
    it.bus.serving = it.bus.speaks = True
    await disk_cache.keep_slots(it.bus)
    await disk_cache.save_before_stop(it.bus)
    assert not it.scene.endpoint.asked


async def test_a_save_that_is_refused_once_is_asked_again() -> None:
    """Guards contexts of a server that was busy for a moment: no trouble, and nothing is lost."""
    it = cached_tower("llama-cpp", "b7000")
    answers = [make_reply("busy", 503), make_reply({})]
    it.scene.endpoint.answers = {
        "/slots/0?action=save": lambda body: answers.pop(0),
        "/slots/1?action=save": make_reply({}),
    }
    assert await disk_cache.save_slots(it.bus)
    assert it.events == [] and answers == []


def with_files(it: Tower, *names: str) -> Tower:
    """The node lists these files of slots."""
    it.scene.nodes[0].on(lambda command: "slot-[0-9]" in " ".join(command.argv), f"slots {' '.join(names)}\n")
    return it


def renames(it: Tower) -> list[str]:
    """Old and new names, in order."""
    return [" ".join(one.argv[-2:]) for one in it.scene.nodes[0].commands if is_rename(one)]


async def test_a_restore_that_is_refused_is_asked_again() -> None:
    """Guards a context that is on the disk while the engine has no room for it: only slots with a file, and those that
    came back are left alone."""
    it = with_files(cached_tower("llama-cpp", "b7000"), "slot-0.bin", "slot-1.bin")
    answers = [make_reply("no available space", 400), make_reply("busy", 503), make_reply({"n_restored": 70})]
    it.scene.endpoint.answers = {
        "/slots/0?action=restore": make_reply({"n_restored": 30}),
        "/slots/1?action=restore": lambda body: answers.pop(0),
    }
    await disk_cache.restore_slots(it.bus)
    assert answers == [] and it.context.seen.restored == 100.0
    assert [path[7] for path, _ in it.scene.endpoint.asked] == ["0", "1", "1", "1"]
    assert it.events == []
    taken = [f"slot-{slot}.bin slot-{slot}.taken" for slot in (0, 1)]
    given_back = [f"slot-{slot}.taken slot-{slot}.bin" for slot in (0, 1)]
    assert renames(it) == [taken[0], given_back[0], taken[1], given_back[1]]


async def test_a_slot_without_a_file_is_not_asked_for() -> None:
    """Guards the first start with a disk cache: nothing is refused, nothing is said."""
    it = with_files(cached_tower("llama-cpp", "b7000"))
    it.scene.endpoint.answers = {}
    await disk_cache.restore_slots(it.bus)
    assert it.scene.endpoint.asked == [] and it.context.seen.restored == 0.0


@pytest.mark.parametrize("busy", [False, True])
async def test_a_restore_that_is_refused_for_good_is_a_line_in_the_log(busy: bool) -> None:
    """Guards a damaged file: it is computed again; and a client's work, which is newer than what is on the disk."""
    it = with_files(cached_tower("llama-cpp", "b7000"), "slot-1.bin")
    it.context.seen.engine = LiveEngine(1.0, running=1) if busy else None
    it.scene.endpoint.answers = {"/slots/1?action=restore": make_reply("invalid slot save file", 400)}
    await disk_cache.restore_slots(it.bus)
    assert len(it.scene.endpoint.asked) == (1 if busy else 3)
    assert it.events == []
    told = [one.text for one in it.scene.sink.of(Notice)]
    assert told == ["contexts did not come back from the disk cache: slot 1: HTTP 400"]


async def test_a_file_that_ends_the_engine_is_not_read_at_its_next_start() -> None:
    """Guards a deployment from a damaged file that kills llama.cpp at each start; the other slots keep theirs."""
    it = with_files(cached_tower("llama-cpp", "b7000"), "slot-0.bin", "slot-1.bin")
    it.scene.endpoint.answers = None
    await disk_cache.restore_slots(it.bus)
    assert renames(it) == ["slot-0.bin slot-0.taken"]
    assert "connection refused; its file is not read again" in it.scene.sink.of(Notice)[0].text


async def test_a_slot_gets_its_name_when_it_is_whole() -> None:
    """Guards a kill in the middle of a save: the file of before stays what is restored."""
    it = cached_tower("llama-cpp", "b7000")
    it.scene.endpoint.answers = {
        "/slots/0?action=save": make_reply({}),
        "/slots/1?action=save": make_reply("disk full", 500),
    }
    assert not await disk_cache.save_slots(it.bus)
    assert renames(it) == ["slot-0.new slot-0.bin"]
    it.scene.nodes[0].on(is_rename, Completed(1, "", "No space left on device"))
    it.scene.endpoint.answers = {f"/slots/{slot}?action=save": make_reply({}) for slot in (0, 1)}
    assert not await disk_cache.save_slots(it.bus)
    assert "could not be renamed" in it.bus.lasting[disk_cache.SLOTS]


async def test_a_round_of_saves_that_failed_is_repeated_at_the_next_rest() -> None:
    """Guards contexts after a timeout: no new work is needed for the next try."""
    it = with_files(cached_tower("llama-cpp", "b7000"), "slot-0.bin")
    it.scene.endpoint.answers = None
    it.context.seen.engine = LiveEngine(1.0, prompt_tokens=10.0)
    it.bus.serving = it.bus.speaks = True
    task = asyncio.create_task(disk_cache.keep_slots(it.bus))
    async with asyncio.timeout(PATIENCE):
        while len(it.scene.endpoint.asked) < 1:
            await asyncio.sleep(0.01)
        it.context.seen.engine = LiveEngine(2.0, prompt_tokens=500.0)
        while not it.bus.lasting.get(disk_cache.SLOTS):
            await asyncio.sleep(0.01)
        it.scene.endpoint.answers = {f"/slots/{slot}?action=save": make_reply({}) for slot in (0, 1)}
        while it.bus.lasting.get(disk_cache.SLOTS):
            await asyncio.sleep(0.01)
    assert not task.done()
    task.cancel()


async def test_an_engine_that_was_started_without_its_disk_says_so() -> None:
    """Guards an owner whose disk is back: the engine uses it from its next start on; no slot is asked for."""
    it = cached_tower("llama-cpp", "b7000")
    for node in it.scene.nodes:
        node.on(lambda command: "du -s" in " ".join(command.argv), "used 1000 9000\n")
    it.context.remember({STARTED_WITHOUT: 1.0})
    await disk_cache.look_at_disks(it.bus)
    (fault,) = it.events
    assert isinstance(fault, Fault) and "was started without it" in fault.what
    assert "sparkwright restart twin" in fault.what
    it.bus.serving = it.bus.speaks = True
    await disk_cache.keep_slots(it.bus)
    assert not it.scene.endpoint.asked
    it.context.remember({STARTED_WITHOUT: 0.0})
    await disk_cache.look_at_disks(it.bus)
    assert disk_cache.TROUBLE not in it.bus.lasting
