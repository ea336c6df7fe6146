"""Checks of what `check --deep` has measured."""

from collections.abc import Iterator

from sparkwright.domain.check import Check, Context, Found, explained
from sparkwright.domain.fabric_facts import Clocks, DeepMeasurements, Skipped
from sparkwright.domain.facts import Unknown
from sparkwright.domain.finding import INFO, OVERRIDE, WARN

_HEALTHY_GBIT = 90.0
_CAPPED_GBIT = (8.0, 20.0)
_REBOOT = "reboot all nodes together with the cable in; if that does not help, a minute without mains power"
_SLOW_OTHERWISE = (
    "inspect MTU (NET002, NET003), firmware (RDMA005, RDMA006) and PCIe (RDMA010), and what else uses the link"
)
_NOTHING = "let RDMA through the firewall on each rail; set the netdev down and up if its GID is missing"
_LOADED, _SLOW_MHZ, _LITTLE_WATT = 90.0, 1400.0, 40.0


def bandwidth(context: Context) -> Iterator[Found]:
    for one in context.measured.bandwidths if context.measured else ():
        cause, remedy = _judged(one.gbit)
        if isinstance(one.gbit, Unknown):
            figure, title = one.gbit.raw or "no answer", f"nothing came over {one.device}"
        else:
            figure, title = f"{one.gbit:.2f} Gb/s", f"{one.device} moves {one.gbit:.0f} Gb/s"
        yield Found(
            f"ib_write_bw {one.device} -> {one.peer_device}: {figure}",
            title=title,
            cause=cause,
            fix=remedy,
            severity=WARN if remedy else INFO,
            subject=f"{one.source}, {one.target}",
        )


def _judged(gbit: float | Unknown) -> tuple[str, str]:
    """Cause and remedy; no remedy where all is well."""
    if isinstance(gbit, Unknown):
        return gbit.why, _NOTHING
    if gbit >= _HEALTHY_GBIT:
        return "a rail of a healthy link moves 92 to 111 Gb/s", ""
    if _CAPPED_GBIT[0] <= gbit <= _CAPPED_GBIT[1]:
        return "about 13 Gb/s is the power cap of a NIC that was attached while the machine ran", _REBOOT
    return f"a rail of a healthy link moves {_HEALTHY_GBIT:g} Gb/s or more", _SLOW_OTHERWISE


def clocks_stuck(context: Context) -> Iterator[Found]:
    for clocks in context.measured.clocks if context.measured else ():
        busy = tuple(sample for sample in clocks.samples if sample.utilization >= _LOADED)
        if busy:
            wedged = len(busy) == len(clocks.samples) and all(
                s.sm_mhz < _SLOW_MHZ and s.power_w < _LITTLE_WATT for s in busy
            )
            yield _finding(clocks, wedged)


def _finding(clocks: Clocks, wedged: bool) -> Found:
    low, high = min(s.sm_mhz for s in clocks.samples), max(s.sm_mhz for s in clocks.samples)
    power = max(s.power_w for s in clocks.samples)
    return Found(
        f"{len(clocks.samples)} samples, {clocks.load}: SM {low:.0f} to {high:.0f} MHz, up to {power:.0f} W",
        title=f"GPU stuck at {high:.0f} MHz under load" if wedged else f"GPU runs at up to {high:.0f} MHz under load",
        cause="the power controller holds the clock, without a throttle reason"
        if wedged
        else "a healthy GPU runs at 2200 to 2500 MHz and 30 to 60 W",
        fix=f"shut {clocks.node} down, take the wall plug out for a minute, start it again" if wedged else "",
        severity=OVERRIDE if wedged else INFO,
        subject=clocks.node,
    )


def not_measured(context: Context) -> Iterator[Found]:
    for one in _all(context.measured) if context.measured else ():
        yield Found(one.why, title=f"{one.what}: not measured", fix=_remedy(one.why), subject=one.subject)


def _all(measured: DeepMeasurements) -> Iterator[Skipped]:
    yield from measured.skipped
    for clocks in measured.clocks:
        highest = max(sample.utilization for sample in clocks.samples)
        if highest < _LOADED:
            yield Skipped("clocks under load", clocks.node, f"{clocks.load}: the GPU was at {highest:.0f} % at most")


def _remedy(why: str) -> str:
    if "ib_write_bw" in why:
        return "sudo apt install perftest   # on every node"
    return "sparkwright down, then sparkwright check --deep" if "runs there" in why else ""


CHECKS = explained(
    __file__,
    Check("DEEP001", WARN, "RDMA bandwidth below target", bandwidth),
    Check("DEEP002", OVERRIDE, "GPU clock stuck under load", clocks_stuck),
    Check("DEEP003", INFO, "measurement skipped", not_measured),
)
