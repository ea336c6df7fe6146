"""What changed since a deployment last served: noted at each ready, shown when a later start fails."""

import json
from dataclasses import replace

import pytest

from fakes.rank_node import STATE, Exit
from sparkwright.app.changed import differences, served
from sparkwright.app.launch import Options, up
from sparkwright.app.services import ClusterState
from sparkwright.domain.command import Command
from sparkwright.domain.errors import NotReady
from sparkwright.domain.facts import Driver, Kernel, NodeFacts, Unknown
from sparkwright.domain.progress import Notice
from unit.app.scene import JOINS, LOADS, recipe, request, scene

FILE = f"{STATE}/served/twin.json"


def of(release: str, driver: str | Unknown = "580.95.05") -> dict[str, str]:
    facts = NodeFacts("spark-1", 0.0, kernel=Kernel(release, "quiet", "Ubuntu"), driver=Driver(driver, "580.95.05"))
    return served(recipe(), ("spark-1",), ClusterState({"spark-1": facts}))


def test_only_what_is_known_twice_and_differs_is_a_change() -> None:
    """A figure that could not be read this time is no change, and neither is one that is new."""
    assert differences(of("6.17"), of("6.17")) == ()
    assert differences(of("6.17"), of("7.0.0-1019")) == ("spark-1 kernel: 6.17 -> 7.0.0-1019",)
    assert differences(of("6.17"), of("6.17", Unknown("", "no driver"))) == ()


async def test_a_start_that_serves_notes_what_it_served_with() -> None:
    """On the head, whatever machine the next `up` is called from."""
    here = scene()
    await up(here.services, request(), Options())
    noted = json.loads(here.nodes[0].files[FILE])
    assert noted["facts"]["recipe"] == f"twin ({recipe().hash})" and noted["at"] > 0


@pytest.mark.parametrize("text", ["", "{", "[]", '{"facts": [], "at": "x"}'])
async def test_a_failed_start_shows_nothing_without_a_note(text: str) -> None:
    """A note that was cut off or is not ours hides no error."""
    assert await noticed(text) == []


async def test_a_failed_start_shows_what_changed() -> None:
    """An update of kernel or driver is the first suspect, and the owner may not know of it."""
    before = {"engine version": "0.20.0", "recipe": f"twin ({recipe().hash})"}
    (notice,) = await noticed(json.dumps({"at": 1_795_000_000, "facts": before}))
    assert notice.text == "changed since twin last served (2026-11-18): engine version: 0.20.0 -> 0.21.0"
    same = {**before, "engine version": "0.21.0"}
    (notice,) = await noticed(json.dumps({"at": 1_795_000_000, "facts": same}))
    assert notice.text.endswith("nothing that sparkwright records")


async def noticed(text: str) -> list[Notice]:
    here = scene()
    for node in here.nodes:
        node.script = (JOINS, LOADS, Exit(1))

    def is_note(command: Command) -> bool:
        return FILE in command.argv

    here.nodes[0].on(is_note, text)
    with pytest.raises(NotReady):
        await up(here.services, replace(request()), Options())
    return [one for one in here.sink.of(Notice) if "last served" in one.text]
