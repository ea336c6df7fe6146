"""What a rail really moves.

Detects: `check --deep` sent for three seconds over each rail with ib_write_bw: below 90 Gb/s is too slow, about 13 is
  the cap of a NIC that was attached while the machine ran; no result row at all is a wrong GID index or a firewall.
Why: the link's state, ping and iperf look healthy in each of these cases; the engine is slow or hangs at its start.
Evidence: average Gb/s of each rail, or ib_write_bw's own words.
Remedy: by the figure.
References: https://github.com/guardkit/dgx-spark (13.2 before, 98.03 Gb/s a rail after the reboot with the cable in);
  NVIDIA's DGX Spark playbooks (189.85 Gb/s for both)
"""

from collections.abc import Iterator

from sparkwright.domain.facts import Unknown
from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.measured import Bandwidth
from sparkwright.rules.rule import Context

CODE = "DEEP001"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "a rail moves less than it should"

_GOOD = 90.0
_CAPPED = (8.0, 20.0)
_REBOOT = "reboot all nodes together with the cable in; if that does not help, a minute without mains power"
_ELSE = "look at MTU (NET002, NET003), firmware (RDMA005, RDMA006) and PCIe (RDMA010), and at what else uses the link"
_NOTHING = "let RDMA through the firewall on each rail; bring the netdev down and up if its GID is missing"


def check(context: Context) -> Iterator[Finding]:
    for one in context.measured.bandwidths if context.measured else ():
        cause, remedy = _judged(one.gbit)
        yield Finding(
            CODE,
            SEVERITY if remedy else Severity.INFO,
            f"{one.source}, {one.target}",
            _title(one),
            f"ib_write_bw {one.device} -> {one.peer_device}: {_figure(one.gbit)}",
            cause,
            remedy,
        )


def _judged(gbit: float | Unknown) -> tuple[str, str]:
    """Cause and remedy; no remedy where all is well."""
    if isinstance(gbit, Unknown):
        return gbit.why, _NOTHING
    if gbit >= _GOOD:
        return "a rail of a healthy link moves 92 to 111 Gb/s", ""
    if _CAPPED[0] <= gbit <= _CAPPED[1]:
        return "about 13 Gb/s is the power cap of a NIC that was attached while the machine ran", _REBOOT
    return f"a rail of a healthy link moves {_GOOD:g} Gb/s or more", _ELSE


def _title(one: Bandwidth) -> str:
    if isinstance(one.gbit, Unknown):
        return f"nothing came over {one.device}"
    return f"{one.device} moves {one.gbit:.0f} Gb/s"


def _figure(gbit: float | Unknown) -> str:
    return f"{gbit.raw or 'no answer'}" if isinstance(gbit, Unknown) else f"{gbit:.2f} Gb/s"
