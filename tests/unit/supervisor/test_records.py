"""A fault of the supervisor's own files is a trouble that status shows."""

from sparkwright.supervisor import event_bus
from sparkwright.supervisor.core.events import Cleared, Fault
from sparkwright.supervisor.core.state import Recovery
from unit.supervisor.watchtower import make_tower


async def test_a_torn_file_and_a_newer_store_are_troubles_until_they_are_fixed() -> None:
    """Guards bad input: one finding each where somebody looks, reported again to a start, which has forgotten it."""
    it = make_tower()
    told = event_bus.check_files(it.bus, set())
    assert it.events == []
    it.keep.journal.troubles, it.keep.store.trouble = {"state-file": "state.json could not be read"}, "version 99"
    told = event_bus.check_files(it.bus, told)
    found = it.events
    assert {event.kind for event in found if isinstance(event, Fault)} == {"state-file", "history"}
    assert all(event.recovery is Recovery.NONE for event in found if isinstance(event, Fault))
    told = event_bus.check_files(it.bus, told)
    assert it.events == []
    it.bus.begin()
    assert len(it.events) == 2
    it.keep.journal.troubles, it.keep.store.trouble = {}, ""
    event_bus.check_files(it.bus, told)
    assert {event.kind for event in it.events if isinstance(event, Cleared)} == {"state-file", "history"}
