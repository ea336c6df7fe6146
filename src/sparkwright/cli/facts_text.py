"""The facts of a node as text."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from sparkwright.cli.columns import fold_line
from sparkwright.domain.fabric_facts import Network, Nic, Store
from sparkwright.domain.facts import (
    Disk,
    Docker,
    DockerTrouble,
    Driver,
    Gpu,
    GpuProcess,
    Identity,
    Interface,
    Listener,
    Memory,
    NodeFacts,
    RankStatus,
    RdmaPort,
)
from sparkwright.domain.host_facts import LARGE_BLOCK, Activity, Board, Package, Times, Upkeep
from sparkwright.domain.units import GIB, duration, gib
from sparkwright.domain.unknown import Unknown

_BIG = GIB // 2
_SHOWN = 3
_SLEEP = "sleep.target"


def _board(found: Board) -> Sequence[str]:
    zone = max(found.zones.items(), key=lambda zone: zone[1], default=None)
    hottest = f"hottest zone {zone[0]} {zone[1]:g} °C" if zone else ""
    library = "" if isinstance(found.libcuda, Unknown) else f"libcuda {found.libcuda.version} {gib(found.libcuda.size)}"
    firmware = listed(known_text(found.bios, "BIOS {}"), known_text(found.ec, "EC {}"), hottest)
    return list(filter(None, (firmware, listed(library, known_text(found.module, "driver on disk {}"), *found.drm))))


def _packages(found: Sequence[Package]) -> Sequence[str]:
    held = [package.name for package in found if package.held]
    count = f"{len(found)} of driver, kernel and firmware"
    return [listed(count, f"held: {' '.join(held)}" if held else "none held")] if found else []


def _upkeep(found: Upkeep) -> Sequence[str]:
    memlock = "no limit" if found.memlock is None else known_text(found.memlock, "{} KiB")
    sleep = found.units.get(_SLEEP)
    return [
        listed(
            *(f"{name} {value}" for name, value in found.sysctls.items() if name.startswith("vm.min_free")),
            f"memlock {memlock}" if memlock else "",
            known_text(found.target, "boots to {}"),
            "may sleep" if sleep and sleep.load != "masked" else "",
            "reboot pending" if found.reboot_needed else "",
            _watchdog(found),
            known_text(found.wifi, "reached over {}"),
        )
    ]


def _watchdog(found: Upkeep) -> str:
    if isinstance(found.watchdog, Unknown) or found.watchdog.armed is None:
        return ""
    armed = f"hardware watchdog {'armed' if found.watchdog.armed else 'not armed'}"
    return armed + (", it ended the last boot" if found.watchdog.has_reset else "")


def _activity(found: Activity) -> Sequence[str]:
    moved = [known_text(found.swapped_in, "{} pages in"), known_text(found.swapped_out, "{} out")]
    big = [] if isinstance(found.processes, Unknown) else [p for p in found.processes if p.rss >= _BIG]
    return [
        listed(
            f"swap {listed(*moved)} in {found.seconds:g} s" if all(moved) else "",
            known_text(found.stall_full, "all waited for memory {:g} % of 10 s"),
            known_text(found.oom_kills, "{} killed for lack of memory"),
            *(f"{p.name} (pid {p.pid}, {gib(p.rss)})" for p in big[:_SHOWN]),
        )
    ]


def _times(found: Times) -> Sequence[str]:
    kept = {True: "synchronized", False: "follows no time source"}
    up = "" if isinstance(found.uptime, Unknown) else f"up {duration(found.uptime)}"
    state = "" if isinstance(found.synchronized, Unknown) else kept[found.synchronized]
    unclean = "the boot before ended without a shutdown" if found.unclean is True else ""
    return [listed(state, up, unclean)]


def _nic(found: Nic) -> Sequence[str]:
    firmware = dict.fromkeys(device.firmware for device in found.devices if device.firmware)
    count = "" if isinstance(found.functions, Unknown) else f"{len(found.functions)} PCI functions"
    return list(filter(None, [listed(count, *firmware, "hot-plug armed" if found.armed else "")]))


def _network(found: Network) -> Sequence[str]:
    routes = [one for one in found.routes if one.destination == "default"]
    default = [f"default via {one.gateway or 'the link'} {one.interface}" for one in routes]
    rows = [listed(*default, f"firewall {found.firewall.name}" if found.firewall else "")]
    woken = {True: ", wakes the node", False: ", does not wake the node", None: ""}
    rows += [f"card {one.interface} {one.mac}{woken[one.armed]}" for one in found.cards or ()]
    return list(filter(None, rows))


def _store(found: Store) -> str:
    partial = f"{len(found.partial)} unfinished downloads" if found.partial else ""
    return listed(
        f"{found.path}: {found.fs or 'file system unknown'}", partial, known_text(found.foreign, "not yours: {}")
    )


_LABEL = 12


def facts_text(facts: NodeFacts, title: str) -> str:
    """title: the first line of the block."""
    home = "" if isinstance(facts.identity, Unknown) else facts.identity.home
    rows = (
        ("machine", lines_of(facts.identity, _machine)),
        ("system", lines_of(facts.kernel, lambda found: [listed(found.os, f"Linux {found.release}")])),
        ("memory", lines_of(facts.memory, _memory)),
        ("gpu", lines_of(facts.gpus, line_for_each(_gpu))),
        ("gpu use", lines_of(facts.gpu_processes, line_for_each(_gpu_process))),
        ("driver", lines_of(facts.driver, _driver)),
        ("interfaces", lines_of(facts.interfaces, line_for_each(_interface))),
        ("rdma", lines_of(facts.rdma, line_for_each(_port))),
        ("docker", lines_of(facts.docker, _docker)),
        ("disks", lines_of(facts.disks, lambda found: _disks(found, home))),
        ("listening", lines_of(facts.listeners, _listeners)),
        ("ranks", lines_of(facts.ranks, line_for_each(_rank))),
        ("board", lines_of(facts.board, _board)),
        ("packages", lines_of(facts.packages, _packages)),
        ("settings", lines_of(facts.upkeep, _upkeep)),
        ("activity", lines_of(facts.activity, _activity)),
        ("clock", lines_of(facts.times, _times)),
        (
            "kernel log",
            lines_of(
                facts.kernel_log, lambda found: [f"{found.lines} lines read, {len(found.notes)} kinds of them kept"]
            ),
        ),
        ("nic", lines_of(facts.nic, _nic)),
        ("network", lines_of(facts.network, _network)),
        (
            "variables",
            lines_of(
                facts.settings,
                lambda found: [
                    f"{one.name}={one.value} ({one.where})" for one in (*found.communication, *found.proxies)
                ],
            ),
        ),
        (
            "containers",
            lines_of(
                facts.containers, lambda found: [f"{one.name} ({one.image})" for one in found.containers if one.running]
            ),
        ),
        ("stores", lines_of(facts.stores, line_for_each(_store))),
    )
    return "\n".join([title, *(line for label, lines in rows for line in _row(label, lines))])


def _row(label: str, lines: Sequence[str]) -> Iterator[str]:
    for number, line in enumerate(lines or ("none",)):
        yield fold_line(f"  {label if number == 0 else '':<{_LABEL}}{line}".rstrip(), _LABEL + 4)


def _machine(found: Identity) -> Sequence[str]:
    dgx = known_text(found.ota_version, "DGX OS {}")
    first = listed(known_text(found.product), found.arch, dgx, f"hostname {found.hostname}")
    return [first, listed(f"user {found.user}", f"home {found.home}")]


def _memory(found: Memory) -> Sequence[str]:
    sums = f"{gib(found.total)} in all, MemAvailable {gib(found.available)}, MemFree {gib(found.free)}"
    rest = listed(
        f"{gib(found.in_blocks(LARGE_BLOCK))} of it in blocks of 16 MiB or more" if found.blocks else "",
        f"page cache {gib(found.cached)}",
        f"in no counter {gib(found.unaccounted)}",
        f"swap {gib(found.swap_free)} free of {gib(found.swap_total)}" if found.swap_total else "no swap",
        f"huge pages {gib(found.huge_free)} free of {gib(found.huge_pages)}" if found.huge_pages else "",
    )
    return [sums, rest]


def _gpu(found: Gpu) -> str:
    return listed(
        found.name,
        known_text(found.compute_capability, "compute capability {}"),
        f"driver {found.driver}" if found.driver else "",
        known_text(found.memory_total) and f"{gib(float(known_text(found.memory_total)))} of its own",
        known_text(found.temperature_c, "{:g} °C"),
        known_text(found.power_w, "{:g} W"),
        known_text(found.sm_clock_mhz, "{:g} MHz"),
        known_text(found.utilization, "{:g} % busy"),
    )


def _gpu_process(found: GpuProcess) -> str:
    used = "memory unknown" if isinstance(found.used, Unknown) else gib(found.used)
    return f"{found.name} (pid {found.pid}, {used})"


def _driver(found: Driver) -> Sequence[str]:
    parts = (("kernel module", found.version), ("GSP firmware", found.gsp_firmware))
    both = [f"{name} {unknown(value) if isinstance(value, Unknown) else value}" for name, value in parts]
    return [listed(*both, "torn: the two versions differ" if found.torn is True else "")]


def _interface(found: Interface) -> str:
    addresses = " ".join(f"{a.ipv4}/{a.prefix}" for a in found.addresses)
    speed = known_text(found.speed_mbps, "{} Mb/s")
    return f"{found.name:<15} {listed('up' if found.up else 'down', f'MTU {found.mtu}', speed, addresses)}"


def _port(found: RdmaPort) -> str:
    v2 = [f"GID {g.index} {g.ipv4} RoCE v2" for g in found.gids if g.version == "v2" and g.ipv4]
    state = f"{found.state} {found.physical_state}".strip()
    return f"{f'{found.device}/{found.port}':<15} {listed(state, found.netdev, *v2)}"


def _docker(found: Docker) -> Sequence[str]:
    if found.trouble is not DockerTrouble.NONE:
        return [f"{found.trouble}{f': {found.said}' if found.said else ''}"]
    return [
        listed(
            found.version,
            f"runtimes {' '.join(found.runtimes)}" if found.runtimes else "",
            "GPUs by CDI" if found.cdi else "",
            found.storage,
            f"in {found.root}" if found.root else "",
            "snap" if found.snap else "",
            "rootless" if found.rootless else "",
        )
    ]


def _disks(found: Sequence[Disk], home: str) -> Sequence[str]:
    """One line for each file system, with the paths on it."""
    systems: dict[tuple[str, int, int], list[str]] = {}
    for one in found:
        path = f"~{one.path.removeprefix(home)}" if home and one.path.startswith(f"{home}/") else one.path
        systems.setdefault((one.mount, one.total, one.available), []).append(path)
    rows = systems.items()
    return [f"{mount}: {gib(free)} free of {gib(total)} ({', '.join(paths)})" for (mount, total, free), paths in rows]


def _listeners(found: Sequence[Listener]) -> Sequence[str]:
    """One line: the addresses of one port and program appear once."""
    seen = dict.fromkeys((one.port, one.process) for one in found)
    return [listed(*(f"{port}{f' ({process})' if process else ''}" for port, process in sorted(seen)))] if seen else []


def _rank(found: RankStatus) -> str:
    code = "" if found.exit_code is None else f" with code {found.exit_code}"
    return f"{found.deployment} rank {found.rank}: {found.state}{code}, {found.engine}, {found.runtime}"


T = TypeVar("T")


def lines_of(fact: T | Unknown, read: Callable[[T], Sequence[str]]) -> Sequence[str]:
    """The lines of a fact, or the reason why it is unknown."""
    return [unknown(fact)] if isinstance(fact, Unknown) else read(fact)


def unknown(fact: Unknown) -> str:
    """`unknown: why (the node's output)`."""
    said = f" ({fact.raw})" if fact.raw and fact.why else fact.raw
    return f"unknown: {fact.why}{said}"


def line_for_each(read: Callable[[T], str]) -> Callable[[Sequence[T]], Sequence[str]]:
    """One line for each."""
    return lambda found: [read(one) for one in found]


def known_text(value: object, form: str = "{}") -> str:
    """The formatted value; '' if it is unknown: inside a line only known values are worth a word."""
    return "" if isinstance(value, Unknown) or value in ("", None) else form.format(value)


def listed(*parts: str) -> str:
    return ", ".join(part for part in parts if part)
