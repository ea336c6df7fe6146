"""Checks of what holds memory on a node."""

import re
from collections.abc import Iterator

from sparkwright.checks.memory_plan import MIN_FREE, biggest_process
from sparkwright.checks.reading import (
    gb10_nodes,
    gpu_may_be_used,
    is_idle,
    kernel_notes,
    per_node,
    quoted,
    simulated,
    sparks,
)
from sparkwright.domain.check import Check, Context, Found, explained
from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.finding import INFO, WARN
from sparkwright.domain.host_facts import LARGE_BLOCK, Process
from sparkwright.domain.units import GIB, gib
from sparkwright.domain.unknown import known_or_none
from sparkwright.remote import repair

# A freshly booted GB10 has 5.4-7.6 GiB that no counter explains: firmware and carve-outs.
KEPT_AT_BOOT = 8 * GIB
_RETAINED = KEPT_AT_BOOT + 2 * GIB
_LEAKED = 10 * GIB
_SWAPPED_PAGES = 1024
_FREE_ENOUGH, _CACHED_SHARE = 32 * GIB, 0.3
_STALLED, _STALLED_MUCH = 0.1, 1.0
_BIG, _BIG_TOGETHER, _BIG_SHOWN = GIB, 4 * GIB, 4
_LOW = 8 * GIB
_EARLYOOM = "earlyoom.service"
_MIN_FREE_LEAST, _MIN_FREE_WANTED = 1 << 20, 3 << 20
_MIN_FREE_ROOM = 16 * GIB
_OOM_KILLED = re.compile(r"Out of memory: Killed process|Memory cgroup out of memory: Killed")
_ENOMEM = re.compile(r"NV_ERR_NO_MEMORY|\(0x0*51\)")
_OVERCOMMIT, _NEVER_OVERCOMMIT, _USUAL_OVERCOMMIT = "vm.overcommit_memory", 2, 0
_UNCORRECTED = re.compile(r"section_type: memory error|Memory failure: 0x|EDAC .*\bUE\b", re.ASCII)


def memory_retained(facts: NodeFacts) -> Iterator[Found]:
    memory = known_or_none(facts.memory)
    if memory and known_or_none(facts.gpu_processes) == () and memory.unaccounted > _RETAINED:
        yield Found(
            f"in no counter {gib(memory.unaccounted)}, available {gib(memory.available)}, no GPU process; "
            f"up to {gib(KEPT_AT_BOOT)} is normal",
            title=f"{gib(memory.unaccounted)} retained by the driver",
        )


def memory_leaked(facts: NodeFacts) -> Iterator[Found]:
    memory, processes = known_or_none(facts.memory), known_or_none(facts.gpu_processes)
    sizes = [process.used for process in processes or () if isinstance(process.used, int)]
    beyond = memory.unaccounted - sum(sizes) - KEPT_AT_BOOT if memory else 0
    if memory and processes and len(sizes) == len(processes) and beyond > _LEAKED:
        yield Found(
            f"in no counter {gib(memory.unaccounted)}, GPU processes {gib(sum(sizes))}, "
            f"usual at boot {gib(KEPT_AT_BOOT)}",
            title=f"{gib(beyond)} in use beyond what GPU processes hold",
        )


def swapping(facts: NodeFacts) -> Iterator[Found]:
    activity = known_or_none(facts.activity)
    moved = [known_or_none(activity.swapped_in) or 0, known_or_none(activity.swapped_out) or 0] if activity else [0, 0]
    if activity and max(moved) > _SWAPPED_PAGES:
        yield Found(f"/proc/vmstat: {moved[0]} pages in, {moved[1]} out within {activity.seconds:g} s")


def swap_used(facts: NodeFacts) -> Iterator[Found]:
    memory = known_or_none(facts.memory)
    used = memory.swap_total - memory.swap_free if memory else 0
    if memory and used > GIB:
        yield Found(f"{gib(used)} used of {gib(memory.swap_total)}", title=f"{gib(used)} of swap in use")


def cma_uncounted(facts: NodeFacts) -> Iterator[Found]:
    memory = known_or_none(facts.memory)
    if memory and memory.cma_free > memory.cma_total == 0:
        yield Found(f"/proc/meminfo: CmaTotal 0 kB, CmaFree {memory.cma_free // 1024} kB")


def page_cache(context: Context) -> Iterator[Found]:
    for facts in sparks(context) if context.recipe and not simulated(context) else ():
        memory = known_or_none(facts.memory)
        if memory and memory.free < _FREE_ENOUGH and memory.page_cache > _CACHED_SHARE * memory.total:
            yield Found(
                f"MemFree {gib(memory.free)}, page cache {gib(memory.page_cache)}, available {gib(memory.available)}",
                title=f"page cache holds {gib(memory.page_cache)}",
                subject=facts.node,
            )


def fragmented(facts: NodeFacts) -> Iterator[Found]:
    memory = known_or_none(facts.memory)
    if memory and memory.fragmented:
        large = memory.in_blocks(LARGE_BLOCK)
        yield Found(f"/proc/buddyinfo: {gib(large)} of {gib(memory.free)} MemFree in blocks of 16 MiB or more")


def memory_pressure(facts: NodeFacts) -> Iterator[Found]:
    activity = known_or_none(facts.activity)
    full = known_or_none(activity.stall_full) if activity else None
    if activity and full is not None and full > _STALLED:
        yield Found(
            f"/proc/pressure/memory: full avg10={full:g}, some avg10={known_or_none(activity.stall_some) or 0:g} "
            "(percent)",
            severity=WARN if full > _STALLED_MUCH else INFO,
        )


def big_programs(facts: NodeFacts) -> Iterator[Found]:
    activity = known_or_none(facts.activity)
    processes = (known_or_none(activity.processes) or ()) if activity else ()
    big = [process for process in processes if process.rss >= _BIG]
    if big and is_idle(facts):
        held = sum(process.rss for process in big)
        yield Found(
            ", ".join(f"{p.name} (pid {p.pid}, {gib(p.rss)})" for p in big[:_BIG_SHOWN]),
            title=f"other programs hold {gib(held)}",
            fix=_stop(big[0]),
            severity=WARN if held >= _BIG_TOGETHER else INFO,
        )


def _stop(process: Process) -> str:
    if process.unit.endswith(".service") and not process.unit.startswith("user@"):
        return f"sudo systemctl stop {process.unit}, if it is not needed"
    return f"see whose it is: ps -fp {process.pid}; stop it if it is not needed"


def memory_low(facts: NodeFacts) -> Iterator[Found]:
    memory = known_or_none(facts.memory)
    if memory and memory.available < _LOW and is_idle(facts):
        yield Found(
            f"MemAvailable {gib(memory.available)} of {gib(memory.total)}, no rank of ours runs",
            title=f"only {gib(memory.available)} available",
            fix=biggest_process(facts) or "ps aux --sort=-rss | head shows who holds it",
        )


def huge_pages(facts: NodeFacts) -> Iterator[Found]:
    memory = known_or_none(facts.memory)
    if memory and memory.huge_pages >= GIB:
        yield Found(
            f"huge pages: {gib(memory.huge_free)} free of {gib(memory.huge_pages)}",
            title=f"{gib(memory.huge_pages)} reserved as huge pages",
        )


def earlyoom_active(context: Context) -> Iterator[Found]:
    for facts in sparks(context) if len(context.cluster.nodes) > 1 else ():
        upkeep = known_or_none(facts.upkeep)
        if upkeep and upkeep.active(_EARLYOOM):
            yield Found(f"systemctl is-active {_EARLYOOM}: active", subject=facts.node)


def min_free_low(facts: NodeFacts) -> Iterator[Found]:
    upkeep = known_or_none(facts.upkeep)
    now = upkeep.sysctl(MIN_FREE) if upkeep else None
    if now is not None and now < _MIN_FREE_LEAST:
        memory = known_or_none(facts.memory)
        yield Found(
            f"{MIN_FREE} = {now}; expected: {_MIN_FREE_WANTED} (3 GiB)",
            fix=f"sudo sysctl -w {MIN_FREE}={_MIN_FREE_WANTED}, and the same line in {repair.sysctl_file(MIN_FREE)}",
            repair=None
            if memory and memory.available < _MIN_FREE_ROOM
            else repair.sysctl_fix(facts.node, MIN_FREE, _MIN_FREE_WANTED, now),
        )


def oom_kill(facts: NodeFacts) -> Iterator[Found]:
    log, activity = known_or_none(facts.kernel_log), known_or_none(facts.activity)
    lines = log.matching(_OOM_KILLED) if log else ()
    count = (known_or_none(activity.oom_kills) or 0) if activity else 0
    if lines or count:
        yield Found(quoted(lines) if lines else f"/proc/vmstat: oom_kill {count} since boot")


def driver_enomem(context: Context) -> Iterator[Found]:
    for facts, found in kernel_notes(context, _ENOMEM):
        if gpu_may_be_used(context, facts.node):
            yield Found(quoted(found), subject=facts.node)


def pools_differ(context: Context) -> Iterator[Found]:
    pools = {facts.node: m.total for facts in sparks(context) if (m := known_or_none(facts.memory))}
    if pools and max(pools.values()) - min(pools.values()) > GIB:
        yield Found(", ".join(f"{node} {gib(total)}" for node, total in pools.items()), subject=", ".join(pools))


def overcommit_off(facts: NodeFacts) -> Iterator[Found]:
    upkeep = known_or_none(facts.upkeep)
    if upkeep and upkeep.sysctl(_OVERCOMMIT) == _NEVER_OVERCOMMIT:
        yield Found(
            f"{_OVERCOMMIT} = {_NEVER_OVERCOMMIT}; expected: {_USUAL_OVERCOMMIT}",
            fix=f"sudo sysctl -w {_OVERCOMMIT}={_USUAL_OVERCOMMIT}, and take the setting out of /etc/sysctl.d",
            repair=repair.sysctl_fix(facts.node, _OVERCOMMIT, _USUAL_OVERCOMMIT, _NEVER_OVERCOMMIT),
        )


def memory_failing(facts: NodeFacts) -> Iterator[Found]:
    memory, log = known_or_none(facts.memory), known_or_none(facts.kernel_log)
    lines = log.matching(_UNCORRECTED) if log else ()
    if lines or (memory and memory.corrupted):
        yield Found(
            quoted(lines) if lines or not memory else f"/proc/meminfo: HardwareCorrupted {memory.corrupted // 1024} kB"
        )


CHECKS = explained(
    __file__,
    Check("MEM004", WARN, "memory retained by the driver", per_node(sparks, memory_retained)),
    Check("MEM005", WARN, "memory leak in the GPU driver", per_node(gb10_nodes, memory_leaked)),
    Check("MEM006", WARN, "node is swapping", per_node(sparks, swapping)),
    Check("MEM007", INFO, "swap is in use", per_node(sparks, swap_used)),
    Check("MEM010", WARN, "reserved CMA memory is not counted", per_node(sparks, cma_uncounted)),
    Check("MEM011", INFO, "page cache fills memory before load", page_cache),
    Check("MEM012", WARN, "memory pressure stalls programs", per_node(sparks, memory_pressure)),
    Check("MEM016", INFO, "other programs hold unified memory", per_node(sparks, big_programs)),
    Check("MEM017", WARN, "low memory with no rank running", per_node(sparks, memory_low)),
    Check("MEM018", WARN, "memory reserved as huge pages", per_node(sparks, huge_pages)),
    Check("MEM008", INFO, "earlyoom may kill a rank", earlyoom_active),
    Check("MEM009", INFO, "vm.min_free_kbytes too low for unified memory", per_node(sparks, min_free_low)),
    Check("MEM013", WARN, "OOM kills since boot", per_node(sparks, oom_kill)),
    Check("MEM014", WARN, "driver memory allocation failures since boot", driver_enomem),
    Check("MEM015", INFO, "nodes have memory pools of different size", pools_differ),
    Check("MEM019", WARN, "memory overcommit is disabled", per_node(sparks, overcommit_off)),
    Check("MEM020", WARN, "uncorrectable memory errors", per_node(sparks, memory_failing)),
    Check("MEM022", WARN, "free memory is fragmented", per_node(sparks, fragmented)),
)
