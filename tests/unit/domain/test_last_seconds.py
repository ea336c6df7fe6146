"""The last seconds of a node: records as they stand on a disk, half lines included, and what they point to."""

from random import Random

from sparkwright.domain.command import Completed
from sparkwright.domain.last_seconds import RingRecord, suggestions, table_of, told_of
from sparkwright.domain.units import GIB
from sparkwright.facts.ring import parse_ring
from unit.for_each import for_each

RING = """clock 1795302800 500.25 4000.1
at 510.25
/proc/meminfo:MemTotal:       127601452 kB
/proc/meminfo:MemFree:         4557560 kB
/proc/meminfo:MemAvailable:    9669068 kB
/proc/pressure/memory:some avg10=1.53 avg60=0.87 avg300=0.22 total=58761459
/proc/pressure/memory:full avg10=0.64 avg60=0.40 avg300=0.10 total=34054543
/sys/class/thermal/thermal_zone0/temp:61200
/sys/class/thermal/thermal_zone1/temp:88100
gpu 54 %, 31 %, 41.20 W, 2405 MHz, 63
at 512.25
/sys/bus/pci/devices/0000:01:00.0/aer_dev_nonfatal:TOTAL_ERR_NONFATAL 3
/proc/meminfo:MemTo"""


def test_a_ring_is_read_to_its_last_half_line() -> None:
    """Guards what a power cut leaves: the figures of each record with its time, the half line without harm."""
    one, other = parse_ring(Completed(0, RING))
    assert (one.at, one.watts, one.clock, one.gpu_heat, one.heat) == (1795302810.0, 41.2, 2405.0, 63.0, 88.1)
    assert one.memory["MemAvailable"] == 9669068 * 1024 and one.stall == {"some": 1.53, "full": 0.64}
    assert (other.at, other.pcie) == (1795302812.0, {"0000:01:00.0 NONFATAL": 3})
    assert "41 W, 2405 MHz, GPU 63 °C, board 88 °C" in table_of([one, other])


def test_a_clock_that_was_set_keeps_the_order() -> None:
    """Guards a ring of two files between which the clock went back by an hour."""
    text = "clock 9000 100.0\nat 110.0\nat 112.0\nclock 5414 114.0\nat 114.0\nat 116.0\n"
    assert [one.at for one in parse_ring(Completed(0, text))] == [5410.0, 5412.0, 5414.0, 5416.0]


@for_each("seed", range(60))
def test_any_bytes_are_read_without_an_error(seed: int) -> None:
    """Guards the incident: a damaged file costs its lines, never the page."""
    dice, text = Random(seed), RING * 3
    data = list(text)
    for _ in range(60):
        data[dice.randrange(len(data))] = chr(dice.randrange(1, 1000))
    found = parse_ring(Completed(0, "".join(data)))
    assert told_of("spark-1", found, 0.0) and table_of(found)


def minute(**last: object) -> list[RingRecord]:
    """Thirty quiet records and a last one."""
    quiet = {"watts": 60.0, "gpu_heat": 61.0, "heat": 70.0}
    memory = {"MemTotal": 120 * GIB, "MemAvailable": 20 * GIB}
    made = [RingRecord(1000.0 + 2 * n, memory=dict(memory), **quiet) for n in range(30)]  # type: ignore[arg-type]
    return [*made, RingRecord(1060.0, **{"memory": memory, **quiet, **last})]  # type: ignore[arg-type]


@for_each(
    "last, begins",
    [
        ({}, ""),
        ({"memory": {"MemTotal": 120 * GIB, "MemAvailable": GIB}}, "memory had run out: 1.0 GiB"),
        ({"stall": {"full": 44.0}}, "memory had run out"),
        ({"gpu_heat": 93.0}, "heat: the GPU had 93 °C"),
        ({"heat": 99.0}, "heat: the board had 99 °C"),
        ({"watts": 140.0}, "power: 140 W in the last record, 60 W before"),
        ({"watts": 80.0}, ""),
        ({"kernel": ["NVRM: Xid 79"]}, "the kernel's last line: NVRM: Xid 79"),
    ],
)
def test_a_minute_points_to_its_cause(last: dict[str, object], begins: str) -> None:
    """Guards each hint, and that a quiet minute claims nothing."""
    found = suggestions(minute(**last))
    assert found[0].startswith(begins) if begins else found == (), found
    told = told_of("spark-2", minute(**last), 1075.0)
    assert told.startswith("last record of spark-2, 15 s before the next boot by its own clock: ")
    assert ("nothing unusual: power that went, or a fault that left no trace" in told) == (not begins)


DAY = 86400.0


@for_each(
    "booted, unseen, gap",
    [
        (1075.0, 40.0, ", 15 s before the next boot: "),
        (1060.0 + DAY, 40.0, " (its clock was set meanwhile, so when the next boot began is unknown): "),
        (900.0, 40.0, " (its clock was set meanwhile, so when the next boot began is unknown): "),
        (900.0, None, " (its clock was set meanwhile, so when the next boot began is unknown): "),
        (1060.0 + DAY, DAY + 20.0, ", 24 h 00 min before the next boot: "),
        (1060.0 + DAY, None, ", 24 h 00 min before the next boot by its own clock: "),
    ],
)
def test_a_clock_set_while_the_node_was_off_is_no_duration(booted: float, unseen: float | None, gap: str) -> None:
    """Guards the incident against a day that never passed: another clock bounds how long the node was off."""
    told = told_of("spark-2", minute(), booted, unseen)
    assert told.startswith(f"last record of spark-2{gap}"), told


def test_without_a_record_nothing_is_claimed() -> None:
    """Guards a node whose disk kept nothing, and times that are not known."""
    assert told_of("spark-2", (), 5.0) == "no record of spark-2's last seconds"
    assert suggestions(()) == ()
    assert "before the next boot" not in told_of("spark-2", minute(), 0.0)
