"""The link goes down again and again, or loses packets.

Detects: an ACTIVE port that counts five or more losses of its link, or a thousand or more retransmissions for a
  packet out of sequence (our own lines: no source gives any; a reboot of the peer counts one or two losses).
Why: connections that are up survive a short loss, the next start may not: the GID table is renumbered each time.
Evidence: the counters since boot.
Remedy: seat the cable, try another; look at the peer's power.
References: https://github.com/bytebunkerlabs/dgx-spark-serve
"""

from collections.abc import Iterator

from sparkwright.domain.fabric_facts import RdmaDevice
from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.fabric import nics, rails
from sparkwright.rules.rule import Context

CODE = "RDMA011"
STATUS = "preview"
SEVERITY = Severity.INFO
TITLE = "the link is not steady"

_MANY = {"link_downed": 5, "symbol_error": 1000, "out_of_sequence": 1000, "packet_seq_err": 1000}


def check(context: Context) -> Iterator[Finding]:
    for facts, nic in nics(context) if not context.recipe else ():
        active = {rail.port.device for rail in rails(facts)}
        for device in nic.devices:
            counted = _counted(device) if device.name in active else ""
            if counted:
                yield Finding(
                    CODE,
                    SEVERITY,
                    facts.node,
                    f"{device.name} counts errors",
                    f"since boot: {counted}",
                    "a cable that is not well seated, or a peer that comes and goes",
                    "seat the cable at both ends and compare the counters after a run: "
                    f"grep . /sys/class/infiniband/{device.name}/ports/1/*counters/*",
                )


def _counted(device: RdmaDevice) -> str:
    return ", ".join(
        f"{name} {device.counters[name]}" for name, many in _MANY.items() if device.counters.get(name, 0) >= many
    )
