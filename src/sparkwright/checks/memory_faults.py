"""Checks of memory settings and memory faults."""

import re
from collections.abc import Iterator

from sparkwright.checks.reading import gpu_may_be_used, kernel_notes, per_node, quoted, sparks
from sparkwright.domain.check import Check, Context, Found, explained
from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.finding import INFO, WARN, Fix
from sparkwright.domain.units import GIB, gib
from sparkwright.domain.unknown import known
from sparkwright.remote import repair

_GUARD = "earlyoom.service"


def earlyoom_active(context: Context) -> Iterator[Found]:
    for facts in sparks(context) if len(context.cluster.nodes) > 1 else ():
        upkeep = known(facts.upkeep)
        if upkeep and upkeep.active(_GUARD):
            yield Found(f"systemctl is-active {_GUARD}: active", subject=facts.node)


_MIN_FREE, _LEAST, _WANTED = "vm.min_free_kbytes", 1 << 20, 3 << 20
_ROOM = 16 * GIB


def min_free_low(facts: NodeFacts) -> Iterator[Found]:
    upkeep = known(facts.upkeep)
    now = upkeep.sysctl(_MIN_FREE) if upkeep else None
    if now is not None and now < _LEAST:
        yield Found(
            f"{_MIN_FREE} = {now}; expected: {_WANTED} (3 GiB)",
            fix=f"sudo sysctl -w {_MIN_FREE}={_WANTED}, and the same line in {repair.sysctl_file(_MIN_FREE)}",
            repair=_fix(facts, now),
        )


def _fix(facts: NodeFacts, now: int) -> Fix | None:
    memory = known(facts.memory)
    return None if memory and memory.available < _ROOM else repair.sysctl_fix(facts.node, _MIN_FREE, _WANTED, now)


_KILLED = re.compile(r"Out of memory: Killed process|Memory cgroup out of memory: Killed")


def oom_kill(facts: NodeFacts) -> Iterator[Found]:
    log, activity = known(facts.kernel_log), known(facts.activity)
    lines = log.matching(_KILLED) if log else ()
    count = (known(activity.oom_kills) or 0) if activity else 0
    if lines or count:
        yield Found(quoted(lines) if lines else f"/proc/vmstat: oom_kill {count} since boot")


_ENOMEM = re.compile(r"NV_ERR_NO_MEMORY|\(0x0*51\)")


def driver_enomem(context: Context) -> Iterator[Found]:
    for facts, found in kernel_notes(context, _ENOMEM):
        if gpu_may_be_used(context, facts.node):
            yield Found(quoted(found), subject=facts.node)


def pools_differ(context: Context) -> Iterator[Found]:
    pools = {facts.node: m.total for facts in sparks(context) if (m := known(facts.memory))}
    if pools and max(pools.values()) - min(pools.values()) > GIB:
        yield Found(", ".join(f"{node} {gib(total)}" for node, total in pools.items()), subject=", ".join(pools))


_OVERCOMMIT, _STRICT, _DEFAULT = "vm.overcommit_memory", 2, 0


def overcommit_off(facts: NodeFacts) -> Iterator[Found]:
    upkeep = known(facts.upkeep)
    if upkeep and upkeep.sysctl(_OVERCOMMIT) == _STRICT:
        yield Found(
            f"{_OVERCOMMIT} = {_STRICT}; expected: {_DEFAULT}",
            fix=f"sudo sysctl -w {_OVERCOMMIT}={_DEFAULT}, and take the setting out of /etc/sysctl.d",
            repair=repair.sysctl_fix(facts.node, _OVERCOMMIT, _DEFAULT, _STRICT),
        )


_ERROR = re.compile(r"section_type: memory error|Memory failure: 0x|EDAC .*\bUE\b", re.ASCII)


def memory_failing(facts: NodeFacts) -> Iterator[Found]:
    memory, log = known(facts.memory), known(facts.kernel_log)
    lines = log.matching(_ERROR) if log else ()
    if lines or (memory and memory.corrupted):
        yield Found(
            quoted(lines) if lines or not memory else f"/proc/meminfo: HardwareCorrupted {memory.corrupted // 1024} kB"
        )


CHECKS = explained(
    __file__,
    Check("MEM008", INFO, "earlyoom may kill a rank", earlyoom_active),
    Check("MEM009", INFO, "vm.min_free_kbytes too low for unified memory", per_node(sparks, min_free_low)),
    Check("MEM013", WARN, "OOM kills since boot", per_node(sparks, oom_kill)),
    Check("MEM014", WARN, "driver memory allocation failures since boot", driver_enomem),
    Check("MEM015", INFO, "nodes have memory pools of different size", pools_differ),
    Check("MEM019", WARN, "memory overcommit is disabled", per_node(sparks, overcommit_off)),
    Check("MEM020", WARN, "uncorrectable memory errors", per_node(sparks, memory_failing)),
)
