"""The output of ib_write_bw and nvidia-smi during a measurement, as `check --deep` reads it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkwright.domain.command import Completed
from sparkwright.domain.fabric_facts import Clocks, ClockSample, Skipped
from sparkwright.domain.facts import Unknown
from sparkwright.facts.deep_check import NO_ROW, bandwidth, clocks

HEAD = """---------------------------------------------------------------------------------------
                    RDMA_Write BW Test
 Dual-port       : OFF\t\tDevice         : rocep1s0f0
 Number of qps   : 4\t\tTransport type : IB
 Mtu             : 4096[B]
 Link type       : Ethernet
 GID index       : 3
 local address: LID 0000 QPN 0x0127 PSN 0x3a1c2b RKey 0x1ff VAddr 0x007f2a5c
 GID: 00:00:00:00:00:00:00:00:00:00:255:255:10:40:00:01
---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
"""


def perftest_row(average: str, more: str = "") -> str:
    return f" 65536      1059332          0.00               {average}              0.176557{more}\n"


@pytest.mark.parametrize(
    ("text", "gbit"),
    [
        (HEAD + perftest_row("97.41"), 97.41),
        (HEAD + perftest_row("13.22", "         5.07"), 13.22),
        (HEAD.replace("[Mpps]", "[Mpps]    CPU_Util[%]") + perftest_row("92.57", "     0.9") + "-----\n", 92.57),
        (HEAD + perftest_row("1.00") + perftest_row("96.00"), 96.0),
    ],
)
def test_average_is_read(text: str, gbit: float) -> None:
    """Guards the column of the average, with and without the processor's share, the last row counting."""
    assert bandwidth(Completed(0, text)) == gbit


def test_header_without_a_row_is_a_wrong_index_whatever_the_exit_code() -> None:
    """Guards the known trap: a wrong GID index gives header and exit code 0, and never a figure."""
    found = bandwidth(Completed(0, HEAD))
    assert isinstance(found, Unknown)
    assert found.why == NO_ROW


@pytest.mark.parametrize(
    ("done", "raw", "why"),
    [
        (
            Completed(1, " Couldn't connect to 10.40.0.2:18515\n Unable to open file descriptor\n"),
            "Couldn't connect to 10.40.0.2:18515",
            "ib_write_bw exited 1",
        ),
        (
            Completed(1, HEAD + " Failed to modify QP 306 to RTR\n Unable to Connect the HCA's through the link\n"),
            "Failed to modify QP 306 to RTR",
            "ib_write_bw exited 1",
        ),
        (Completed(124, HEAD), HEAD.splitlines()[-1].strip(), "no answer in time: something lets ping through"),
        (
            Completed(0, HEAD.replace("Gb/sec", "MB/sec") + perftest_row("11600.00")),
            perftest_row("11600.00").strip(),
            "exited 0",
        ),
        (Completed(127, "", "sh: ib_write_bw: not found"), "sh: ib_write_bw: not found", "exited 127"),
    ],
)
def test_trouble_keeps_the_tools_own_words(done: Completed, raw: str, why: str) -> None:
    """Guards that what went wrong is reported with its line, and that figures in another unit are not taken."""
    found = bandwidth(done)
    assert isinstance(found, Unknown)
    assert found.raw == raw
    assert why in found.why


def test_samples_are_read() -> None:
    """Guards the cells with their units, and that a row with a cell that reports nothing is left out."""
    text = (
        "@@ load\ntorch on the node\n@@ samples\n2411 MHz, 45.10 W, 96 %\n[N/A], 4.11 W, 0 %\n721 MHz, 12.61 W, 96 %\n"
    )
    wanted = (ClockSample(2411.0, 45.1, 96.0), ClockSample(721.0, 12.61, 96.0))
    assert clocks(Completed(0, text), "spark-1") == Clocks("spark-1", "torch on the node", wanted)


@pytest.mark.parametrize(
    ("done", "why"),
    [
        (Completed(0, "@@ skipped\nno torch on the node, and no image with an engine\n"), "no torch on the node"),
        (Completed(0, "@@ load\nx\n@@ skipped\nRuntimeError: CUDA out of memory\n"), "CUDA out of memory"),
        (Completed(0, "@@ load\nx\n@@ samples\n"), "nvidia-smi printed no clocks"),
        (Completed(1, "", "sh: out of memory\nmore"), "sh: out of memory"),
    ],
)
def test_without_samples_there_is_a_reason(done: Completed, why: str) -> None:
    """Guards that a test which did not run is not taken for one that found nothing."""
    found = clocks(done, "spark-1")
    assert isinstance(found, Skipped)
    assert why in found.why


@settings(max_examples=60, deadline=None, derandomize=True)
@given(text=st.text(max_size=200), code=st.sampled_from([0, 1, 124, 127]))
def test_no_text_makes_the_parsers_raise(text: str, code: int) -> None:
    """Guards that odd output is Unknown or a reason, never an exception."""
    assert not isinstance(bandwidth(Completed(code, HEAD + text, text)), int)
    assert clocks(Completed(code, "@@ samples\n" + text, text), "n") is not None
