"""`facts` about a node's system as text: short, and honest about what is not known."""

import re
from dataclasses import replace

from sparkwright.cli.facts_text import facts_text
from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.host_facts import Activity, HardwareWatchdog, KernelLog, KernelNote, Package, Process, Times
from sparkwright.domain.units import GIB, MIB
from unit.checks.host_samples import BOARD, UPKEEP
from unit.cli.test_facts_text import rows_by_label

RESET = HardwareWatchdog("watchdog0", active=True, systemd="2min", has_reset=True)
FULL = NodeFacts(
    "spark-1",
    1.0,
    kernel_log=KernelLog(4821, (KernelNote("NVRM: x"),)),
    packages=(Package("nvidia-driver-580-open", "580.142-1", held=True), Package("fwupd", "1.9")),
    activity=Activity(0, 3, 0.0, 0.25, 1, (Process(812, "ollama", 5 * GIB), Process(1, "systemd", 14 * MIB))),
    times=Times(1000.0, 8000.0, synchronized=True, ntp=True, unclean=True),
    upkeep=replace(UPKEEP, memlock=8192, wifi="wlP9s9", watchdog=RESET),
    board=BOARD,
)


def test_the_system_is_reported_in_one_line_each() -> None:
    """Guards that the new facts are at hand without reading JSON."""
    shown = rows_by_label(FULL)
    assert shown["board"] == (
        "BIOS 5.36_0ACUM020, EC 3.5, hottest zone acpitz 51 °C\nlibcuda 580.142 88.7 MiB, driver on disk 580.142"
    )
    assert shown["packages"] == "2 of driver, kernel and firmware, held: nvidia-driver-580-open"
    assert shown["settings"] == (
        "vm.min_free_kbytes 3145728, memlock 8192 KiB, boots to multi-user.target, "
        "hardware watchdog armed, it ended the last boot, reached over wlP9s9"
    )
    assert shown["activity"] == (
        "swap 0 pages in, 3 out in 0.4 s, all waited for memory 0.25 % of 10 s, 1 killed for lack of memory, "
        "ollama (pid 812, 5.0 GiB)"
    )
    assert shown["clock"] == "synchronized, up 2 h 13 min, the boot before ended without a shutdown"
    assert shown["kernel log"] == "4821 lines read, 1 kinds of them kept"


def test_a_system_of_which_nothing_is_known_reports_it() -> None:
    """Guards that no object's repr and no guess is where there is no answer."""
    shown = rows_by_label(NodeFacts("n", 1.0, activity=Activity(), times=Times(1.0)))
    assert shown["board"] == shown["kernel log"] == "unknown: not asked"
    assert shown["clock"] == ""
    text = facts_text(NodeFacts("n", 1.0, activity=Activity(), times=Times(1.0)), "n")
    assert not re.search(r"Unknown|\w+\(\w+=", text)
