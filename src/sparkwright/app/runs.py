"""`runs`: benchmark runs: list, tag, export, import."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sparkwright.domain.errors import UsageError
from sparkwright.domain.run import Listed, Run
from sparkwright.ports import RunFiles, RunStore

LAST = "last"
_LIST = "sparkwright runs list shows what there is"


@dataclass(frozen=True, slots=True)
class RunsAndFiles:
    """Where runs are, and the files that they come from and go to."""

    runs: RunStore
    files: RunFiles


async def chosen(runs: RunStore, word: str) -> Listed:
    """By id, the beginning of one, a tag (its newest), or `last`. Raises UsageError."""
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
    """To be resumed. Raises UsageError, Busy."""
    return await runs.take_up((await chosen(runs, word)).id)


async def listed(runs: RunStore, workload: str, tag: str) -> tuple[Listed, ...]:
    """Newest first; '' chooses all."""
    found = await runs.list()
    mine = (one for one in found if not workload or workload in (one.workload, one.workload.partition("@")[0]))
    return tuple(one for one in mine if not tag or tag in one.tags)


async def tagged(runs: RunStore, word: str, tags: Sequence[str], remove: bool) -> Listed:
    """The run with its tags as they are then. Raises UsageError."""
    one = await chosen(runs, word)
    kept = tuple(tag for tag in one.tags if tag not in tags)
    changed = kept if remove else (*kept, *dict.fromkeys(tags))
    await runs.tag(one.id, changed)
    return replace(one, tags=changed)


async def deleted(runs: RunStore, words: Sequence[str]) -> tuple[Listed, ...]:
    """All are found before any of them goes. Raises UsageError."""
    found = [await chosen(runs, word) for word in words]
    for one in found:
        await runs.delete(one.id)
    return tuple(found)


async def exported(kept: RunsAndFiles, word: str, form: str, path: str) -> bytes:
    """path: '' only returns the content. form: '' goes by the path's end. Raises UsageError."""
    form = form or _form(kept.files, path)
    content = kept.files.bytes_of(await loaded(kept.runs, word), form)
    if path:
        kept.files.write(content, path)
    return content


def _form(files: RunFiles, path: str) -> str:
    """JSON, which alone holds everything and needs nothing, where no file is named."""
    if not path:
        return "json"
    found = next((form for form, end in files.forms.items() if end and path.lower().endswith(end)), "")
    if not found:
        raise UsageError(f"{path}: in which format?", f"--format {' | '.join(files.forms)}")
    return found


async def imported(kept: RunsAndFiles, paths: Sequence[str], tags: Sequence[str]) -> tuple[Run, ...]:
    """Every file is read before anything is kept. Raises UsageError."""
    runs = [kept.files.read(path) for path in paths]
    known = {one.id for one in await kept.runs.list()}
    for run, path in zip(runs, paths, strict=True):
        if run.id in known:
            raise UsageError(f"{path}: the run {run.id} is here already", f"sparkwright runs show {run.id}")
        known.add(run.id)
    found = tuple(replace(run, tags=(*run.tags, *(tag for tag in tags if tag not in run.tags))) for run in runs)
    for run in found:
        await kept.runs.add(run)
    return found
