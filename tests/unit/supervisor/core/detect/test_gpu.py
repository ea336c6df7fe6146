"""The report of a GPU's figures."""

from sparkwright.domain.sample import GpuSample
from sparkwright.domain.unknown import Unknown
from sparkwright.supervisor.core.detect.gpu import Doing, GpuWatch
from unit.for_each import for_each
from unit.supervisor.core.detect.figures import IDLE, SPINNING, START, WEDGED, WORKING, sample

NA = Unknown("[N/A]", "nvidia-smi does not report it")


def looked(*readings: GpuSample | Unknown, working: bool = False) -> GpuWatch:
    watch = GpuWatch("spark-1")
    for number, reading in enumerate(readings):
        watch.sample(sample(START + 5 * number, reading), working, START + 5 * number)
    return watch


@for_each(
    "gpu, doing",
    [
        (IDLE, Doing.IDLE),
        (WORKING, Doing.WORKING),
        (SPINNING, Doing.SPINNING),
        (GpuSample(96.0, 0.0, 61.0, 2400.0, 70.0), Doing.WORKING),
        (GpuSample(96.0, NA, 18.0, 2400.0, 70.0), Doing.SPINNING),
        (GpuSample(96.0, 0.0, NA, 2400.0, 70.0), Doing.WORKING),
        (GpuSample(40.0, 0.0, 14.0, 2400.0, 70.0), Doing.WORKING),
        (GpuSample(), Doing.UNKNOWN),
        (NA, Doing.UNKNOWN),
    ],
)
def test_one_reading(gpu: GpuSample | Unknown, doing: Doing) -> None:
    """Busy at faint power spins; memory at 0 % reports nothing on a machine that has never shown another value."""
    assert looked(gpu).doing is doing


def test_its_own_usual_is_the_measure() -> None:
    """An H200's own figures: copying at 413 W; a kernel that waits on one SM, faint, and on all, without memory."""
    watch = looked(*[GpuSample(100.0, 100.0, 413.0, 1980.0, 60.0)] * 8, working=True)
    assert watch.usual_power == 413
    watch.sample(sample(START + 99, GpuSample(100.0, NA, 126.0, 1980.0, 60.0)), False, START + 99)
    assert watch.doing is Doing.SPINNING
    watch.sample(sample(START + 104, GpuSample(100.0, 0.0, 257.0, 1980.0, 60.0)), False, START + 104)
    assert watch.doing is Doing.SPINNING
    assert watch.summary() == "spark-1: GPU 100 % busy, memory 0 %, 257 W (usually 413 W), 1980 MHz"
    watch.sample(sample(START + 109, GpuSample(100.0, 9.0, 257.0, 1980.0, 60.0)), False, START + 109)
    assert watch.doing is Doing.WORKING


def test_a_reading_counts_once() -> None:
    """nvidia-smi that has stopped answering must not make a wedge of one reading."""
    watch = GpuWatch("spark-1")
    for number in range(20):
        one = sample(START, WEDGED)
        watch.sample(one, False, START + number)
    assert watch.wedge(0.0) is None
    assert watch.read_at == START


def test_a_clock_pinned_low_under_load_is_a_wedge() -> None:
    """Six readings: busy, below 1,400 MHz and 40 W, and nothing in between."""
    assert looked(*[WEDGED] * 5).wedge(0.0) is None
    found = looked(*[WEDGED] * 6).wedge(0.0)
    assert found is not None
    assert "cutting its power" in found.what
    assert "721 MHz" in found.evidence[0]
    assert looked(*[WEDGED] * 5, IDLE, WEDGED).wedge(0.0) is None
    assert looked(*[GpuSample(96.0, 50.0, 32.5, 2000.0, 60.0)] * 9).wedge(0.0) is None
    assert looked(*[GpuSample(0.0, 0.0, 4.0, 208.0, 40.0)] * 9).wedge(0.0) is None


def test_heat_is_reported_from_90_until_below_87() -> None:
    """Soaks stay at 86."""
    watch, told = GpuWatch("spark-1"), []
    for number, degrees in enumerate([86.0, 90.0, 88.0, 86.0, 89.0]):
        reading = GpuSample(90.0, 50.0, 80.0, 2200.0, degrees)
        watch.sample(sample(START + 5 * number, reading), False, START + 5 * number)
        told.append(watch.heat(0.0) is not None)
    assert told == [False, True, True, False, False]
