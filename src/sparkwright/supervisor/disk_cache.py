"""The engine's cache on disks (`serving.disk_cache`): its use and its trouble, and llama.cpp's slots.

llama.cpp writes and reads its slots only when it is asked to.
"""

import json

from sparkwright.app.serve.cache_disks import STARTED_WITHOUT
from sparkwright.domain.errors import NodeError, NotReady
from sparkwright.domain.foreign_json import read_json
from sparkwright.domain.live import LiveDiskCache
from sparkwright.domain.probed import Reply
from sparkwright.domain.units import gib
from sparkwright.engines.catalog import traits
from sparkwright.engines.disk_cache import disk_cache_folder
from sparkwright.remote.disk_cache import disk_cache_usage, rename_slot, saved_slots
from sparkwright.supervisor.context import DeploymentContext
from sparkwright.supervisor.core.detect.stall import has_work
from sparkwright.supervisor.event_bus import EventBus

TROUBLE, SLOTS = "disk-cache", "disk-cache-slots"
_LOOK_EVERY, _SAVE_EVERY, _STEP = 300.0, 30.0, 1.0
_WHOLE, _NEW, _TAKEN = "slot-{}.bin", "slot-{}.new", "slot-{}.taken"
_RESTORE_AGAIN = (1.0, 10.0)  # seconds before a slot that was refused is asked once more, and then again
_SECONDS = 120.0  # of one slot: 60 GB at 0.5 GB/s
_PLACES = 4  # slots of llama.cpp's server where the recipe names none


async def watch_disks(bus: EventBus) -> None:
    """Nothing stops for a disk that is away: contexts are computed again."""
    while bus.context.desired.recipe.serving.disk_cache:
        await look_at_disks(bus)
        await bus.context.pause(_LOOK_EVERY)


async def look_at_disks(bus: EventBus) -> None:
    context, recipe = bus.context, bus.context.desired.recipe
    folder, size = disk_cache_folder(recipe), recipe.serving.disk_cache_size
    found, wrong = [], []
    for node in context.nodes:
        try:
            told = (await context.services.run(node, disk_cache_usage(folder))).stdout.split()
        except NodeError:
            continue  # a node that is away is named by others
        if told[:1] == ["used"] and len(told) == 3 and told[1].isdigit() and told[2].isdigit():
            one = LiveDiskCache(node, int(told[1]), size, int(told[2]))
            found.append(one)
            wrong += [f"{node}: {gib(one.used)} of {gib(size)}: the next start removes the oldest"] * (one.used > size)
        else:
            why = "cannot be written" if told[:1] == ["read-only"] else "is not there, or its disk does not answer"
            wrong.append(f"{node}: {folder} {why}: contexts are not kept there, and are computed again")
    if context.journal.recall().get(STARTED_WITHOUT):
        cure = f"once its disk is there: `sparkwright restart {context.name}`"
        wrong.append(f"the engine was started without it, because a node could not make or write its folder; {cure}")
    context.seen.disk_cache = tuple(found)
    bus.set_trouble(TROUBLE, f"the KV cache on disk: {'; '.join(wrong)}" if wrong else "")


async def keep_slots(bus: EventBus) -> None:
    """Restore the slots after a start, then save them whenever the engine rests after work."""
    if not _has_slots(bus):
        return
    while bus.speaks is None:  # the questions of a start would take a slot
        await bus.context.pause(_STEP)
    await restore_slots(bus)
    saved = _counted(bus)
    while True:
        await bus.context.pause(_SAVE_EVERY)
        while has_work(bus.context.seen.engine):
            await bus.context.pause(_STEP)
        if (now := _counted(bus)) != saved and await save_slots(bus):
            saved = now


async def save_before_stop(bus: EventBus) -> None:
    """Save the slots before a planned stop; one that fails stops it not."""
    if _has_slots(bus):
        await save_slots(bus)


def _has_slots(bus: EventBus) -> bool:
    recipe = bus.context.desired.recipe
    without = bus.context.journal.recall().get(STARTED_WITHOUT)
    return bool(recipe.serving.disk_cache) and traits(recipe).slots and not without


def _counted(bus: EventBus) -> float:
    engine = bus.context.seen.engine
    return (engine.prompt_tokens or 0.0) if engine else 0.0


async def save_slots(bus: EventBus) -> bool:
    """Save each slot; False if one could not be, which is a trouble until it could.

    A server that is busy refuses, so a refused slot is asked once more; one that gives no answer ends the round. The
    file gets its name when it is whole: llama.cpp writes it in place, and dies when it reads half of one.
    """
    context, wrong = bus.context, ""
    for slot in range(context.desired.recipe.serving.sequences or _PLACES):
        try:
            reply = await _ask_slot(context, "save", slot, _NEW)
            if reply.status != 200:
                await context.pause(_STEP)
                reply = await _ask_slot(context, "save", slot, _NEW)
        except NotReady as error:
            wrong = error.message
            break
        if reply.status != 200:
            wrong = f"HTTP {reply.status}"
        elif not await _rename(context, slot, _NEW, _WHOLE):
            wrong = "its file was written and could not be renamed"
    bus.set_trouble(SLOTS, f"contexts could not be saved to the disk cache: {wrong}" if wrong else "")
    return not wrong


async def restore_slots(bus: EventBus) -> None:
    """Restore the slots that have a file. Contexts that do not come back are computed again: a line in the log.

    A file has another name while the engine reads it, so that one that ends the engine is not read at its next start.
    """
    context, wrong = bus.context, ""
    context.seen.restored = 0.0
    for slot in await _saved_slots(context):
        if not await _rename(context, slot, _WHOLE, _TAKEN):
            continue
        try:
            reply = await _restored(context, slot)
        except NotReady as error:
            wrong = f"slot {slot}: {error.message}; its file is not read again"
            break
        await _rename(context, slot, _TAKEN, _WHOLE)
        if reply.status != 200:
            wrong = f"slot {slot}: HTTP {reply.status}"
        context.seen.restored += _restored_tokens(reply)
    if wrong:
        context.notice(f"contexts did not come back from the disk cache: {wrong}", warning=True)


async def _restored(context: DeploymentContext, slot: int) -> Reply:
    """The last answer. Asked again while no client works: llama.cpp says 400 for a file that it cannot read, and also
    for a cache that has no room just now. Raises NotReady without an answer."""
    reply = await _ask_slot(context, "restore", slot, _TAKEN)
    for pause in _RESTORE_AGAIN:
        if reply.status == 200:
            break
        await context.pause(pause)
        if has_work(context.seen.engine):
            break
        reply = await _ask_slot(context, "restore", slot, _TAKEN)
    return reply


async def _saved_slots(context: DeploymentContext) -> tuple[int, ...]:
    """The slots that have a file; none if the node does not tell."""
    try:
        told = await context.services.run(context.head, saved_slots(disk_cache_folder(context.desired.recipe)))
    except NodeError:
        return ()
    names = told.stdout.split()
    places = range(context.desired.recipe.serving.sequences or _PLACES)
    return tuple(slot for slot in places if _WHOLE.format(slot) in names)


async def _rename(context: DeploymentContext, slot: int, old: str, new: str) -> bool:
    folder = disk_cache_folder(context.desired.recipe)
    try:
        done = await context.services.run(context.head, rename_slot(folder, old.format(slot), new.format(slot)))
    except NodeError:
        return False
    return done.ok


async def _ask_slot(context: DeploymentContext, what: str, slot: int, name: str) -> Reply:
    """Raises NotReady without an answer."""
    url, body = f"{context.url}/slots/{slot}?action={what}", json.dumps({"filename": name.format(slot)})
    with context.own_request():
        return await context.services.endpoint.post(url, body, context.key, _SECONDS)


def _restored_tokens(reply: Reply) -> float:
    """Tokens that a slot got back, by llama.cpp's `n_restored`; 0 for a slot that was never saved."""
    try:
        found = read_json(reply.body).get("n_restored") if reply.status == 200 else 0
    except (ValueError, AttributeError):
        return 0.0
    return float(found) if isinstance(found, int) else 0.0
