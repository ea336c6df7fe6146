"""The changes since a deployment last served: noted at each ready, shown when a later start fails."""

import json
from dataclasses import replace
from typing import Any

import pytest

from fakes.rank_node import STATE, Exit
from sparkwright.app.serve import changed
from sparkwright.app.serve.changed import differences, served
from sparkwright.app.serve.launch import Options, up
from sparkwright.app.services import ClusterState
from sparkwright.domain.command import Command, Completed
from sparkwright.domain.errors import CommandFailed, NotReady
from sparkwright.domain.facts import Driver, EngineFound, Identity, Kernel, NodeFacts, Unknown
from sparkwright.domain.host_facts import Board, Unit, Upkeep
from sparkwright.domain.progress import Notice
from sparkwright.remote.repair import CLOCK_UNIT
from unit.app.scene import JOINS, LOADS, make_scene, recipe, request
from unit.for_each import for_each

FILE = f"{STATE}/served/twin.json"


def served_facts(release: str, driver: str | Unknown = "580.95.05") -> dict[str, str]:
    facts = NodeFacts("spark-1", 0.0, kernel=Kernel(release, "quiet", "Ubuntu"), driver=Driver(driver, "580.95.05"))
    return served(recipe(), ("spark-1",), ClusterState({"spark-1": facts}))


def test_only_what_is_known_twice_and_differs_is_a_change() -> None:
    """A figure that could not be read this time is no change, and neither is one that is new."""
    assert differences(served_facts("6.17"), served_facts("6.17")) == ()
    assert differences(served_facts("6.17"), served_facts("7.0.0-1019")) == ("spark-1 kernel: 6.17 -> 7.0.0-1019",)
    assert differences(served_facts("6.17"), served_facts("6.17", Unknown("", "no driver"))) == ()


UNIT = {CLOCK_UNIT: Unit(CLOCK_UNIT, "loaded", "active")}
FACTS = NodeFacts(
    "spark-1",
    0.0,
    identity=Identity("spark", "0" * 32, "aarch64", "boot", "ai", "/home/ai", ota_version="7.2.3"),
    kernel=Kernel("6.17.0-1014-nvidia", "quiet", "Ubuntu"),
    driver=Driver("580.95.05", "580.95.05"),
    board=Board("5.36_0ACUM018", ec="1.0"),
    upkeep=Upkeep(),
)
STATE_THEN = ClusterState(
    {"spark-1": FACTS}, {}, {"spark-1": ("sha256:a", 1)}, {"spark-1": EngineFound("", {"vllm": "1"})}
)


@for_each(
    "name, now",
    [
        ("spark-1 kernel: 6.17.0-1014-nvidia -> 7.0", {"kernel": Kernel("7.0", "quiet", "Ubuntu")}),
        (
            "spark-1 kernel command line: quiet -> init_on_alloc=0",
            {"kernel": replace(FACTS.kernel, cmdline="init_on_alloc=0")},
        ),
        ("spark-1 driver: 580.95.05 -> 595.1", {"driver": Driver("595.1", "580.95.05")}),
        ("spark-1 GPU firmware: 580.95.05 -> 595.1", {"driver": Driver("580.95.05", "595.1")}),
        ("spark-1 BIOS: 5.36_0ACUM018 -> 5.37", {"board": Board("5.37", ec="1.0")}),
        ("spark-1 EC: 1.0 -> 2.0", {"board": Board("5.36_0ACUM018", ec="2.0")}),
        ("spark-1 DGX OS: 7.2.3 -> 7.3", {"identity": replace(FACTS.identity, ota_version="7.3")}),
        ("spark-1 GPU clock cap: off -> on", {"upkeep": Upkeep(units=UNIT)}),
        ("spark-1 image: sha256:a -> sha256:b", {"images": {"spark-1": ("sha256:b", 1)}}),
        ("spark-1 vllm: 1 -> 2", {"engines": {"spark-1": EngineFound("", {"vllm": "2"})}}),
        (
            "engine version: 0.21.0 -> 0.22.0",
            {"recipe": replace(recipe(), engine=replace(recipe().engine, version="0.22.0"))},
        ),
        (f"recipe: twin ({recipe().hash}) -> twin (other)", {"recipe": replace(recipe(), hash="other")}),
    ],
)
def test_each_thing_that_a_start_depends_on_is_noted_and_compared(name: str, now: dict[str, Any]) -> None:
    """A thing missing from the note is the change that an owner looks for in vain."""
    given = now.pop("recipe", recipe())
    state = replace(STATE_THEN, **{key: now.pop(key) for key in ("images", "engines") if key in now})
    state = replace(state, facts={"spark-1": replace(FACTS, **now)})
    assert differences(served(recipe(), ("spark-1",), STATE_THEN), served(given, ("spark-1",), state)) == (name,)


async def test_a_long_command_line_is_compared_whole_and_shown_by_the_words_that_differ(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Some machines boot with a kilobyte of options; compared by its beginning it is called changed each time."""
    line = " ".join(f"option{n}=value" for n in range(60))
    note = json.dumps({"facts": {"command line": line}})
    for now, shown in [
        (line, "nothing that sparkwright records"),
        (line.replace("option7=value", "init_on_alloc=0"), ": command line: - option7=value + init_on_alloc=0"),
    ]:
        monkeypatch.setattr(changed, "served", lambda *_, now=now: {"command line": now})
        (notice,) = await noticed(note)
        assert notice.text.endswith(shown)


async def test_ranks_that_cannot_be_started_show_it_too() -> None:
    """A Docker that an update has left without its GPU refuses before there is a log."""
    here = make_scene()
    here.nodes[1].refuses = Completed(125, "", "could not select device driver")
    here.nodes[0].on(lambda command: FILE in command.argv, json.dumps({"facts": {"engine version": "0.20.0"}}))
    with pytest.raises(CommandFailed):
        await up(here.services, request(), Options())
    (notice,) = [one for one in here.sink.of(Notice) if "last served" in one.text]
    assert "engine version: 0.20.0 -> 0.21.0" in notice.text


async def test_a_start_that_serves_notes_what_it_served_with() -> None:
    """The note is on the head, whatever machine the next `up` is called from."""
    here = make_scene()
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
    here = make_scene()
    for node in here.nodes:
        node.script = (JOINS, LOADS, Exit(1))

    def is_note(command: Command) -> bool:
        return FILE in command.argv

    here.nodes[0].on(is_note, text)
    with pytest.raises(NotReady):
        await up(here.services, replace(request()), Options())
    return [one for one in here.sink.of(Notice) if "last served" in one.text]
