"""The supervisor's own files: what is wrong with them is shown for as long as it is so. Nothing is stopped by it."""

from sparkwright.supervisor.event_bus import EventBus

_EVERY = 5.0
HISTORY = "history"


async def watch(bus: EventBus) -> None:
    told: set[str] = set()
    while True:
        told = look(bus, told)
        await bus.context.pause(_EVERY)


def look(bus: EventBus, told: set[str]) -> set[str]:
    """told: the kinds that were wrong at the look before; those of this one."""
    keep = bus.context.keep
    wrong = {**keep.journal.wrong(), HISTORY: keep.store.wrong()}
    for kind in {*wrong, *told}:
        bus.stands(kind, wrong.get(kind, ""))
    return set(wrong)
