"""Lines of the sampling script as samples."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkwright.domain.command import Completed
from sparkwright.domain.facts import Memory
from sparkwright.domain.sample import GpuSample, PortTraffic, Sample
from sparkwright.domain.unknown import NOT_ASKED, Unknown
from sparkwright.facts.sample import Samples, parse

MEMINFO = """MemTotal:       127601452 kB
MemFree:         4557560 kB
MemAvailable:    9669068 kB
Buffers:           13252 kB
Cached:          4694160 kB
SwapCached:            0 kB
AnonPages:       1712244 kB
Slab:             998048 kB
KernelStack:       21456 kB
PageTables:        38120 kB
SwapTotal:      16777212 kB
SwapFree:       11777212 kB
"""
BLOCK = f"""@@ sample
time 1795302869.852599990
boot 4e47b63f-f247-403e-a1b8-51293dd2153a:24
{MEMINFO}pswpin 1200
pswpout 34
oom_kill 2
some avg10=1.53 avg60=0.87 avg300=0.22 total=58761459
full avg10=0.64 avg60=0.40 avg300=0.10 total=34054543
roceP2p1s0f0/ports/1/counters/port_xmit_data:77
roceP2p1s0f0/ports/1/counters/port_rcv_data:78
rocep1s0f0/ports/1/counters/port_xmit_data:123456789012
rocep1s0f0/ports/1/counters/port_rcv_data:223456789012
rocep1s0f1/ports/1/counters/port_xmit_data:5
compilers 3
@@ end
"""


def read(text: str, into: Samples | None = None) -> list[Sample]:
    samples = into or Samples()
    return [found for line in text.splitlines() if (found := samples.feed(line))]


def test_a_block_is_a_sample() -> None:
    """Every figure has its place; a port without both counters is left out."""
    (found,) = read(BLOCK)
    assert found.at == 1795302869.85259999
    assert found.boot == "4e47b63f-f247-403e-a1b8-51293dd2153a:24"
    assert isinstance(found.memory, Memory)
    assert found.memory.available == 9669068 * 1024
    assert found.memory.swap_free == 11777212 * 1024
    assert (found.swap_pages, found.oom_kills, found.compilers) == (1234, 2, 3)
    assert (found.stall_some, found.stall_full) == (1.53, 0.64)
    assert found.ports == (
        PortTraffic("roceP2p1s0f0/1", 77, 78),
        PortTraffic("rocep1s0f0/1", 123456789012, 223456789012),
    )
    assert (found.gpu, found.kernel) == (NOT_ASKED, ())


def test_lines_of_the_background_come_with_the_next_block() -> None:
    """The lines wait, also in the middle of one; kernel lines are reported once, the GPU's reading stays with its
    time."""
    head, tail = BLOCK[:200], BLOCK[200:]
    head, rest = head.rpartition("\n")[0] + "\n", head.rpartition("\n")[2]
    text = f"gpu 94 %, 58 %, 62.41 W, 2405 MHz, 74\nkernel one\n{head}kernel two\npids 71 4711 \n{rest}{tail}{BLOCK}"
    first, second = read(text.replace("869.85", "900.00", 0))
    assert first.gpu == GpuSample(94.0, 58.0, 62.41, 2405.0, 74.0, (71, 4711))
    assert (first.kernel, second.kernel) == (("one", "two"), ())
    assert second.gpu == first.gpu
    assert second.gpu_at == first.at


def test_a_gpu_that_stopped_answering_keeps_its_old_time() -> None:
    """A reader of `gpu_at` sees that the reading is old."""
    samples = Samples()
    (first,) = read("gpu 94 %, 58 %, 62.41 W, 2405 MHz, 74\n" + BLOCK, samples)
    (later,) = read(BLOCK.replace("time 1795302869", "time 1795302969"), samples)
    assert later.gpu_at == first.at
    assert later.at - later.gpu_at == 100


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("gpu! nvidia-smi is not installed", "there is no GPU to ask"),
        ("gpu Unable to determine the device handle for GPU0: Unknown Error", "nvidia-smi gave no row"),
        ("gpu No devices were found", "nvidia-smi gave no row"),
    ],
)
def test_what_is_no_reading_is_unknown(line: str, why: str) -> None:
    """The reason is the program's own report."""
    (found,) = read(f"{line}\n{BLOCK}")
    assert isinstance(found.gpu, Unknown)
    assert found.gpu.why == why
    assert found.gpu.raw == line.partition(" ")[2]


def test_cells_that_a_gb10_does_not_report_are_unknown_alone() -> None:
    """The others count."""
    (found,) = read("gpu 96 %, [N/A], 14.02 W, 2411 MHz, 52\n" + BLOCK)
    assert isinstance(found.gpu, GpuSample)
    assert isinstance(found.gpu.memory_busy, Unknown)
    assert (found.gpu.utilization, found.gpu.power) == (96.0, 14.02)


def test_who_may_not_read_the_kernel_log_is_named() -> None:
    """The user is named in every sample from then on."""
    found = read(f"{BLOCK}kernel! this user may read neither the journal nor dmesg\n{BLOCK}")
    assert [one.kernel_blind for one in found] == ["", "this user may read neither the journal nor dmesg"]


def test_missing_counters_are_unknown_not_zero() -> None:
    """A kernel without swap or pressure, a memory that was cut off."""
    (found,) = read("@@ sample\ntime 5.5\nboot :\nMemTotal: 5 kB\n@@ end\n")
    for value in (found.memory, found.swap_pages, found.oom_kills, found.stall_full):
        assert isinstance(value, Unknown)
    assert (found.ports, found.compilers) == ((), 0)


def test_a_stream_that_begins_in_the_middle_waits_for_a_whole_block() -> None:
    """Half a block is none, and neither is one without a time."""
    assert read(BLOCK[300:]) == []
    assert read("@@ sample\nboot x\n@@ end\n") == []
    assert len(read(BLOCK[300:] + BLOCK + BLOCK[:300])) == 1


def test_once_is_parsed_by_the_same_words() -> None:
    """The last block of the answer; Unknown without one."""
    found = parse(Completed(0, "gpu 1 %, 0 %, 5 W, 200 MHz, 40\n" + BLOCK))
    assert isinstance(found, Sample)
    assert isinstance(found.gpu, GpuSample)
    assert isinstance(parse(Completed(255, "", "Connection closed")), Unknown)


LINES = (
    st.sampled_from(BLOCK.splitlines()) | st.text(max_size=30).map(lambda text: f"gpu {text}") | st.text(max_size=30)
)


@given(st.lists(LINES, max_size=40))
def test_no_line_makes_it_raise(lines: list[str]) -> None:
    """No order and no text of lines makes it raise."""
    samples = Samples()
    for line in lines:
        samples.feed(line)


def test_addresses_of_a_node_and_never_part_of_a_long_table() -> None:
    """Guards against an address that seems lost because a table was cut off."""
    rows = "".join(f"/proc/net/fib_trie:           |-- 10.0.0.{n}\n" for n in range(3))
    (found,) = read(BLOCK.replace("compilers", f"{rows}/proc/net/fib_trie:     |-- x\ncompilers"))
    assert found.addresses == {"10.0.0.0", "10.0.0.1", "10.0.0.2"}
    (found,) = read(BLOCK.replace("compilers", f"{rows * 67}compilers"))
    assert found.addresses == frozenset()
