"""Checks of memory settings and memory faults."""

import re
from collections.abc import Iterator

from sparkwright.checks.reading import (
    gpu_may_be_used,
    kernel_notes,
    per_node,
    quoted,
    sparks,
)
from sparkwright.domain.check import Check, Context, Found
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


CHECKS = (
    Check("MEM008", INFO, "earlyoom may kill a rank", earlyoom_active).about(
        detects="earlyoom is active on a GB10 of a cluster of two or more nodes. Not systemd-oomd, which Ubuntu's "
        "desktop brings and which looks after logins.",
        why="sources contradict each other. One side: with `-m 2` it ends the engine and saves the machine from "
        "a freeze. Other side: it ends one rank at a peak that would have passed, and all other ranks hang. "
        "For one node the first side weighs more, for several it is open.",
        cause="a guard saves one machine from a freeze, and in a cluster its kill leaves the other ranks hanging",
        fix="nothing; when a rank disappears, inspect journalctl -u earlyoom",
        see=("https://github.com/spark-arena/sparkrun", "https://github.com/bytebunkerlabs/dgx-spark-serve"),
    ),
    Check("MEM009", INFO, "vm.min_free_kbytes too low for unified memory", per_node(sparks, min_free_low)).about(
        detects="vm.min_free_kbytes below 1 GiB on a GB10.",
        why="GPU driver and NIC ask for memory in contexts that cannot wait. With the default of some 66 MB they "
        "find none while weights stream through the page cache, and the load stalls or the machine freezes: "
        "owners of clusters that run well set 3 to 5 GiB. It has a price: about twice as much no longer "
        "counts as available (6.2 GiB were measured for 3), and an engine that asks for nearly all of the "
        "memory may refuse to start; one owner raises it after the start.",
        cause="the default is made for machines whose GPU has memory of its own; raising it takes about twice as "
        "much from what an engine may ask for",
        fix="3145728 (3 GiB), now and at each boot; a memory fraction of 0.82 or less leaves room for it. There "
        "is no fix where less than 16 GiB is available: a machine that serves so could run short at once",
        see=(
            "https://github.com/GanyX19/deepseek-v4-1m-on-dgx-spark",
            "https://github.com/Reederey87/dgx-spark-2x-deepseek-v4-flash",
            "https://github.com/tonyd2wild/GLM-5.3-Flash-NVFP4-DFlash2-2x-DGX-Spark/pull/19",
        ),
    ),
    Check("MEM013", WARN, "OOM kills since boot", per_node(sparks, oom_kill)).about(
        detects="a GB10's kernel log of this boot has `Out of memory: Killed process`, or the counter oom_kill of "
        "/proc/vmstat is above 0.",
        why="what was killed may be a rank (its peers then hang), a service or a monitor; it happens again with "
        "the same load.",
        cause="more memory was asked for than there is; GPU memory is part of it",
        fix="lower serving.memory_fraction or the context, or stop other programs (journalctl -k -b | grep -i oom)",
        see=("https://docs.kernel.org/admin-guide/mm/concepts.html",),
    ),
    Check("MEM014", WARN, "driver memory allocation failures since boot", driver_enomem).about(
        detects="NV_ERR_NO_MEMORY (0x51) in a GB10's kernel log of this boot.",
        why="the driver asked for memory and got none: a memory fraction that leaves too little, or a leak of "
        "memory descriptors (580.159.03: some 160 a boot). RDMA registration then fails on this node until "
        "all nodes are started anew from cold.",
        cause="the memory fraction leaves too little, or the driver leaks memory descriptors (580.159.03)",
        fix="lower serving.memory_fraction to 0.75; if ibv_reg_mr fails now, start all nodes cold",
        see=("https://forums.developer.nvidia.com/t/363989",),
    ),
    Check("MEM015", INFO, "nodes have memory pools of different size", pools_differ).about(
        detects="MemTotal of GB10 nodes differs by more than 1 GiB.",
        why="the firmware keeps 2 or 4 GiB for the display (a BIOS setting since 2026; older BIOS versions keep "
        "more). All ranks of a group hold the same share, so the smallest pool decides.",
        cause="another BIOS version, or another setting of its display reserve",
        fix="update all to one BIOS version, and set the smaller display reserve in its menu",
        see=("https://github.com/thatcooperguy/NVCheckup",),
    ),
    Check("MEM019", WARN, "memory overcommit is disabled", per_node(sparks, overcommit_off)).about(
        detects="vm.overcommit_memory = 2 on a GB10.",
        why="CUDA and engines reserve address space far beyond what they use; with strict accounting such "
        "reservations fail with ENOMEM although memory is free.",
        cause="set by hand or by a hardening guide",
        fix="0, the default",
        see=("https://docs.kernel.org/mm/overcommit-accounting.html",),
    ),
    Check("MEM020", WARN, "uncorrectable memory errors", per_node(sparks, memory_failing)).about(
        detects="HardwareCorrupted of a GB10's /proc/meminfo is above 0, or its kernel log of this boot has a memory "
        "error that the firmware reports or a page that was given up. Errors of PCIe in the same form are "
        "HOST021's.",
        why="memory that fails takes programs with it, and on a GB10 it is the model's memory too: wrong answers "
        "and ends without a cause.",
        cause="a memory error that could not be corrected; the kernel has put the page aside",
        fix="run NVIDIA's field diagnostics (partnerdiag), and ask the maker for a repair if it comes again",
        see=("https://docs.kernel.org/mm/hwpoison.html",),
    ),
)
