"""Checks of the nodes' clocks."""

from collections.abc import Iterator
from itertools import combinations

from sparkwright.checks.reading import nodes, offset, per_node
from sparkwright.domain.check import Check, Context, Found, explained
from sparkwright.domain.facts import NodeFacts, Unknown
from sparkwright.domain.finding import WARN
from sparkwright.domain.unknown import known
from sparkwright.remote import repair

_APART = 2.0


def clock_skew(context: Context) -> Iterator[Found]:
    for one, other in combinations(nodes(context), 2):
        first, second = offset(one), offset(other)
        if first is None or second is None:
            continue
        gap, ahead = max((first[0] - second[1], one.node), (second[0] - first[1], other.node))
        if gap >= _APART:
            yield Found(f"{ahead} is ahead by {gap:.0f} s or more", subject=f"{one.node}, {other.node}")


def clock_unsynchronized(facts: NodeFacts) -> Iterator[Found]:
    times = known(facts.times)
    if times and times.synchronized is False:
        off = times.ntp is False
        yield Found(
            f"timedatectl: NTPSynchronized=no, NTP={_word(times.ntp)}",
            cause="synchronization is off" if off else "no time server was reached since boot",
            fix="sudo timedatectl set-ntp true"
            if off
            else "timedatectl timesync-status; a firewall may hold back UDP 123",
            repair=repair.ntp_fix(facts.node) if off else None,
        )


def _word(on: bool | Unknown) -> str:
    return "unknown" if isinstance(on, Unknown) else "yes" if on else "no"


_OFF = 60.0


def clock_off(facts: NodeFacts) -> Iterator[Found]:
    between = offset(facts)
    gap = max(between[0], -between[1]) if between else 0.0
    if between and gap >= _OFF:
        yield Found(f"{'ahead' if between[0] > 0 else 'behind'} by {gap:.0f} s or more")


CHECKS = explained(
    __file__,
    Check("TIME001", WARN, "clock skew between nodes", clock_skew),
    Check("TIME002", WARN, "clock is not synchronized", per_node(nodes, clock_unsynchronized)),
    Check("TIME003", WARN, "clock skew between node and client", per_node(nodes, clock_off)),
)
