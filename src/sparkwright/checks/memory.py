"""Checks of what holds memory on a node."""

from collections.abc import Iterator

from sparkwright.checks.memory_plan import biggest_process
from sparkwright.checks.reading import (
    gb10s,
    idle,
    per_node,
    simulated,
    sparks,
)
from sparkwright.domain.check import Check, Context, Found
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


CHECKS = (
    Check("MEM004", WARN, "memory retained by the driver", per_node(sparks, memory_retained)).about(
        detects="on a GB10 more than 10 GiB that no counter of /proc/meminfo explains while nvidia-smi lists no GPU "
        "process.",
        why="the driver keeps pages of CUDA programs that have ended. One side: the next CUDA program gets them "
        "(96 GiB were had with 40 GiB available), so the plan counts them as free. Other side: engines size "
        "their KV pool by what is available and get a smaller one at each start, and some saw only a reboot "
        "bring them back.",
        cause="the driver keeps memory of CUDA programs that have ended; the next one may get it or not",
        fix="start the model and compare its KV pool with the plan; if it is smaller, reboot this node",
        see=("https://al-engr.com/minimax-sglang-debug.html",),
    ),
    Check("MEM005", WARN, "memory leak in the GPU driver", per_node(gb10s, memory_leaked)).about(
        detects="GPU processes run and report their sizes, and what no counter explains is more than they and the "
        "usual 8 GiB take by 10 GiB.",
        why="memory of programs that ended before is still with the driver, along with what runs now. Host memory "
        "that a program pins (offloading of weights or KV) looks the same, and comes back with its end.",
        cause="the driver still keeps memory of programs that ended, or those that run have pinned host memory",
        fix="stop what runs, look again with sparkwright check, and reboot this node if it stays",
        see=("https://al-engr.com/minimax-sglang-debug.html", "https://github.com/thatcooperguy/NVCheckup"),
    ),
    Check("MEM006", WARN, "node is swapping", per_node(sparks, swapping)).about(
        detects="pswpin or pswpout of a GB10's /proc/vmstat grew by more than 1024 pages (4 MiB) within 0.4 s. Swap "
        "that is used and rests does no harm, and neither do some pages that come back.",
        why="CPU and GPU share the memory: once an engine's pages move to disk, each token waits for the disk, "
        "and the machine may freeze.",
        cause="more memory is in use than there is; GPU memory is part of it",
        fix="ps aux --sort=-rss | head shows who holds it; lower serving.memory_fraction of what runs",
        see=("https://github.com/Reederey87/dgx-spark-2x-deepseek-v4-flash",),
    ),
    Check("MEM007", INFO, "swap is in use", per_node(sparks, swap_used)).about(
        detects="more than 1 GiB of swap is in use on a GB10.",
        why="sources contradict each other. One side: `swapoff -a`, because a machine that swaps GPU memory "
        "freezes. Other side: leave it on, as DGX OS has it, for the peak at start-up (150 minutes under "
        "load with 4.8 GB in swap and none moving are on record), and never turn it off under load. What "
        "counts is swapping, which MEM006 tells.",
        cause="memory was short at some time since boot; pages that rest in swap do no harm",
        fix="nothing while no pages move (MEM006); some turn swap off before a start, others keep it for the peak",
        see=(
            "https://github.com/luisefigueroa/pulsar-gb10-vllm-stack",
            "https://github.com/GanyX19/deepseek-v4-1m-on-dgx-spark",
        ),
    ),
    Check("MEM010", WARN, "reserved CMA memory is not counted", per_node(sparks, cma_uncounted)).about(
        detects="/proc/meminfo of a GB10 shows CmaTotal 0 and CmaFree more than 0.",
        why="it is the mark of a kernel (7.0.0-1019) that holds back memory without counting it; registering "
        "RDMA buffers then fails with ENOMEM under pressure.",
        cause="the kernel's kexec handover reserves it; ibv_reg_mr then fails with ENOMEM under pressure",
        fix="add kho=off to the kernel's command line and reboot, or boot a 6.17 kernel",
        see=("https://github.com/christopherowen/dgx-spark-networking",),
    ),
    Check("MEM011", INFO, "page cache fills memory before load", page_cache).about(
        detects="a recipe loads weights on a GB10, MemFree is below 32 GiB, and the page cache holds more than 30 % "
        "of the pool.",
        why="the cache gives way, but not at once and not to everything: CUDA's own figure of free memory leaves "
        "it out, graph capture has run short beside it, and loads stall near the end.",
        cause="files were read or copied; CUDA counts only what is free now",
        fix="sync; echo 3 | sudo tee /proc/sys/vm/drop_caches   # on each node, right before the start",
        see=("https://docs.nvidia.com/dgx/dgx-spark/known-issues.html",),
    ),
    Check("MEM012", WARN, "memory pressure stalls programs", per_node(sparks, memory_pressure)).about(
        detects="the kernel's pressure figure for the memory of a GB10: all tasks waited (full) more than 0.1 % of "
        "the last ten seconds. A warning above 1 %: a file that is copied can make a short stall.",
        why="reclaim runs all the time and everything is slow; above 1 % machines with one pool of memory have frozen.",
        cause="hardly any memory is left; the kernel looks for pages all the time",
        fix="ps aux --sort=-rss | head shows who holds it; lower serving.memory_fraction of what runs",
        see=("https://docs.kernel.org/accounting/psi.html", "https://github.com/thatcooperguy/NVCheckup"),
    ),
    Check("MEM016", INFO, "other programs hold unified memory", per_node(sparks, big_programs)).about(
        detects="no rank of ours runs on a GB10, and programs with 1 GiB or more of memory of their own do. A "
        "warning from 4 GiB on. GPU memory is GPU002's.",
        why="each of them takes away from weights and KV cache; some (a second engine, notebooks, browsers) are "
        "there by oversight.",
        cause="they run along with the model and share its memory",
        fix="stop those that are not needed",
        see=("https://github.com/guardkit/dgx-spark",),
    ),
    Check("MEM017", WARN, "low memory with no rank running", per_node(sparks, memory_low)).about(
        detects="no rank of ours runs on a GB10, and MemAvailable is below 8 GiB.",
        why="nothing can be started, and the machine is near the point (4 GiB) where GB10 machines froze.",
        cause="other programs hold the memory, or the driver keeps it (MEM004)",
        fix="stop what holds the memory",
        see=("https://github.com/thatcooperguy/NVCheckup",),
    ),
    Check("MEM018", WARN, "memory reserved as huge pages", per_node(sparks, huge_pages)).about(
        detects="HugePages_Total of a GB10 reserves 1 GiB or more.",
        why="CUDA on a GB10 then takes only the free huge pages for what it can have, and nothing else can use them.",
        cause="vm.nr_hugepages or the kernel's command line sets them, from a guide for other machines",
        fix="sudo sysctl -w vm.nr_hugepages=0, and take the setting out of /etc/sysctl.d",
        see=("https://docs.nvidia.com/dgx/dgx-spark/known-issues.html",),
    ),
)
