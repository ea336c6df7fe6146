"""Large RDMA messages go over the fabric at 13 Gb/s: result rows of ib_write_bw, ib_read_bw and ib_send_bw with
12.5 to 14 Gb/s for messages of 16 KiB and more."""

from collections.abc import Iterator

from sparkwright.causes.cause import LogCause, Verdict
from sparkwright.domain.finding import Severity
from sparkwright.logscan.sign import LIKELY
from sparkwright.logscan.story import Row, Story

CAUSE = LogCause(
    code="LIVE006",
    key="nic-hotplug-power-cap",
    title="RDMA capped at 13 Gb/s: NIC hot-plugged",
    severity=Severity.WARN,
    why=(
        "a card that was attached while the node ran is held at that speed, whatever is tuned. The row has "
        "no name of its own, so it is read below its header."
    ),
    fix=(
        "on all nodes: sudo mv /etc/nvidia/cx7-hotplug-enabled /etc/nvidia/cx7-hotplug-enabled.off   "
        "# costs about 18 W",
        "shut down all nodes, plug the cable in, start them together; if it stays: mains power off for a minute",
    ),
    consequences=("nccl-ib-hca-not-pinned",),
)
MARKS = {
    "perftest in gigabits": r"#bytes\s+#iterations\s+BW peak\[Gb/sec\]",
    "perftest in megabytes": r"#bytes\s+#iterations\s+BW peak\[Mi?B/sec\]",
}
_LARGE = rb"^[ \t]*\d{5,}[ \t]+\d+[ \t]+[\d.]+[ \t]+"
ROWS = {
    "capped in gigabits": Row("perftest in gigabits", _LARGE + rb"1(?:2\.[5-9]|3\.\d)\d*[ \t]+[\d.]+[ \t]*$"),
    "capped in megabytes": Row("perftest in megabytes", _LARGE + rb"1[56]\d\d\.\d+[ \t]+[\d.]+[ \t]*$"),
}


def judge(stories: tuple[Story, ...]) -> Iterator[Verdict]:
    for rows in (story.marks.get(name) for story in stories for name in ROWS):
        if rows:
            yield Verdict(LIKELY, (rows.first, rows.last))
