"""The time of a search of settings: what serves is handed over at its beginning, and started again at its end."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from sparkwright.app.bench.target import Bench
from sparkwright.app.serve.launch import restore_previous
from sparkwright.app.serve.running import Old, find_running
from sparkwright.app.serve.swap import Swap
from sparkwright.app.services import Services, finished
from sparkwright.domain.codec import Unreadable, from_json, to_json
from sparkwright.domain.errors import UsageError
from sparkwright.domain.live import Desired
from sparkwright.tune.run import Journal, Show, TuneSearch
from sparkwright.tune.survey import TuneSurvey


@asynccontextmanager
async def searching(
    services: Services, bench: Bench, survey: TuneSurvey, journal: Journal, given: tuple[Show, float]
) -> AsyncIterator[TuneSearch]:
    """A search whose trials may begin. given: where it is shown, and the budget in seconds. Raises UsageError."""
    request = survey.request
    old = await _served(services, request.deployment, journal)
    swap = Swap(services, request, old, True, partial(restore_previous, services))
    swap.again = bool(old and old.serves)
    swap.check_way_back()
    if old and swap.again:
        services.notice(f"{old.name} serves ({old.label}); it is started again as it was at the end, or on Ctrl-C")
    search = TuneSearch(services, bench, survey, journal, *given, swap, list(journal.trials()))
    error: BaseException | None = None
    try:
        yield search
    except BaseException as raised:
        error = raised
        services.notice(f"stopped after {len(search.trials)} trials of {journal.id}", warning=True)
        raise
    finally:
        try:
            await finished(search.restore(error))
        finally:
            await finished(swap.close())


def served_text(old: Old | None) -> str:
    """The previous deployment for the journal, to be started again; '' for none."""
    return to_json(old.desired) if old and old.serves and old.desired else ""


async def _served(services: Services, name: str, journal: Journal) -> Old | None:
    """The present deployment, or the one before a search that was killed: that search's trial may run now."""
    old, told = await find_running(services, name), str(journal.header().get("served", ""))
    if (old and (old.supervised or old.desired)) or not told:  # of a trial nothing is recorded on the nodes
        return old if old and (old.supervised or old.desired) else None
    try:
        desired = from_json(Desired, told)
    except Unreadable as error:
        raise UsageError(f"{journal.id}: what served before cannot be read: {error}") from None
    return Old(name, old.ranks if old else (), None, desired, True)


async def serving(services: Services, name: str) -> Old | None:
    """The deployment a search would replace. Raises UsageError if it could not be started again."""
    old = await find_running(services, name)
    if old and old.serves and old.desired is None and not old.supervised:
        said = f"{name} serves, and what it was started from is not recorded: it could not be started again"
        raise UsageError(said, f"sparkwright down {name}")
    return old
