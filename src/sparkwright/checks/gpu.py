"""Checks of the GPU."""

import re
from collections.abc import Iterator

from sparkwright.checks import reading
from sparkwright.domain.check import Check, Context, Found, explained
from sparkwright.domain.facts import NOT_ASKED, GpuProcess, NodeFacts, Unknown
from sparkwright.domain.finding import INFO, OVERRIDE, WARN, Fix
from sparkwright.domain.units import MIB, gib
from sparkwright.domain.unknown import known_or_none
from sparkwright.remote import repair

# Desktops and monitors hold a few tens of MiB.
_WORTH_TELLING = 256 * MIB
_GRAVE = {
    43: "a program was stopped after a fault on the GPU; on GB10 mostly too much memory at a long context",
    48: "an error in memory that could not be corrected",
    79: "the GPU has fallen off the bus",
    94: "an error in memory that one program had to end for",
    95: "an error in memory that could not be contained",
    119: "the GPU's firmware did not answer",
    120: "the GPU's firmware failed",
    140: "an error in memory that could not be corrected",
    154: "the GPU asks for a reset or a reboot",
}
_ENDS_ONE_PROGRAM = (43, 94)
_XID = re.compile(r"Xid \([^)]*\): ([0-9]{1,4})\b", re.ASCII)
_BUSY_PERCENT, _SLOW_MHZ, _FAINT_WATT = 90, 1400, 40
_GPU_HOT = 90
_BOARD_HOT = 93.0
_THERMAL = re.compile(
    r"critical temperature|thermal (emergency|shutdown|trip)|temperature above threshold", re.IGNORECASE
)


def gpu_missing(context: Context) -> Iterator[Found]:
    for facts in context.facts.values():
        needed = any(spec.gpu for spec in reading.specs_on(context, facts.node)) and not reading.simulated(context)
        if needed and not facts.gpus and facts.gpus != NOT_ASKED:
            why = f": {facts.gpus.raw or facts.gpus.why}" if isinstance(facts.gpus, Unknown) else " lists no GPU"
            yield Found(f"nvidia-smi{why}", subject=facts.node)


def gpu_in_use(context: Context) -> Iterator[Found]:
    for facts in context.facts.values():
        found = _foreign(facts) if reading.gpu_may_be_used(context, facts.node) else []
        if found:
            names = dict.fromkeys(process.name.rpartition("/")[2] or process.name for process in found)
            yield Found(
                ", ".join(f"{p.name} (pid {p.pid}) {_size(p)}" for p in found),
                title=f"GPU memory in use by {', '.join(names)}",
                fix=f"stop it: sudo kill {' '.join(str(p.pid) for p in found)}   # first see whose it is: ps -fp PID",
                subject=facts.node,
            )


def _foreign(facts: NodeFacts) -> list[GpuProcess]:
    ours = reading.running(facts)
    if ours is None or any(not rank.simulated for rank in ours):
        return []
    listed = known_or_none(facts.gpu_processes) or ()
    return [p for p in listed if not isinstance(p.used, int) or p.used >= _WORTH_TELLING]


def _size(process: GpuProcess) -> str:
    return gib(process.used) if isinstance(process.used, int) else "unknown size"


def other_gpu_model(facts: NodeFacts) -> Iterator[Found]:
    gpus, identity = known_or_none(facts.gpus), known_or_none(facts.identity)
    if gpus and not reading.is_gb10(facts):
        yield Found(
            f"nvidia-smi: {gpus[0].name}, compute capability {known_or_none(gpus[0].compute_capability) or 'unknown'}"
            + (f"; uname -m: {identity.arch}" if identity else ""),
            title=f"GPU is not a GB10: {gpus[0].name}",
        )


def fatal_xid(context: Context) -> Iterator[Found]:
    for facts, found in reading.kernel_notes(context, _XID):
        for note in found:
            match = _XID.search(note.text)
            number = int(match[1]) if match else 0
            if number in _GRAVE and reading.gpu_may_be_used(context, facts.node):
                mild = number in _ENDS_ONE_PROGRAM
                yield Found(
                    reading.quoted((note,)),
                    title=f"fatal Xid {number} since boot",
                    cause=_GRAVE[number],
                    fix="see the engine's log of that time, and lower serving.memory_fraction"
                    if mild
                    else "sudo systemctl reboot --no-block; if it comes again, shut down and cut power for a minute",
                    severity=WARN if mild else OVERRIDE,
                    subject=facts.node,
                )


def power_wedge(context: Context) -> Iterator[Found]:
    for facts in reading.gb10_nodes(context):
        for gpu in known_or_none(facts.gpus) or ():
            busy, clock, power = (
                known_or_none(gpu.utilization),
                known_or_none(gpu.sm_clock_mhz),
                known_or_none(gpu.power_w),
            )
            if busy is None or clock is None or power is None:
                continue
            if busy >= _BUSY_PERCENT and clock < _SLOW_MHZ and power < _FAINT_WATT:
                yield Found(
                    f"nvidia-smi: {busy:g} % busy at {clock:g} MHz and {power:g} W; expected 2200-2500 MHz and 30-60 W",
                    subject=facts.node,
                )


def gpu_hot(facts: NodeFacts) -> Iterator[Found]:
    degrees = max(
        (t for gpu in known_or_none(facts.gpus) or () if (t := known_or_none(gpu.temperature_c)) is not None),
        default=0.0,
    )
    if degrees >= _GPU_HOT:
        evidence = f"nvidia-smi: {degrees:g} °C; up to 86 °C is normal under load"
        yield Found(evidence, title=f"GPU is at {degrees:g} °C", repair=_capped(facts))


def board_hot(facts: NodeFacts) -> Iterator[Found]:
    board = known_or_none(facts.board)
    degrees = board.zones.get("acpitz", 0.0) if board else 0.0
    if degrees >= _BOARD_HOT:
        yield Found(
            f"/sys/class/thermal, hottest acpitz zone: {degrees:g} °C; it trips near 95 °C",
            title=f"board is at {degrees:g} °C",
            repair=_capped(facts),
        )


def _capped(facts: NodeFacts) -> Fix | None:
    """None where the cap is there, and where the GPU may be another than a GB10, whose clock the figure is."""
    upkeep, gpus = known_or_none(facts.upkeep), known_or_none(facts.gpus) or ()
    there = upkeep is None or upkeep.active(repair.CLOCK_UNIT)
    return None if there or not all("GB10" in gpu.name for gpu in gpus) else repair.clock_fix(facts.node)


def clock_cap(facts: NodeFacts) -> Iterator[Found]:
    upkeep = known_or_none(facts.upkeep)
    if upkeep and upkeep.active(repair.CLOCK_UNIT):
        yield Found(f"systemctl is-active {repair.CLOCK_UNIT}: active")


def gpu_silent(facts: NodeFacts) -> Iterator[Found]:
    board = known_or_none(facts.board)
    functions = known_or_none(board.nvidia) if board else None
    address = next((address for address, kind in (functions or {}).items() if kind == reading.GB10_PCI), "")
    if address and not facts.gpus and facts.gpus != NOT_ASKED:
        said = (facts.gpus.raw or facts.gpus.why) if isinstance(facts.gpus, Unknown) else "no GPU listed"
        yield Found(f"{address} is {reading.GB10_PCI}; nvidia-smi: {said}")


def gpu_throttled(facts: NodeFacts) -> Iterator[Found]:
    driver = known_or_none(facts.driver)
    if driver and driver.slowdowns:
        yield Found(f"nvidia-smi -q: {', '.join(driver.slowdowns)} active")


def gpu_off_bus(facts: NodeFacts) -> Iterator[Found]:
    board, identity = known_or_none(facts.board), known_or_none(facts.identity)
    functions = known_or_none(board.nvidia) if board else None
    on_dgx = identity is not None and known_or_none(identity.ota_version) is not None
    if (
        on_dgx
        and functions is not None
        and reading.GB10_PCI not in functions.values()
        and not known_or_none(facts.gpus)
    ):
        yield Found(
            f"NVIDIA's PCI functions: {', '.join(sorted(set(functions.values()))) or 'none'};"
            f" expected {reading.GB10_PCI}"
        )


CHECKS = explained(
    __file__,
    Check("GPU001", OVERRIDE, "no GPU detected", gpu_missing),
    Check("GPU002", WARN, "GPU memory in use by other processes", gpu_in_use),
    Check("GPU003", INFO, "GPU is not a GB10", reading.per_node(reading.machine_nodes, other_gpu_model)),
    Check("GPU004", WARN, "fatal Xid since boot", fatal_xid),
    Check("GPU005", WARN, "GPU stuck at low clock and power", power_wedge),
    Check("GPU006", WARN, "GPU is overheating", reading.per_node(reading.machine_nodes, gpu_hot)),
    Check("GPU007", WARN, "board is overheating", reading.per_node(reading.sparks, board_hot)),
    Check("GPU008", OVERRIDE, "GPU present but not responding", reading.per_node(reading.gpu_nodes, gpu_silent)),
    Check(
        "GPU009", WARN, "hardware slowdown of the GPU is active", reading.per_node(reading.machine_nodes, gpu_throttled)
    ),
    Check("GPU010", WARN, "thermal limit reached since boot", reading.in_kernel_log(_THERMAL)),
    Check("GPU011", OVERRIDE, "GPU fell off the PCI bus", reading.per_node(reading.gpu_nodes, gpu_off_bus)),
    Check("GPU012", INFO, "GPU clock is capped", reading.per_node(reading.machine_nodes, clock_cap)),
)
