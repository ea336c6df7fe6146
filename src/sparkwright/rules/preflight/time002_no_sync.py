"""The node's clock follows no time source.

Detects: timedatectl says that the clock is not synchronized.
Why: it drifts: ranks' logs cannot be put in order, and certificates fail once it is off by minutes.
Evidence: timedatectl's two properties.
Remedy: turn synchronization on; where it is on, reach a time server.
References: timedatectl(1).
"""

from collections.abc import Iterator

from sparkwright.domain.facts import Unknown
from sparkwright.domain.finding import Finding, Severity
from sparkwright.remote import repair
from sparkwright.rules.reading import known, nodes
from sparkwright.rules.rule import Context

CODE = "TIME002"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the node's clock follows no time source"


def check(context: Context) -> Iterator[Finding]:
    for facts in nodes(context):
        times = known(facts.times)
        if times and times.synchronized is False:
            off = times.ntp is False
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                "the clock follows no time source",
                f"timedatectl: NTPSynchronized=no, NTP={_word(times.ntp)}",
                "synchronization is off" if off else "no time server was reached since boot",
                "sudo timedatectl set-ntp true"
                if off
                else "timedatectl timesync-status; a firewall may hold back UDP 123",
                repair.ntp_fix(facts.node) if off else None,
            )


def _word(on: bool | Unknown) -> str:
    return "not told" if isinstance(on, Unknown) else "yes" if on else "no"
