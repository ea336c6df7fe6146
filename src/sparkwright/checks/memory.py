"""Checks of what holds memory on a node."""

from collections.abc import Iterator

from sparkwright.checks.memory_plan import biggest_process
from sparkwright.checks.reading import gb10s, idle, per_node, simulated, sparks
from sparkwright.domain.check import Check, Context, Found, explained
from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.finding import INFO, WARN
from sparkwright.domain.host_facts import Process
from sparkwright.domain.units import GIB, gib
from sparkwright.domain.unknown import known

# A freshly booted GB10 has 5.4-7.6 GiB that no counter explains: firmware and carve-outs.
KEPT_AT_BOOT = 8 * GIB
_RETAINED = KEPT_AT_BOOT + 2 * GIB


def memory_retained(facts: NodeFacts) -> Iterator[Found]:
    memory = known(facts.memory)
    if memory and known(facts.gpu_processes) == () and memory.unaccounted > _RETAINED:
        yield Found(
            f"in no counter {gib(memory.unaccounted)}, available {gib(memory.available)}, no GPU process; "
            f"up to {gib(KEPT_AT_BOOT)} is normal",
            title=f"{gib(memory.unaccounted)} retained by the driver",
        )


_LEAKED = 10 * GIB


def memory_leaked(facts: NodeFacts) -> Iterator[Found]:
    memory, processes = known(facts.memory), known(facts.gpu_processes)
    sizes = [process.used for process in processes or () if isinstance(process.used, int)]
    beyond = memory.unaccounted - sum(sizes) - KEPT_AT_BOOT if memory else 0
    if memory and processes and len(sizes) == len(processes) and beyond > _LEAKED:
        yield Found(
            f"in no counter {gib(memory.unaccounted)}, GPU processes {gib(sum(sizes))}, "
            f"usual at boot {gib(KEPT_AT_BOOT)}",
            title=f"{gib(beyond)} in use beyond what GPU processes hold",
        )


_PAGES = 1024


def swapping(facts: NodeFacts) -> Iterator[Found]:
    activity = known(facts.activity)
    moved = [known(activity.swapped_in) or 0, known(activity.swapped_out) or 0] if activity else [0, 0]
    if activity and max(moved) > _PAGES:
        yield Found(f"/proc/vmstat: {moved[0]} pages in, {moved[1]} out within {activity.seconds:g} s")


def swap_used(facts: NodeFacts) -> Iterator[Found]:
    memory = known(facts.memory)
    used = memory.swap_total - memory.swap_free if memory else 0
    if memory and used > GIB:
        yield Found(f"{gib(used)} used of {gib(memory.swap_total)}", title=f"{gib(used)} of swap in use")


def cma_uncounted(facts: NodeFacts) -> Iterator[Found]:
    memory = known(facts.memory)
    if memory and memory.cma_free > memory.cma_total == 0:
        yield Found(f"/proc/meminfo: CmaTotal 0 kB, CmaFree {memory.cma_free // 1024} kB")


_FREE, _SHARE = 32 * GIB, 0.3


def page_cache(context: Context) -> Iterator[Found]:
    for facts in sparks(context) if context.recipe and not simulated(context) else ():
        memory = known(facts.memory)
        if memory and memory.free < _FREE and memory.cached > _SHARE * memory.total:
            yield Found(
                f"MemFree {gib(memory.free)}, page cache {gib(memory.cached)}, available {gib(memory.available)}",
                title=f"page cache holds {gib(memory.cached)}",
                subject=facts.node,
            )


_FULL, _MUCH = 0.1, 1.0


def memory_pressure(facts: NodeFacts) -> Iterator[Found]:
    activity = known(facts.activity)
    full = known(activity.stall_full) if activity else None
    if activity and full is not None and full > _FULL:
        yield Found(
            f"/proc/pressure/memory: full avg10={full:g}, some avg10={known(activity.stall_some) or 0:g} (percent)",
            severity=WARN if full > _MUCH else INFO,
        )


_EACH, _MANY, _SHOWN = GIB, 4 * GIB, 4


def big_programs(facts: NodeFacts) -> Iterator[Found]:
    activity = known(facts.activity)
    processes = (known(activity.processes) or ()) if activity else ()
    big = [process for process in processes if process.rss >= _EACH]
    if big and idle(facts):
        held = sum(process.rss for process in big)
        yield Found(
            ", ".join(f"{p.name} (pid {p.pid}, {gib(p.rss)})" for p in big[:_SHOWN]),
            title=f"other programs hold {gib(held)}",
            fix=_stop(big[0]),
            severity=WARN if held >= _MANY else INFO,
        )


def _stop(process: Process) -> str:
    if process.unit.endswith(".service") and not process.unit.startswith("user@"):
        return f"sudo systemctl stop {process.unit}, if it is not needed"
    return f"see whose it is: ps -fp {process.pid}; stop it if it is not needed"


_LITTLE = 8 * GIB


def memory_low(facts: NodeFacts) -> Iterator[Found]:
    memory = known(facts.memory)
    if memory and memory.available < _LITTLE and idle(facts):
        yield Found(
            f"MemAvailable {gib(memory.available)} of {gib(memory.total)}, no rank of ours runs",
            title=f"only {gib(memory.available)} available",
            fix=biggest_process(facts) or "ps aux --sort=-rss | head shows who holds it",
        )


def huge_pages(facts: NodeFacts) -> Iterator[Found]:
    memory = known(facts.memory)
    if memory and memory.huge_pages >= GIB:
        yield Found(
            f"huge pages: {gib(memory.huge_free)} free of {gib(memory.huge_pages)}",
            title=f"{gib(memory.huge_pages)} reserved as huge pages",
        )


CHECKS = explained(
    __file__,
    Check("MEM004", WARN, "memory retained by the driver", per_node(sparks, memory_retained)),
    Check("MEM005", WARN, "memory leak in the GPU driver", per_node(gb10s, memory_leaked)),
    Check("MEM006", WARN, "node is swapping", per_node(sparks, swapping)),
    Check("MEM007", INFO, "swap is in use", per_node(sparks, swap_used)),
    Check("MEM010", WARN, "reserved CMA memory is not counted", per_node(sparks, cma_uncounted)),
    Check("MEM011", INFO, "page cache fills memory before load", page_cache),
    Check("MEM012", WARN, "memory pressure stalls programs", per_node(sparks, memory_pressure)),
    Check("MEM016", INFO, "other programs hold unified memory", per_node(sparks, big_programs)),
    Check("MEM017", WARN, "low memory with no rank running", per_node(sparks, memory_low)),
    Check("MEM018", WARN, "memory reserved as huge pages", per_node(sparks, huge_pages)),
)
