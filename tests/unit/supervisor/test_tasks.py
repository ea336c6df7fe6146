"""Tasks next to the loop."""

import asyncio

from fakes.clock import FakeClock
from patience import PATIENCE
from sparkwright.supervisor.event_bus import TaskSupervisor


async def test_a_source_that_fails_is_reported_and_begun_again() -> None:
    """Guards a supervisor that sees: a defect in one source is shown, and costs neither the others nor itself."""
    told: list[tuple[str, str]] = []
    crew = TaskSupervisor(FakeClock(), lambda name, error: told.append((name, repr(error))))
    tries: list[int] = []

    async def work() -> None:
        tries.append(1)
        if len(tries) == 1:
            raise ValueError("odd text")

    crew.begin("figures", work)
    await crew.gone()
    assert len(tries) == 2
    assert told == [("figures", "ValueError('odd text')"), ("figures", "None")]


async def test_released_it_is_not_begun_again_whatever_its_end_was() -> None:
    """Guards against a follower of old ranks that lives on: its clean-up failed when it was cancelled."""
    told: list[str] = []
    crew = TaskSupervisor(FakeClock(), lambda name, error: told.append(name))
    tries: list[int] = []

    async def work() -> None:
        tries.append(1)
        try:
            await asyncio.Event().wait()
        finally:
            raise RuntimeError("the stream was open")

    crew.begin("follower", work)
    await asyncio.sleep(0)
    crew.release()
    await asyncio.wait_for(crew.gone(), PATIENCE)
    assert (len(tries), told) == (1, [])
