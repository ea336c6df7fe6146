"""Large RDMA messages go over the fabric at 13 Gb/s.

Detects: result rows of ib_write_bw, ib_read_bw and ib_send_bw with 12.5 to 14 Gb/s for messages of 16 KiB and more.
Why: a card that was attached while the node ran is held at that speed, whatever is tuned. The row has no word of its
  own, so it is read below its header.
Evidence: the rows.
Remedy: boot both nodes with the cable in.
References: gb10.md B1 (`13.2 = hot-attached NIC`), E17
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Severity
from sparkwright.rules.log_rule import Row, Story, Verdict
from sparkwright.rules.sign import LIKELY

CODE = "LIVE006"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "RDMA is held at 13 Gb/s: the network card was attached while running"
CAUSE = "nic-hotplug-power-cap"
MARKS = {
    "perftest in gigabits": r"#bytes\s+#iterations\s+BW peak\[Gb/sec\]",
    "perftest in megabytes": r"#bytes\s+#iterations\s+BW peak\[Mi?B/sec\]",
}
_LARGE = rb"^[ \t]*\d{5,}[ \t]+\d+[ \t]+[\d.]+[ \t]+"
ROWS = {
    "capped in gigabits": Row("perftest in gigabits", _LARGE + rb"1(?:2\.[5-9]|3\.\d)\d*[ \t]+[\d.]+[ \t]*$"),
    "capped in megabytes": Row("perftest in megabytes", _LARGE + rb"1[56]\d\d\.\d+[ \t]+[\d.]+[ \t]*$"),
}
FIX = (
    "on all nodes: sudo mv /etc/nvidia/cx7-hotplug-enabled /etc/nvidia/cx7-hotplug-enabled.off   # costs about 18 W",
    "shut down all nodes, plug the cable in, start them together; if it stays: mains power off for a minute",
)
EXPLAINS = ("nccl-ib-hca-not-pinned",)


def judge(stories: tuple[Story, ...]) -> Iterator[Verdict]:
    for rows in (story.marks.get(name) for story in stories for name in ROWS):
        if rows:
            yield Verdict(LIKELY, (rows.first, rows.last))
