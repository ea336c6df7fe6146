"""The last seconds of a node before a boot that nobody ordered, and what they suggest."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median

from sparkwright.domain.units import duration, gib

SHOWN = 60.0  # seconds
_HOT_GPU, _HOT_BOARD = 90.0, 95.0
_STALLED, _LITTLE = 20.0, 0.02
_CLOCKS_APART = 30.0  # seconds: a record comes every two, a look every few
_JUMP, _LEAST_JUMP = 1.4, 40.0  # watts against the median of the minute


@dataclass(slots=True)
class RingRecord:
    """One record. at: seconds since the epoch, 0 if unknown; watts, MHz, °C; memory: bytes by /proc/meminfo's names;
    stall: percent of the last 10 s by `some` and `full`; pcie: counters of errors by device and kind, only where not 0.
    """

    at: float
    busy: float | None = None
    watts: float | None = None
    clock: float | None = None
    gpu_heat: float | None = None
    heat: float | None = None
    memory: dict[str, int] = field(default_factory=dict)
    stall: dict[str, float] = field(default_factory=dict)
    pcie: dict[str, int] = field(default_factory=dict)
    kernel: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Figures in a row; what was not read is left out."""
        available = self.memory.get("MemAvailable")
        parts = (
            (self.watts, "{:.0f} W"),
            (self.clock, "{:.0f} MHz"),
            (self.gpu_heat, "GPU {:.0f} °C"),
            (self.heat, "board {:.0f} °C"),
            (self.busy, "busy {:.0f} %"),
            (self.stall.get("full"), "all waited for memory {:.0f} %"),
        )
        told = [form.format(value) for value, form in parts if value is not None]
        return ", ".join([*told, *([f"{gib(available)} available"] if available is not None else [])])


def last_of(moments: Sequence[RingRecord]) -> tuple[RingRecord, ...]:
    """The samples of the last minute."""
    end = max((one.at for one in moments), default=0.0)
    return tuple(one for one in moments if one.at >= end - SHOWN)


def suggestions(moments: Sequence[RingRecord]) -> tuple[str, ...]:
    """Hints of what ended it, from the last minute; () if all was as usual. They are no proof."""
    return tuple(_hints(last_of(moments)))


def _hints(last: Sequence[RingRecord]) -> Iterator[str]:
    final = next((one for one in reversed(last) if one.memory or one.watts is not None), None)
    if final is None:
        return
    total, available = final.memory.get("MemTotal", 0), final.memory.get("MemAvailable")
    stalled = final.stall.get("full", 0.0)
    if (total and available is not None and available < _LITTLE * total) or stalled >= _STALLED:
        yield f"memory had run out: {gib(available or 0)} available, all tasks waited {stalled:.0f} % of the time"
    heats = [("GPU", final.gpu_heat, _HOT_GPU), ("board", final.heat, _HOT_BOARD)]
    for what, heat, limit in heats:
        if heat is not None and heat >= limit:
            yield f"heat: the {what} had {heat:.0f} °C"
    watts = [one.watts for one in last if one.watts is not None]
    if len(watts) > 2 and watts[-1] >= max(_JUMP * median(watts[:-1]), median(watts[:-1]) + _LEAST_JUMP):
        yield f"power: {watts[-1]:.0f} W in the last record, {median(watts[:-1]):.0f} W before"
    if grown := [name for name, count in final.pcie.items() if count > last[0].pcie.get(name, count)]:
        yield f"PCIe errors grew: {', '.join(grown)}"
    if lines := [line for one in last for line in one.kernel]:
        yield f"the kernel's last line: {lines[-1][:200]}"


def told_of(node: str, moments: Sequence[RingRecord], booted: float, unseen: float | None = None) -> str:
    """One sentence for the incident. booted: when the next boot began by the node's clock, 0 if unknown.

    unseen: seconds by another node's clock in which the node was not seen, None if unknown. The node cannot have been
    off for longer, so that a clock which was set meanwhile is noticed.
    """
    last = last_of(moments)
    final = next((one for one in reversed(last) if one.text), None)
    if final is None:
        return f"no record of {node}'s last seconds"
    gap = _time_off(final.at, booted, unseen)
    found = "; ".join(suggestions(moments)) or "nothing unusual: power that went, or a fault that left no trace"
    return f"last record of {node}{gap}: {final.text}. It suggests: {found}"


def _time_off(last: float, booted: float, unseen: float | None) -> str:
    """The time from the last record to the next boot; without another clock it is only as good as the node's."""
    if last <= 0 or booted <= 0:
        return ""
    off = booted - last
    if off < -_CLOCKS_APART or (unseen is not None and off > unseen + _CLOCKS_APART):
        return " (its clock was set meanwhile, so when the next boot began is unknown)"
    if off <= 0:
        return ""
    return f", {duration(off)} before the next boot" + ("" if unseen is not None else " by its own clock")


def table_of(moments: Sequence[RingRecord]) -> str:
    """The last minute as lines, oldest first; seconds before the last one."""
    last = last_of(moments)
    end = max((one.at for one in last), default=0.0)
    lines = []
    for one in last:
        lines.append(f"{one.at - end:+7.1f} s  {one.text}")
        lines += [f"           PCIe {name}: {count}" for name, count in one.pcie.items()]
        lines += [f"           kernel: {line}" for line in one.kernel]
    return "\n".join(lines) + "\n"
