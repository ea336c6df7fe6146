"""The commands of the fabric step as they are shown, and what a node must report afterwards."""

import shlex

from sparkwright.domain.fabric_facts import Route
from sparkwright.remote.cabling import commands, fabric_fix
from unit.for_each import for_each

ROUTE = Route("192.168.102.12/32", "192.168.100.12", "enp1s0f0np0")
SETTINGS = [("enp1s0f0np0", "192.168.100.11/24", (ROUTE,)), ("enP2p1s0f0np0", "192.168.101.11/24", ())]


@for_each(
    "manager, line",
    [
        ("nmcli", "sudo nmcli --wait 15 connection up sparkwright-enp1s0f0np0"),
        ("nmcli", " ipv4.routes '192.168.102.12/32 192.168.100.12'"),
        ("netplan", "  '        - {to: 192.168.102.12/32, via: 192.168.100.12}' \\"),
        ("netplan", "      addresses: [192.168.101.11/24]"),
        ("networkd", "  Destination=192.168.102.12/32 \\\n  Gateway=192.168.100.12 \\"),
    ],
)
def test_what_is_shown_is_what_one_would_type(manager: str, line: str) -> None:
    """Guards --dry-run: addresses and routes in the terms of the manager that rules the port."""
    assert line in fabric_fix("spark-1", manager, SETTINGS).do[0].typed


def test_what_must_hold_afterwards() -> None:
    """Guards that a step counts as done only with address, MTU and route of each port."""
    assert fabric_fix("spark-1", "nmcli", SETTINGS).sets.splitlines() == [
        "enp1s0f0np0 MTU 9000 192.168.100.11/24 192.168.102.12/32,192.168.100.12",
        "enP2p1s0f0np0 MTU 9000 192.168.101.11/24",
    ]


@for_each("manager", [("nmcli",), ("netplan",), ("networkd",)])
def test_what_is_shown_can_be_pasted(manager: str) -> None:
    """Guards --dry-run: lines that are indented as a whole are the same commands, and leave the same files."""
    shown = commands(manager, SETTINGS)
    words = shlex.split(shown.replace("\\\n", " "), comments=True)
    assert shlex.split("".join(f"    {line}\n" for line in shown.splitlines()).replace("\\\n", " ")) == words
    assert "<<" not in shown and ("/etc/" in shown or "save yes" in shown)
    assert "/etc/" not in commands(manager, SETTINGS, trial=True)
