"""Shared memory of ended ranks: looked for between their end and the removal of their logs, and told."""

import pytest

from fakes.rank_node import STATE, Rank
from sparkwright.app import ranks
from sparkwright.domain.command import Command, Completed
from sparkwright.domain.errors import CommandFailed
from sparkwright.domain.facts import RankStatus
from unit.app.scene import ClusterScene, make_scene

FILE = "/dev/shm/vllm_offload_ace9ccee-8cbc.mmap"
HANDLE = f"{STATE}/deployments/twin/rank0"


def scene_with_a_rank(answer: Completed) -> tuple[ClusterScene, list[RankStatus], list[Command]]:
    it, asked = make_scene(), list[Command]()

    def fits(command: Command) -> bool:
        found = "remove what dead ranks left" in command.changes
        asked.extend([command] if found else [])
        if found:
            it.nodes[0].note("leftovers")
        return found

    it.nodes[0].on(fits, answer)
    it.nodes[0].ranks[HANDLE] = Rank({"deployment": "twin", "rank": "0", "world": "1"}, ())
    status = RankStatus("twin", 0, "spark-1", "process", "exited", HANDLE, engine="vllm 0.33.0")
    return it, [status], asked


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("removed", f"spark-1: 13.0 GiB of shared memory that a dead rank had left was removed ({FILE})"),
        ("left", f"takes memory from the next start: `sudo rm {FILE}` there"),
        ("used", ""),
    ],
)
@pytest.mark.parametrize("remove", [False, True])
async def test_it_is_told_what_was_found(how: str, said: str, remove: bool) -> None:
    """Their logs name the files, so they are read before the folder goes; a file in use is nobody's leftover."""
    it, rows, asked = scene_with_a_rank(Completed(0, f"{how} {13 * 1024**3} {FILE}\nodd line; rm -rf /\n"))
    await ranks.stop_all(it.services, rows, 5.0, remove=remove)
    done = [what for _, what in it.nodes[0].journal]
    assert done == ["stop 0", "leftovers", *(["remove 0"] if remove else [])]
    assert asked[0].argv[-1] == HANDLE
    notices = [text for text in map(str, it.sink.happenings) if "shared memory" in text]
    assert (said in notices[0] if said else not notices) and len(notices) <= 1


async def test_a_node_that_cannot_look_stops_nothing() -> None:
    """An old shell, a full process table: the stop goes on."""
    it, rows, _ = scene_with_a_rank(Completed(127, "", "not found"))
    await ranks.stop_all(it.services, rows, 5.0, remove=True)
    assert not it.nodes[0].ranks


async def test_other_engines_are_stopped_as_before() -> None:
    """One round trip, no look."""
    it, rows, asked = scene_with_a_rank(Completed(0, ""))
    rows = [RankStatus("twin", 0, "spark-1", "process", "exited", HANDLE, engine="llama-cpp b7000")]
    await ranks.stop_all(it.services, rows, 5.0, remove=True)
    assert not asked and [what for _, what in it.nodes[0].journal] == ["remove 0"]


async def test_a_stop_that_takes_too_long_is_no_rank_that_survives() -> None:
    """Guards the sentence on a busy node: whoever reads "still there after SIGKILL" looks for a stuck driver."""
    it, rows, _ = scene_with_a_rank(Completed(0, ""))
    it.nodes[0].on(lambda command: command.changes.startswith("stop "), Completed(124, ""))
    with pytest.raises(CommandFailed, match=r"took longer than \d+ s"):
        await ranks.stop_all(it.services, rows, 5.0, remove=False)
