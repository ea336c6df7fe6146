"""The supervisor's own files: what is wrong with them is shown for as long as it is so. Nothing is stopped by it."""

from sparkwright.app.supervise.senses import Senses

_EVERY = 5.0
HISTORY = "history"


async def watch(senses: Senses) -> None:
    told: set[str] = set()
    while True:
        told = look(senses, told)
        await senses.site.pause(_EVERY)


def look(senses: Senses, told: set[str]) -> set[str]:
    """told: the kinds that were wrong at the look before; those of this one."""
    keep = senses.site.keep
    wrong = {**keep.journal.wrong(), HISTORY: keep.store.wrong()}
    for kind in {*wrong, *told}:
        senses.stands(kind, wrong.get(kind, ""))
    return set(wrong)
