"""The reports of nodes on their cables: bounded, checked, and with no name that could become an option."""

from sparkwright.domain.command import Completed
from sparkwright.facts.cabling import is_cage, parse
from unit.for_each import for_each

ANSWER = """\
enp1s0f0np0 mac 3c:6d:66:cc:b3:b7
enp1s0f0np0 seen 3c:6d:66:cc:b3:01
enp1s0f0np0 seen 3c:6d:66:cc:b3:02
enp1s0f0np0 manager nmcli
enP2p1s0f0np0 mac 3c:6d:66:cc:b3:bb
enP2p1s0f0np0 manager none
enP7s7 guarded
"""


def test_ports_with_neighbours_managers_and_what_is_guarded() -> None:
    """Guards the answer of a node with one cable: two neighbours on it, one port that nothing manages."""
    found = parse(Completed(0, ANSWER))
    assert found
    assert set(found.macs) == {"enp1s0f0np0", "enP2p1s0f0np0"}
    assert found.seen["enp1s0f0np0"] == {"3c:6d:66:cc:b3:01", "3c:6d:66:cc:b3:02"}
    assert (found.seen["enP2p1s0f0np0"], found.managers) == (frozenset(), {"enp1s0f0np0": "nmcli"})
    assert found.guarded == {"enP7s7"}


@for_each(
    "line", ["-oProxyCommand=x mac 3c:6d:66:cc:b3:b7", "a;b mac 3c:6d:66:cc:b3:b7", "eth0 mac $(reboot)", "\0", ""]
)
def test_hostile_lines_are_dropped(line: str) -> None:
    """Guards commands that are made of what a node reports."""
    found = parse(Completed(0, f"{line}\n"))
    assert found and not found.macs


def test_no_answer_is_unknown() -> None:
    """Guards that a failed look is not taken for a node without cables."""
    assert not parse(Completed(127, "", "sh: not found"))


@for_each(
    "name, cage",
    [("enp1s0f0np0", True), ("enP2p1s0f1np1", True), ("enP7s7", False), ("wlP9s9", False), ("docker0", False)],
)
def test_names_of_cages(name: str, cage: bool) -> None:
    """Guards that the management port and Wi-Fi are never among the ports to set up."""
    assert is_cage(name) is cage
