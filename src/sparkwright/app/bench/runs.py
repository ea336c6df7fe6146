"""`runs`: benchmark runs: list, tag, delete, import."""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, replace

from sparkwright.app.services import Services
from sparkwright.domain.errors import CommandFailed, UsageError
from sparkwright.domain.run import Run, RunListing
from sparkwright.ports import RunStore
from sparkwright.remote.host import script

LAST = "last"
_LIST = "sparkwright runs list shows what there is"
REPORTS = "reports"
REPORT_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,120}", re.ASCII)
_PUBLISH = f"""
d="$(x "$1")/{REPORTS}"; n="$d/.$2.new"; umask 077; mkdir -p "$d" || exit 1
cat > "$n" && mv -f "$n" "$d/$2.html" && printf '%s' "$3" > "$n" && mv -f "$n" "$d/$2.json"
"""


async def chosen(runs: RunStore, word: str) -> RunListing:
    """The run with that id, unique start of an id, or tag (its newest), or `last`. Raises UsageError."""
    found = await runs.list()
    if not found:
        raise UsageError(f"no run {word}: nothing was measured on this machine yet", "sparkwright bench URL")
    if word == LAST:
        return found[0]
    exact = [one for one in found if one.id == word] or [one for one in found if word in one.tags][:1]
    near = exact or [one for one in found if one.id.startswith(word)]
    if len(near) == 1:
        return near[0]
    if near:
        raise UsageError(f"{word} may be any of {', '.join(one.id for one in near[:5])}", "write more of its id")
    raise UsageError(f"no run {word}", _LIST)


async def loaded(runs: RunStore, word: str) -> Run:
    """Raises UsageError."""
    return await runs.load((await chosen(runs, word)).id)


async def taken_up(runs: RunStore, word: str) -> Run:
    """Takes the run up to resume it. Raises UsageError, Busy."""
    return await runs.take_up((await chosen(runs, word)).id)


async def listed(runs: RunStore, workload: str, tag: str) -> tuple[RunListing, ...]:
    """Newest first; '' chooses all."""
    found = await runs.list()
    mine = (one for one in found if not workload or workload in (one.workload, one.workload.partition("@")[0]))
    return tuple(one for one in mine if not tag or tag in one.tags)


async def tagged(runs: RunStore, word: str, tags: Sequence[str], remove: bool) -> RunListing:
    """The run with its tags as they are then. Raises UsageError."""
    one = await chosen(runs, word)
    kept = tuple(tag for tag in one.tags if tag not in tags)
    changed = kept if remove else (*kept, *dict.fromkeys(tags))
    await runs.tag(one.id, changed)
    return replace(one, tags=changed)


async def deleted(runs: RunStore, words: Sequence[str]) -> tuple[RunListing, ...]:
    """All are found before any of them goes. Raises UsageError."""
    found = [await chosen(runs, word) for word in words]
    for one in found:
        await runs.delete(one.id)
    return tuple(found)


async def imported(runs: RunStore, found: Sequence[tuple[str, Run]], tags: Sequence[str]) -> tuple[Run, ...]:
    """found: (path, run), all that were read, before anything is kept. Raises UsageError."""
    known = {one.id for one in await runs.list()}
    for path, run in found:
        if run.id in known:
            raise UsageError(f"{path}: the run {run.id} is here already", f"sparkwright runs show {run.id}")
        known.add(run.id)
    made = tuple(replace(run, tags=(*run.tags, *(tag for tag in tags if tag not in run.tags))) for _, run in found)
    for run in made:
        await runs.add(run)
    return made


async def publish(services: Services, runs: Sequence[RunListing], page: str) -> str:
    """Puts a report next to the console on the head, which lists it. Returns its node. Raises CommandFailed."""
    head, name = services.cluster.head, "-vs-".join(run.id for run in runs)[:100]
    if not REPORT_NAME.fullmatch(name):
        raise UsageError(f"run {name}: no name for a file", "sparkwright runs list shows the ids")
    about = json.dumps([asdict(run) for run in runs])
    what = f"report {name} for the console"
    put = script(_PUBLISH, services.state_on(head), name, about, changes=what, stdin=page.encode())
    done = await services.run(head, put)
    if not done.ok:
        raise CommandFailed(head, f"the report cannot be written: {done.stderr.strip()[-300:]}", "see the disk's space")
    return head
