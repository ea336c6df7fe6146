"""A driver of the 580 branch from before 580.142.

Detects: kernel module 580.x older than 580.142 on a GB10.
Why: good results that are on record are from 580.142 and later; 580.126.09 was seen together with a link at 13 Gb/s,
  which others trace to a hot-attached cable.
Evidence: the version.
Remedy: update DGX OS.
References: https://conselara.dev/tags/vllm/ (580.142); https://github.com/thatcooperguy/NVCheckup
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.driver import driver_versions
from sparkwright.rules.remedies import DASHBOARD
from sparkwright.rules.rule import Context

CODE = "DRV016"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "an early driver of the 580 branch"

_GOOD = 142


def check(context: Context) -> Iterator[Finding]:
    for node, version, major in driver_versions(context):
        minor = version.split(".")[1]
        if major == 580 and int(minor) < _GOOD:
            yield Finding(
                CODE,
                SEVERITY,
                node,
                f"driver {version} is an early one of its branch",
                f"kernel module {version}; figures on record are from 580.142 and later",
                "the system was not updated since it was set up",
                f"run the update of {DASHBOARD}, and reboot all nodes together",
            )
